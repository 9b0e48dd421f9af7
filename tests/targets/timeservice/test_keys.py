# SPDX-License-Identifier: Apache-2.0
"""bw-timed with symmetric keys: servers that authenticate well, badly or not at all; files of keys.

The servers' AES-CMAC is that of the package cryptography, not the one that is tested.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC

from hw.tools import local_tool
from tests.patience import HANG_S, wait_until
from tests.targets.timeservice.lab import QUICK, TimedProcess, ToldServer, check_true, timectl

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
KEY_128, KEY_256 = bytes(range(16)), bytes(range(100, 132))
KEY_FILE = f"# of the tests\n5 AES128 HEX:{KEY_128.hex()}\n6 AES256 HEX:{KEY_256.hex()}\n7 SHA1 HEX:0123\n"
KEYS = {5: KEY_128, 6: KEY_256}
NOT_AUTHENTICATED = "the servers' answers are not authenticated by their keys"


def tag_of(packet: bytes, key: bytes) -> bytes:
    """Return the tag of a packet without its MAC (RFC 8573, section 3)."""
    cmac = CMAC(AES(key))
    cmac.update(packet[:48])
    return cmac.finalize()


def mac_of(packet: bytes, key_id: int, key: bytes) -> bytes:
    """Return the MAC that a packet ends in."""
    return key_id.to_bytes(4, "big") + tag_of(packet, key)


class KeyServer(ToldServer):
    """A server that looks at the MAC of requests, and ends its answers as it is told."""

    def __init__(self, ending: Callable[[bytes, int], bytes]) -> None:
        """Serve; ending gives what follows the 48 bytes of an answer to a request with that key."""
        self.ending = ending
        super().__init__()

    def _answer(self, request: bytes) -> bytes | None:
        packet = super()._answer(request)
        key_id = int.from_bytes(request[48:52], "big")
        if packet is None or len(request) != 68 or request[48:] != mac_of(request, key_id, KEYS[key_id]):
            return None
        return packet + self.ending(packet, key_id)


def right(packet: bytes, key_id: int) -> bytes:
    """End an answer well."""
    return mac_of(packet, key_id, KEYS[key_id])


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Return a file of keys that only its owner may read."""
    path = tmp_path / "timed.keys"
    path.write_text(KEY_FILE)
    path.chmod(0o600)
    return path


@pytest.fixture(autouse=True)
def capable(keys: Path, tmp_path: Path) -> None:
    """Skip where this build asks the kernel for AES-CMAC, and it has none."""
    argv = [
        str(local_tool("bw-timed")),
        "--server",
        "127.0.0.1:9,key=5",
        "--key-file",
        str(keys),
        "--any-counter",
    ]
    argv += ["--page", str(tmp_path / "probe"), "--batches", "1", "--timeout-ms", "1", "--batch", "1"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if done.returncode == 3 and "AES-CMAC" in done.stderr:
        pytest.skip(done.stderr.strip())


@pytest.mark.parametrize("key_id", [5, 6])
def test_right_key_gives_a_time(page: Path, keys: Path, key_id: int) -> None:
    with KeyServer(right) as server:
        arguments = ("--server", f"{server.text},key={key_id}", "--key-file", str(keys))
        with TimedProcess(page, *arguments, *QUICK) as timed:
            timed.syncs(4)
            check_true(page)
            (source,) = timed.ctl("sourcestats")["sources"]
            argv = [str(local_tool("bw-timectl")), "sources", "--page", str(page)]
            shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert (source["key"], source["authenticated"]) == (key_id, True)
    assert source["received"] > 10
    assert sum(source["rejected"][reason] for reason in source["rejected"] if reason.startswith("mac")) == 0
    assert f", key {key_id}\n" in shown


def missing(_packet: bytes, _id: int) -> bytes:
    """End no answer in a MAC."""
    return b""


def truncated(packet: bytes, key_id: int) -> bytes:
    """Leave the last byte out."""
    return right(packet, key_id)[:-1]


def id_0(packet: bytes, key_id: int) -> bytes:
    """Name no key."""
    return bytes(4) + right(packet, key_id)[4:]


def other_key(packet: bytes, _id: int) -> bytes:
    """Use another key, which is in the file too."""
    return right(packet, 6)


def tag_bit(packet: bytes, key_id: int) -> bytes:
    """Turn the last bit of the tag."""
    mac = right(packet, key_id)
    return mac[:-1] + bytes([mac[-1] ^ 1])


def other_secret(packet: bytes, key_id: int) -> bytes:
    """Use another secret of that id."""
    return mac_of(packet, key_id, bytes(32))


def crypto_nak(_packet: bytes, _id: int) -> bytes:
    """Say that the request's MAC is not accepted (RFC 5905, section 9.2)."""
    return bytes(4)


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (missing, "mac-missing"),
        (truncated, "mac-short"),
        (id_0, "mac-key"),
        (other_key, "mac-key"),
        (tag_bit, "mac-wrong"),
        (other_secret, "mac-wrong"),
        (crypto_nak, "crypto-nak"),
    ],
)
def test_what_is_not_authenticated_is_named_and_never_becomes_a_time(
    page: Path, keys: Path, ending: Callable[[bytes, int], bytes], reason: str
) -> None:
    with KeyServer(ending) as server:
        arguments = ("--server", f"{server.text},key=5", "--key-file", str(keys))
        with TimedProcess(page, *arguments, *QUICK) as timed:
            line = timed.until(lambda line: line["type"] == "rejected" and line["reason"] != "no-answer")
            timed.until_state("starting", NOT_AUTHENTICATED)
            # Of a machine that is busy an answer may come too late, and be told as none meanwhile.
            told = f"{server.text}, key 5: {reason}"
            wait_until(lambda: timed.ctl("tracking")["text"] == told, told)
            timed.end()
        (source,) = timectl(page, "sourcestats")["sources"]
        argv = [str(local_tool("bw-timectl")), "sourcestats", "--page", str(page)]
        shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert not timectl(page, "tracking")["synchronised"]
    assert line["reason"] == reason
    assert (source["received"], source["authenticated"]) == (0, False)
    assert source["rejected"][reason] > 0
    assert f"refused: {reason} " in shown


def test_server_that_loses_its_key_is_held_over_and_named(page: Path, keys: Path) -> None:
    with KeyServer(right) as server:
        arguments = ("--server", f"{server.text},key=6", "--key-file", str(keys))
        with TimedProcess(page, *arguments, *QUICK) as timed:
            timed.syncs(4)
            server.ahead_s = 3600.0
            server.ending = other_secret
            timed.until_state("holdover", NOT_AUTHENTICATED)
            said = check_true(page)
            server.ahead_s = 0.0
            server.ending = right
            timed.until_state("synchronised")
            check_true(page)
            later = timed.ctl("tracking")["text"]
    assert said["text"] == f"{server.text}, key 6: mac-wrong"
    assert later == ""


def test_forged_kiss_of_death_silences_nobody(page: Path, keys: Path) -> None:
    with KeyServer(right) as server:
        arguments = ("--server", f"{server.text},key=5", "--key-file", str(keys))

        def forge(link: object, request: bytes, client: tuple[str, int]) -> None:
            packet = bytearray(48)
            packet[0], packet[12:16], packet[24:32] = 4 << 3 | 4, b"DENY", request[40:48]
            server.link.sendto(packet, client)

        server.before_answer = forge
        with TimedProcess(page, *arguments, *QUICK) as timed:
            timed.syncs(4)
            check_true(page)
            (source,) = timed.ctl("sourcestats")["sources"]
    assert source["state"] == "selected"
    assert source["rejected"]["mac-missing"] > 0
    assert source["rejected"]["kiss-of-death"] == 0


def test_servers_with_and_without_a_key(page: Path, keys: Path) -> None:
    with KeyServer(right) as first, ToldServer() as second:
        arguments = ("--server", f"{first.text},key=5", "--server", second.text, "--key-file", str(keys))
        with TimedProcess(page, *arguments, *QUICK, "--min-servers", "2") as timed:
            assert timed.syncs(4)["servers"] == 2
            sources = timed.ctl("sources")["sources"]
        assert {len(request) for request in first.requests} == {68}
        assert {len(request) for request in second.requests} == {48}
    assert [(source["key"], source["authenticated"]) for source in sources] == [(5, True), (0, False)]


def refusal(page: Path, *arguments: str) -> str:
    """Return what is said of settings that are refused."""
    argv = [str(local_tool("bw-timed")), "--page", str(page), *arguments]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("bw-timed: ").removesuffix("\n")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o660, 0o644, 0o610])
def test_file_that_others_may_read_is_refused(page: Path, keys: Path, mode: int) -> None:
    keys.chmod(mode)
    if os.geteuid() == 0:
        os.chown(keys, 0, 1)  # 0440 of root and its group is a credential of systemd
    said = refusal(page, "--server", "127.0.0.1,key=5", "--key-file", str(keys))
    assert said == (
        f"{keys}: others may read or write it; "
        "allowed: a regular file of this user or of root, mode 0400 or 0600"
    )
    assert not page.exists()


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440])
def test_file_of_the_owner_alone_is_read(page: Path, keys: Path, mode: int) -> None:
    if mode == 0o440 and os.geteuid() != 0:
        pytest.skip("a credential of systemd is root's")
    keys.chmod(mode)
    said = refusal(page, "--server", "127.0.0.1,key=8", "--key-file", str(keys))
    assert said == f"{keys}: no key 8, which a server names"


def test_what_is_no_file_is_refused(page: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    asked = ("--server", "127.0.0.1,key=5", "--key-file")
    for name in ("fifo", "."):
        assert "allowed: a regular file" in refusal(page, *asked, str(tmp_path / name))
    assert refusal(page, *asked, str(tmp_path / "none")) == f"{tmp_path}/none: No such file or directory"
    large = tmp_path / "large"
    large.write_text("#" * 65536)
    large.chmod(0o600)
    assert refusal(page, *asked, str(large)) == f"{large}: too long; allowed: fewer than 65536 bytes"


def test_wrong_file_is_refused_with_line_field_and_range(page: Path, keys: Path) -> None:
    short = "0123456789abcde"
    keys.write_text(f"# one\n5 AES128 {short}\n")
    said = refusal(page, "--server", "127.0.0.1,key=5", "--key-file", str(keys))
    assert said == f"{keys}:2: key: 15 characters; allowed 16 of AES128"
    assert short not in said


def test_settings_name_key_and_file(page: Path, keys: Path, tmp_path: Path) -> None:
    settings = tmp_path / "timed.toml"
    settings.write_text('[[server]]\naddress = "127.0.0.1"\nkey = 7\n')
    assert refusal(page, "--config", str(settings)) == (
        "server 127.0.0.1:123: key 7, but no file of keys; give --key-file PATH, or key_file in --config"
    )
    settings.write_text(f'[service]\nkey_file = "{keys}"\n\n[[server]]\naddress = "127.0.0.1"\nkey = 7\n')
    assert refusal(page, "--config", str(settings)) == (
        f"{keys}:4: type: key 7 is of SHA1; allowed AES128, AES256"
    )
