# SPDX-License-Identifier: Apache-2.0
"""bw-accel --set: a closed program's sockets get what they were to have, once each; it runs as without."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence

import pytest

from tests.targets.record.delayed import FAULTS, named_in
from tests.targets.record.peers import Peer
from tests.targets.windows.test_watch import as_said, said
from tests.targets.windows.watch_lab import RECORD, WATCH, Line, WindowsDisk

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

BUFFER_BYTES = 150_000
ALL = {
    "no_delay": 1,
    "send_buffer_bytes": BUFFER_BYTES,
    "receive_buffer_bytes": BUFFER_BYTES,
    "ack_frequency": 1,
    "timer_us": 1000,
    "poll_us": 2000,
}
POLL_US = 200_000
WAITS = ("select", "WSAPoll", "GetQueuedCompletionStatus", "WSAWaitForMultipleEvents")


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Generator[WindowsDisk]:
    """Return a machine that is on."""
    with WindowsDisk(tmp_path_factory.mktemp("tuned")) as made:
        yield made


def settings(**values: int | str) -> list[str]:
    """Return the options for these settings."""
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def tuned(calls: Sequence[Line]) -> list[Line]:
    """Return the lines of what was set."""
    return [call for call in calls if call.get("call") == "tune"]


def test_each_socket_gets_each_setting_once_and_it_is_read_back(disk: WindowsDisk) -> None:
    bare = disk.run("watched.exe", "tuned").stdout.splitlines()
    assert bare[-2:] == ["no_delay=0", "receive_buffer_bytes=8192"] or bare.count("no_delay=0") == 3, bare
    done = disk.run(*WATCH, *settings(**ALL), "watched.exe", "tuned")
    assert done.returncode == 0, done.stdout
    held = [line.split("=") for line in done.stdout.splitlines() if "=" in line]
    assert len(held) == 9
    for name, value in held:  # the program's own eyes, when it has asked for less, too
        assert int(value) == 1 if name == "no_delay" else int(value) >= BUFFER_BYTES, done.stdout
    _, calls = disk.record()
    lines = tuned(calls)
    by_socket = Counter((line["socket"], line["name"]) for line in lines if "socket" in line)
    assert set(by_socket.values()) == {1}
    made = [call["socket"] for call in calls if call.get("call") == "socket"]
    made += [call["accepted"] for call in calls if call.get("call") == "accept"]
    datagrams = made[0]
    buffers = {"send_buffer_bytes", "receive_buffer_bytes"}
    for socket in made:
        names = {name for number, name in by_socket if number == socket}
        assert names == (buffers if socket == datagrams else buffers | {"no_delay", "ack_frequency"})
    for line in lines:
        assert line["asked"] == ALL[line["name"]]
        if line["name"] not in ("ack_frequency", "timer_us"):
            assert line["result"] >= ALL[line["name"]]
    notes = [call["note"] for call in calls if "note" in call]
    assert len(notes) == 1
    assert "stays" in notes[0]


def test_what_the_system_has_not_is_said_and_the_program_goes_on(disk: WindowsDisk) -> None:
    """Wine cannot set how often segments are acknowledged."""
    bare = disk.run("watched.exe", "stream")
    options = settings(no_delay=1, ack_frequency=1, timer_us=1000)
    done = disk.run("bw-accel.exe", *options, "watched.exe", "stream")
    assert (done.stdout, done.returncode) == (bare.stdout, bare.returncode)
    assert done.stderr == "bw-accel: ack_frequency: not in effect on 3 of 3 sockets: error 10045\n"


@pytest.mark.parametrize("what", ["stream", "datagrams", "asked", "handles", "queued", "routine"])
def test_a_program_is_told_the_same(disk: WindowsDisk, what: str) -> None:
    bare = disk.run("watched.exe", what)
    with_class = {**ALL, "multimedia_class": "Pro Audio"}
    done = disk.run(*WATCH, *settings(**with_class), "watched.exe", what)
    assert (done.stdout, done.returncode) == (bare.stdout, bare.returncode)
    _, calls = disk.record()
    assert as_said([call for call in calls if call.get("call") != "tune"]) == said(bare.stdout)


def test_the_small_writes_of_a_closed_program_wait_no_longer(disk: WindowsDisk) -> None:
    """By the host's own stack, which has Nagle's algorithm and delayed acknowledgements."""
    spans_ns: list[int] = []
    for options, fault in (([], [FAULTS["writes"]]), (settings(no_delay=1), [])):
        with Peer("writes") as peer:
            done = disk.run(*WATCH, *options, "delayed.exe", "writes", str(peer.port))
        assert (done.returncode, done.stderr) == (0, "")
        assert named_in(disk.tools / RECORD, "writes", peer.port) == fault
        _, calls = disk.record()
        moved = [call for call in calls if call.get("call") in ("send", "receive")]
        spans_ns.append(moved[-1]["begin_monotonic_ns"] - moved[0]["begin_monotonic_ns"])
    assert spans_ns[1] < spans_ns[0] / 2, spans_ns


def test_a_wait_asks_before_it_sleeps_and_ends_no_sooner(disk: WindowsDisk) -> None:
    """By the thread's own processor time, which the machine's other load does not lengthen."""
    needed_us: list[dict[str, int]] = []
    for options in ([], settings(poll_us=POLL_US)):
        done = disk.run(*(["bw-accel.exe", *options] if options else []), "watched.exe", "waits")
        assert done.returncode == 0, done.stdout
        lines = [line.split() for line in done.stdout.splitlines() if "processor_us" in line]
        assert [line[0] for line in lines] == ["begun", *WAITS]
        needed_us.append({line[0]: int(line[3]) for line in lines})
    for wait in WAITS:
        assert needed_us[0][wait] < POLL_US / 4, needed_us
        assert needed_us[1][wait] > needed_us[0][wait] + 10_000, needed_us


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("no_delay=0", "no_delay: must be a whole number of 1 .. 1, found 0"),
        ("ack_frequency=256", "ack_frequency: must be a whole number of 1 .. 255, found 256"),
        ("poll_us=", "poll_us: must be a whole number of 1 .. 1000000, found"),
        ("send_buffer_bytes=-5", "send_buffer_bytes: must be"),
        ("multimedia_class=", "must be a name of 1 .. 31 ASCII characters"),
        ("colour=1", "colour=1: no such setting; allowed: no_delay, ack_frequency"),
        ("no_delay", "no_delay: must be NAME=VALUE"),
    ],
)
def test_wrong_settings(disk: WindowsDisk, setting: str, message: str) -> None:
    done = disk.run("bw-accel.exe", "--set", setting, "watched.exe", "stream")
    assert (done.returncode, done.stdout, message in done.stderr) == (2, "", True), done.stderr
    twice = disk.run("bw-accel.exe", "--set", "poll_us=1", "--set", "poll_us=2", "watched.exe", "stream")
    assert (twice.returncode, "poll_us: is there twice" in twice.stderr) == (2, True)
