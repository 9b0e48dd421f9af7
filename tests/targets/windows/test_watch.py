# SPDX-License-Identifier: Apache-2.0
"""bw-accel --watch: a program runs as without it, and the record says what it has seen itself, and Wine."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.targets.windows.watch_lab import RECORD, WATCH, Line, WindowsDisk
from tests.traffic_gen.two_ends import free

pytestmark = [pytest.mark.simulated, pytest.mark.slow]

ERRORS = {
    "996": "WSA_IO_INCOMPLETE",
    "997": "WSA_IO_PENDING",
    "10035": "WSAEWOULDBLOCK",
    "10038": "WSAENOTSOCK",
    "10040": "WSAEMSGSIZE",
    "10045": "WSAEOPNOTSUPP",
    "10058": "WSAESHUTDOWN",
}
WINE_WAYS = {
    # What Wine 8 calls within itself for each way; nothing else of it moves data of these programs.
    "WS2_sendto": ("send", "sendto", "WSASend", "WSASendTo", "WSASendMsg"),
    "WS2_recv_base": ("recv", "recvfrom", "WSARecv", "WSARecvFrom", "WSARecvMsg"),
}
WINE_CALL = re.compile(
    r"^([0-9a-f]{4}):trace:winsock:(WS2_sendto|WS2_recv_base) socket 0x[0-9a-f]+, buffers "
)
WINE_STATUS = re.compile(r"^([0-9a-f]{4}):trace:winsock:(WS2_sendto|WS2_recv_base) status (0x[0-9a-f]+|0)\.")
STATUS_PENDING = "0x103"
DISK_BYTES = 1_000_000


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Generator[WindowsDisk]:
    """Return a machine that is on."""
    with WindowsDisk(tmp_path_factory.mktemp("watch")) as made:
        yield made


def as_said(calls: Sequence[Line]) -> list[str]:
    """Return what the program would have said of these calls; it says nothing of what it merely blocks in."""
    return [
        f"{call['function']} {call['result'] if 'result' in call else 'error ' + call['errno']}"
        for call in calls
        if "note" not in call and call["call"] != "block"
    ]


def said(output: str) -> list[str]:
    """Return what the program has said of its calls, errors by their names."""
    lines = [line for line in output.splitlines() if not line.startswith("argument")]
    return [re.sub(r"error (\d+)", lambda found: "error " + ERRORS[found[1]], line) for line in lines]


@pytest.mark.parametrize("what", ["stream", "datagrams", "asked", "handles", "queued", "routine"])
def test_every_call_is_in_the_record_with_its_result(disk: WindowsDisk, what: str) -> None:
    bare = disk.run("watched.exe", what)
    watched = disk.run(*WATCH, "watched.exe", what)
    assert (watched.stdout, watched.stderr, watched.returncode) == (bare.stdout, "", bare.returncode)
    head, calls = disk.record()
    assert (head["state"], head["calls"], head["lost"]) == ("complete", len(calls), 0)
    assert as_said(calls) == said(bare.stdout)
    assert len(calls) >= 10
    assert all(call["duration_ns"] >= 0 for call in calls)


def test_what_was_begun_and_ended_elsewhere_is_joined_by_its_number(disk: WindowsDisk) -> None:
    disk.run(*WATCH, "watched.exe", "queued")
    _, calls = disk.record()
    begun = {
        call["operation"]: call for call in calls if "operation" in call and call["function"] != "completion"
    }
    ended = {call["operation"]: call for call in calls if call["function"] == "completion"}
    assert [call["function"] for call in begun.values()] == ["AcceptEx", "ConnectEx", "WSARecv", "WSASend"]
    assert begun.keys() == ended.keys()
    for number, call in ended.items():
        assert (call["socket"], call["call"]) == (begun[number]["socket"], begun[number]["call"])


def test_arguments_come_to_the_letter(disk: WindowsDisk) -> None:
    arguments = ["stream", "a b", 'c"d', "e\\", "f g\\", "", "--watch", 'h\\"i\\\\']
    bare = disk.run("watched.exe", *arguments)
    assert bare.stdout.count("argument [") == len(arguments) - 1
    assert disk.run(*WATCH, "watched.exe", *arguments).stdout == bare.stdout


def test_a_program_that_ends_itself_hard_loses_nothing(disk: WindowsDisk) -> None:
    done = disk.run(*WATCH, "watched.exe", "killed")
    assert done.returncode == 77
    head, calls = disk.record()
    assert head["state"] == "complete"
    assert as_said(calls) == said(done.stdout)
    assert calls[-1]["function"] == "send"


def test_children_by_choice(disk: WindowsDisk) -> None:
    bare = disk.run("watched.exe", "children")
    for option, count in (("--children", 27), (None, 0)):
        done = disk.run(*WATCH, *filter(None, [option]), "watched.exe", "children")
        assert (done.stdout, done.returncode) == (bare.stdout, 4)
        _, lines = disk.record()
        assert len(as_said(lines)) == count
        notes = [line for line in lines if "note" in line]
        assert [bool(re.fullmatch(r"starts process \d+", note["note"])) for note in notes] == [True] * bool(
            option
        )
        if option:
            assert as_said(lines) == said(bare.stdout)
            assert len({line["process"] for line in lines}) == 2


def test_what_is_not_seen_is_told(disk: WindowsDisk) -> None:
    done = disk.run(*WATCH, "watched.exe", "past")
    _, lines = disk.record()
    assert as_said(lines) == said(done.stdout)
    notes = [line["note"] for line in lines if "note" in line]
    for text in ("\\Device\\Afd", "NtDeviceIoControlFile", "Registered I/O"):
        assert sum(text in note for note in notes) == 1, notes
    disk.run(*WATCH, "watched.exe", "queued")
    assert not [line for line in disk.record()[1] if "note" in line]


def test_a_full_disk_ends_the_record_and_not_the_program(disk: WindowsDisk) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (DISK_BYTES, DISK_BYTES))

    bare = disk.run("watched.exe", "flood")
    done = disk.run(*WATCH, "watched.exe", "flood", before=limit)
    assert (done.stdout, done.returncode) == (bare.stdout, bare.returncode)
    assert bare.stdout == "socket 0\n50000 right\n"
    assert "the record ends here" in done.stderr
    head, calls = disk.record()
    assert head["state"].startswith("broken off: error ")
    assert 0 < head["calls"] == len(calls) < 50_000
    assert head["calls"] + head["lost"] == 50_002


def wine_saw(trace: str) -> list[tuple[int, str, str]]:
    """Return thread, Wine's own function and how it ended, in order; without a status the socket was none."""
    calls: list[tuple[int, str, str]] = []
    for line in trace.splitlines():
        if found := WINE_CALL.match(line):
            calls.append((int(found[1], 16), found[2], "failed"))
        elif found := WINE_STATUS.match(line):
            ends = {"0": "done", STATUS_PENDING: "pending"}
            at = max(i for i, call in enumerate(calls) if call[:2] == (int(found[1], 16), found[2]))
            calls[at] = (*calls[at][:2], ends.get(found[3], "failed"))
    return calls


def record_says(calls: Sequence[Line]) -> list[tuple[int, str, str]]:
    """Return the same of a record."""
    ways = {name: wine for wine, names in WINE_WAYS.items() for name in names}
    ends = {None: "done", "WSA_IO_PENDING": "pending"}
    return [
        (call["thread"], ways[call["function"]], ends.get(call.get("errno"), "failed"))
        for call in calls
        if call.get("function") in ways
    ]


@pytest.mark.parametrize("what", ["stream", "datagrams", "asked", "queued", "routine"])
def test_wine_has_seen_the_same_sends_and_receives(disk: WindowsDisk, what: str) -> None:
    done = disk.run(*WATCH, "watched.exe", what, debug="-all,trace+winsock")
    _, calls = disk.record()
    seen = wine_saw(done.stderr)
    assert len(seen) >= 2
    assert record_says(calls) == seen


def test_bytes_of_bw_traffic(disk: WindowsDisk) -> None:
    address = free()
    serve = ("bw-traffic.exe", "bulk", "--serve", address, "--timeout-ms", "60000")
    peer = ("bw-traffic.exe", "bulk", "--peer", address, "--timeout-ms", "60000", "--bytes", "3000000")
    receiving = disk.start("bw-accel.exe", "--watch", "served.ndjson", *serve)
    assert receiving.stdout
    ready = json.loads(receiving.stdout.readline())
    assert ready["type"] == "ready"
    sending = disk.run("bw-accel.exe", "--watch", "sent.ndjson", *peer)
    output, _ = receiving.communicate(timeout=HANG_S)
    assert (sending.returncode, receiving.returncode) == (0, 0), sending.stderr
    for name, way, text in (("sent", "send", sending.stdout), ("served", "receive", output)):
        answer = json.loads(text.splitlines()[-1])
        head, calls = disk.record(f"{name}.ndjson")
        moved = [call["result"] for call in calls if call.get("call") == way and call.get("result", 0) > 0]
        assert head["lost"] == 0
        assert (len(moved), sum(moved)) == (answer["calls"], answer["bytes"])
        assert answer["bytes"] == 3_000_000


def test_what_cannot_be_watched_is_named(disk: WindowsDisk) -> None:
    program = bytearray((disk.tools / "watched.exe").read_bytes())
    at = int.from_bytes(program[0x3C:0x40], "little") + 4
    program[at : at + 2] = b"\x4c\x01"
    (disk.tools / "small.exe").write_bytes(program)
    program[at : at + 2] = b"\x64\xaa"
    (disk.tools / "other.exe").write_bytes(program)
    (disk.tools / "text.exe").write_text("no program")
    wrong = {
        ("--watch", RECORD, "missing"): (2, "missing: no such program"),
        ("--watch", RECORD, "text.exe"): (2, "text.exe: no program of Windows"),
        ("--watch", RECORD, "bw-watch.dll"): (2, "bw-watch.dll: a library, no program"),
        ("--watch", RECORD, "small.exe"): (3, "small.exe: a program of 32 bits"),
        ("--watch", RECORD, "other.exe"): (3, "other.exe: a program for another processor"),
        ("--watch", "C:\\none\\record", "watched.exe"): (5, "C:\\none\\record: the record cannot be written"),
        ("--watch", RECORD, "--all", "watched.exe"): (2, "--all: unknown option"),
        ("--watch", RECORD): (2, "usage:"),
        ("watched.exe",): (2, "usage:"),
    }
    for arguments, (code, text) in wrong.items():
        done = disk.run("bw-accel.exe", *arguments)
        assert (done.returncode, done.stdout) == (code, ""), arguments
        assert text in done.stderr


def test_without_its_library_nothing_is_started(disk: WindowsDisk, tmp_path: Path) -> None:
    library = disk.tools / "bw-watch.dll"
    moved = library.rename(tmp_path / library.name)
    try:
        done = disk.run(*WATCH, "watched.exe", "stream")
    finally:
        moved.rename(library)
    assert (done.returncode, done.stdout) == (3, "")
    assert "bw-watch.dll: missing" in done.stderr
