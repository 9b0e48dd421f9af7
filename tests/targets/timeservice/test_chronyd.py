# SPDX-License-Identifier: Apache-2.0
"""bw-timed against chronyd across a link: kernel stamps, interleaved mode, a restart, forged packets."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Self

import pytest
from scapy.layers.inet import IP, UDP

from tests.namespace import in_namespace
from tests.patience import HANG_S, wait_until
from tests.targets.lying_server import ntp_now
from tests.targets.timeservice.lab import (
    CLIENT_ADDRESS,
    SERVER_ADDRESS,
    Pair,
    TimedProcess,
    check_true,
    chronyd,
    find_chronyd,
)

pytestmark = [pytest.mark.simulated, pytest.mark.slow]
SETTINGS = (
    *("--server", SERVER_ADDRESS, "--interval-ms", "500", "--quick-interval-ms", "200", "--batch", "8"),
    *("--check-interval-ms", "200"),
)
FORGED = int(os.environ.get("BW_FORGED_PACKETS", "6000"))
"""A million in the nightly run: BW_FORGED_PACKETS=1000000."""
RECEIVE_ALL = 0x0003  # ETH_P_ALL
MARK = 0xBEEF
"""Identification in the IP header of what is forged."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return chronyd."""
    return find_chronyd(tmp_path_factory.mktemp("chrony"))


def test_stamps_of_the_kernel_in_interleaved_mode(program: Path, pair: Pair, tmp_path: Path) -> None:
    page = tmp_path / "page"
    with (
        chronyd(program, pair, tmp_path) as server,
        TimedProcess(page, *SETTINGS, prefix=pair.inside(pair.client)) as timed,
    ):
        sync = timed.syncs(8)
        for _ in range(20):
            check_true(page)
        (source,) = timed.ctl("sources")["sources"]
        # The server is started anew, and knows nothing of what was before.
        server.send_signal(signal.SIGSTOP)
        timed.until_state("holdover", "no server answers")
        check_true(page)
        server.send_signal(signal.SIGCONT)
        timed.until_state("synchronised")
        check_true(page)
    assert (sync["stamps"], sync["interleaved"]) == ("kernel", True)
    assert (source["stamps"], source["interleaved"], source["stratum"]) == ("kernel", True, 1)
    assert sync["bound_ns"] < 1_000_000


def test_user_stamps_are_told(program: Path, pair: Pair, tmp_path: Path) -> None:
    page = tmp_path / "page"
    arguments = (*SETTINGS, "--user-stamps", "--no-interleave")
    with (
        chronyd(program, pair, tmp_path),
        TimedProcess(page, *arguments, prefix=pair.inside(pair.client)) as timed,
    ):
        sync = timed.syncs(4)
        check_true(page)
    assert (sync["stamps"], sync["interleaved"]) == ("user", False)


def test_restarted_server_is_taken_up_again(program: Path, pair: Pair, tmp_path: Path) -> None:
    page = tmp_path / "page"
    with TimedProcess(page, *SETTINGS, "--timeout-ms", "200", prefix=pair.inside(pair.client)) as timed:
        with chronyd(program, pair, tmp_path):
            timed.syncs(4)
        timed.until_state("holdover", "no server answers")
        check_true(page)
        with chronyd(program, pair, tmp_path):
            timed.until_state("synchronised")
            sync = timed.syncs(3)
            assert check_true(page)["epoch"] == 0
    assert sync["interleaved"]


# ---- symmetric keys ----------------------------------------------------------------------------------------

SECRETS = {"AES128": bytes(range(16)).hex(), "AES256": bytes(range(32)).hex()}


def with_key(folder: Path, line: str) -> tuple[str, ...]:
    """Return arguments for a server whose key 3 stands in a file with one line."""
    path = folder / "timed.keys"
    path.write_text(f"{line}\n")
    path.chmod(0o600)
    at = SETTINGS.index(SERVER_ADDRESS)
    return (*SETTINGS[:at], f"{SERVER_ADDRESS},key=3", *SETTINGS[at + 1 :], "--key-file", str(path))


def skip_without_cipher(timed: TimedProcess) -> None:
    """Skip where this build asks the kernel for AES-CMAC, and it has none."""
    try:
        timed.until(lambda line: line["type"] == "ready")
    except AssertionError:
        assert timed.process.stderr is not None
        said = timed.process.stderr.read()
        if timed.process.wait(HANG_S) != 3 or "AES-CMAC" not in said:
            raise
        pytest.skip(said.strip())


@pytest.mark.parametrize("kind", ["AES128", "AES256"])
def test_server_with_the_same_key_is_believed(program: Path, pair: Pair, tmp_path: Path, kind: str) -> None:
    page, line = tmp_path / "page", f"3 {kind} HEX:{SECRETS[kind]}"
    with (
        chronyd(program, pair, tmp_path, f"{line}\n"),
        TimedProcess(page, *with_key(tmp_path, line), prefix=pair.inside(pair.client)) as timed,
    ):
        skip_without_cipher(timed)
        sync = timed.syncs(8)
        said = check_true(page)
        (source,) = timed.ctl("sourcestats")["sources"]
    assert (sync["stamps"], sync["interleaved"]) == ("kernel", True)
    assert (said["state"], source["key"], source["authenticated"]) == ("synchronised", 3, True)
    assert source["received"] > 40
    of_key = {
        reason: count for reason, count in source["rejected"].items() if reason.startswith(("mac", "crypto"))
    }
    assert len(of_key) == 5
    assert set(of_key.values()) == {0}


@pytest.mark.parametrize(
    ("served", "own"),
    [
        (f"3 AES128 HEX:{SECRETS['AES128']}", f"3 AES128 HEX:{'ff' * 16}"),  # another secret of that id
        (f"4 AES128 HEX:{SECRETS['AES128']}", f"3 AES128 HEX:{SECRETS['AES128']}"),  # no key of that id
        ("", f"3 AES128 HEX:{SECRETS['AES128']}"),  # a server without keys
    ],
    ids=["secret", "id", "none"],
)
def test_server_with_another_key_is_silent_and_named(
    program: Path, pair: Pair, tmp_path: Path, served: str, own: str
) -> None:
    page = tmp_path / "page"
    with (
        chronyd(program, pair, tmp_path, served),
        TimedProcess(
            page, *with_key(tmp_path, own), "--timeout-ms", "200", prefix=pair.inside(pair.client)
        ) as timed,
    ):
        skip_without_cipher(timed)
        timed.until_state("starting", "no server answers")
        # The state may be told before the first request has run out.
        told = f"{SERVER_ADDRESS}:123, key 3: silent so far"
        wait_until(lambda: timed.ctl("tracking")["text"].startswith(told), told)
        (source,) = timed.ctl("sourcestats")["sources"]
        assert not timed.ctl("tracking")["synchronised"]
        assert timed.end() == 0
    assert (source["received"], source["authenticated"]) == (0, False)
    assert source["rejected"]["no-answer"] > 0
    assert not [line for line in timed.seen if line["type"] == "sync"]


def test_forger_on_the_way_moves_nothing_without_the_key(program: Path, pair: Pair, tmp_path: Path) -> None:
    page, line = tmp_path / "page", f"3 AES128 HEX:{SECRETS['AES128']}"
    arguments = (*with_key(tmp_path, line), "--timeout-ms", "200")
    with (
        chronyd(program, pair, tmp_path, f"{line}\n") as server,
        TimedProcess(page, *arguments, prefix=pair.inside(pair.client)) as timed,
    ):
        skip_without_cipher(timed)
        timed.syncs(4)
        # He sees each request, lets none through, and answers just what was asked: an hour ahead.
        server.send_signal(signal.SIGSTOP)
        with Impostor(pair) as impostor:
            timed.until_state("holdover", "the servers' answers are not authenticated by their keys")
            check_true(page)
        server.send_signal(signal.SIGCONT)
        timed.until_state("synchronised")
        said = check_true(page)
        (source,) = timed.ctl("sourcestats")["sources"]
        steps = [line for line in timed.seen if line["type"] in ("step", "contradiction")]
    assert impostor.sent >= 8
    assert {reason for reason, count in source["rejected"].items() if count} >= {
        *("mac-missing", "mac-key", "mac-wrong", "crypto-nak"),
    }
    assert (said["state"], said["epoch"], steps) == ("synchronised", 0, [])


# ---- forged packets ----------------------------------------------------------------------------------------


def open_in(namespace: str, family: int, protocol: int) -> socket.socket:
    """Open a raw socket in a namespace."""
    return in_namespace(namespace, lambda: socket.socket(family, socket.SOCK_RAW, protocol))


class Forger:
    """Sees all between server and client, and sends packets in the server's name.

    What a forger on the way who also changes the true packets could do is another matter: that takes keys.
    """

    def __init__(self, pair: Pair, seed: int) -> None:
        """Open the sockets in the server's namespace."""
        self._seen = open_in(pair.server, socket.AF_PACKET, socket.htons(RECEIVE_ALL))
        self._out = open_in(pair.server, socket.AF_INET, socket.IPPROTO_RAW)
        self._seen.bind(("t0", RECEIVE_ALL))
        self._seen.settimeout(HANG_S)
        self._random = random.Random(seed)
        self.sent = 0
        self.kinds: dict[str, int] = {}

    def close(self) -> None:
        """Close the sockets."""
        self._seen.close()
        self._out.close()

    def _forge(self, kind: str, reply: bytes, older: list[bytes]) -> bytes:
        draw = self._random
        if kind == "replayed":
            return draw.choice(older) if older else reply
        if kind == "twice":
            return reply
        if kind == "random":
            return draw.randbytes(draw.randrange(0, 120))
        if kind == "cut":
            return reply[: draw.randrange(0, 48)]
        if kind == "longer":
            return reply + draw.randbytes(draw.choice((4, 20, 24, 28)))
        if kind == "bits":
            # Somewhere in the origin, so that it is not the answer; the rest as it is.
            changed = bytearray(reply)
            changed[24 + draw.randrange(8)] ^= 1 << draw.randrange(8)
            return bytes(changed)
        # An hour ahead, for a request that the forger guesses.
        later = int.from_bytes(reply[32:40], "big") + (3600 << 32)
        return reply[:24] + draw.randbytes(8) + later.to_bytes(8, "big") * 2

    def run(self, count: int) -> None:
        """Send forged packets, some after each true reply."""
        kinds = ("replayed", "twice", "random", "cut", "longer", "bits", "guessed")
        older: list[bytes] = []
        each = max(12, count // 300)
        while self.sent < count:
            frame = self._seen.recv(2048)
            kind = (frame[12:14], frame[23], frame[34:36])
            if kind != (b"\x08\x00", socket.IPPROTO_UDP, b"\x00\x7b"):
                continue
            if frame[18:20] == MARK.to_bytes(2, "big"):
                continue
            port, reply = int.from_bytes(frame[36:38], "big"), frame[42:90]
            # The kernel fills in length and checksum of IP; a UDP checksum of 0 is none.
            head = bytes(
                IP(src=SERVER_ADDRESS, dst=CLIENT_ADDRESS, id=MARK) / UDP(sport=123, dport=port, chksum=0)
            )
            for _ in range(each):
                kind = self._random.choice(kinds)
                payload = self._forge(kind, reply, older)
                length = (8 + len(payload)).to_bytes(2, "big")
                self._out.sendto(head[:24] + length + head[26:] + payload, (CLIENT_ADDRESS, 0))
                self.kinds[kind] = self.kinds.get(kind, 0) + 1
                self.sent += 1
            older = [*older[-200:], reply]


class Impostor:
    """Sees requests, and answers them in the server's name without the key."""

    def __init__(self, pair: Pair) -> None:
        """Answer in a thread."""
        self._seen = open_in(pair.server, socket.AF_PACKET, socket.htons(RECEIVE_ALL))
        self._out = open_in(pair.server, socket.AF_INET, socket.IPPROTO_RAW)
        self._seen.bind(("t0", RECEIVE_ALL))
        self._seen.settimeout(0.2)  # then it looks whether it is to end
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                frame = self._seen.recv(2048)
            except TimeoutError:
                continue
            if (frame[12:14], frame[23], frame[36:38]) != (b"\x08\x00", socket.IPPROTO_UDP, b"\x00\x7b"):
                continue
            port, request = int.from_bytes(frame[34:36], "big"), frame[42:]
            stamp = ntp_now(3600.0).to_bytes(8, "big")
            packet = bytes((4 << 3 | 4, 1, 0, 236)) + bytes(12) + stamp + request[40:48] + stamp + stamp
            for ending in (b"", bytes(4), bytes(20), request[48:], request[48:52] + os.urandom(16)):
                payload = IP(src=SERVER_ADDRESS, dst=CLIENT_ADDRESS) / UDP(sport=123, dport=port, chksum=0)
                self._out.sendto(bytes(payload / (packet + ending)), (CLIENT_ADDRESS, 0))
                self.sent += 1

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._ended.set()
        self._thread.join(HANG_S)
        self._seen.close()
        self._out.close()


def test_forged_malformed_and_replayed_packets_change_nothing(
    program: Path, pair: Pair, tmp_path: Path
) -> None:
    page = tmp_path / "page"
    with (
        chronyd(program, pair, tmp_path),
        TimedProcess(page, *SETTINGS, "--gap-us", "20000", prefix=pair.inside(pair.client)) as timed,
    ):
        timed.syncs(4)
        forger = Forger(pair, 7)
        thread = threading.Thread(target=forger.run, args=(FORGED,), daemon=True)
        thread.start()
        checks = 0
        while thread.is_alive():
            check_true(page)
            checks += 1
            time.sleep(0.1)
        forger.close()
        timed.syncs(2)
        said = check_true(page)
        (source,) = timed.ctl("sourcestats")["sources"]
        steps = [line for line in timed.seen if line["type"] in ("step", "contradiction")]
        assert timed.end() == 0
    assert forger.sent >= FORGED
    assert min(forger.kinds.values()) > FORGED / 20
    assert checks > 5
    assert (said["state"], said["epoch"], steps) == ("synchronised", 0, [])
    # Every packet that was used answers a request, and one that was sent.
    assert source["received"] <= source["sent"]
    assert source["rejected"]["origin"] > FORGED / 50
    assert source["rejected"]["duplicate"] > 0
    assert source["rejected"]["short"] > 0
    assert source["rejected"]["long"] > 0
