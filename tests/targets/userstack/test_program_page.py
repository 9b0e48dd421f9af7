# SPDX-License-Identifier: Apache-2.0
"""What the service makes of the pages of programs that lie, stop, or come and go in the wrong moment."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import random
import select
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S, wait_until
from tests.targets.userstack.accel_lab import AccelLab
from tests.targets.userstack.stackd_lab import (
    HELLO,
    REPORT,
    REPORTED,
    STATISTICS,
    VERSION,
    Answer,
    Program,
)

SOCKETS, COUNTS, SOCKET_BYTES, NAME_BYTES, SLOTS = 1024, 24, 168, 32, 64
_HEAD = struct.Struct(f"=IIQ{NAME_BYTES}s6I{COUNTS}Q")
PAGE_BYTES = _HEAD.size + SOCKETS * SOCKET_BYTES + 8
LARGEST = 2**53
Json = dict[str, Any]


def page_of(
    *,
    version: int = 1,
    size_bytes: int = PAGE_BYTES,
    finished: int = 1,
    begun: int = 1,
    name: bytes = b"liar",
    sockets: int = 0,
    count: int = 0,
    table: bytes = b"",
) -> bytes:
    head = _HEAD.pack(version, size_bytes, finished, name, 0, 0, 0, 0, sockets, 0, *[count] * COUNTS)
    return head + table.ljust(SOCKETS * SOCKET_BYTES, b"\0") + struct.pack("=Q", begun)


def socket_of(*, protocol: int = 6, family: int = 4, state: int = 1, number: int = 7) -> bytes:
    words = struct.pack(
        "=BBBBi16s16sHHIII", protocol, family, state, 0, 3, b"\1" * 16, b"\2" * 16, 1, 2, 0, 0, 0
    )
    return words + struct.pack("=Q", number) * 14


class Memory:
    """A page that a program of this process has."""

    def __init__(self, content: bytes, *, size_bytes: int = PAGE_BYTES, seals: int = 7) -> None:
        """Make it; seals: no other seal (1), no less (2), no more (4)."""
        self.descriptor = os.memfd_create("page", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self.descriptor, size_bytes)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)
        os.pwrite(self.descriptor, content, 0)


class Asker:
    """Who asks for statistics."""

    def __init__(self, path: Path) -> None:
        """Connect."""
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(HANG_S)
        self.connection.connect(str(path))

    def ask(self, number: int = 1) -> None:
        """Ask; the answer is read later."""
        self.connection.send(struct.pack("=IIIBBH16s", VERSION, STATISTICS, number, 0, 0, 0, b""))

    def answer(self, number: int = 1) -> Json:
        """Return it."""
        data, descriptors, _, _ = socket.recv_fds(self.connection, 4096, 2)
        assert struct.unpack_from("=IIi", data) == (STATISTICS, number, 0)
        (text,) = descriptors
        with os.fdopen(text, "rb") as file:
            file.seek(0)
            found: Json = json.loads(file.read())
        return found

    def statistics(self) -> Json:
        """Ask, and return the answer."""
        self.ask()
        return self.answer()


@pytest.fixture
def asker(lab: AccelLab) -> Iterator[Asker]:
    made = Asker(lab.socket)
    yield made
    made.connection.close()
    lone = Asker(lab.socket)
    wait_until(lambda: not lone.statistics()["programs"], "programs to end")


@pytest.fixture
def join(lab: AccelLab) -> Iterator[Callable[[int | None], Program]]:
    """Return what makes programs, with the descriptor of a page."""
    made: list[Program] = []

    def begin(page: int | None) -> Program:
        made.append(Program(lab.socket, page=page))
        return made[-1]

    yield begin
    for each in made:
        each.close()


Join = Callable[[int | None], Program]


def is_question(event: Answer) -> bool:
    """Say whether it asks for a report: an interface that changes is told of, too."""
    return event.verb == REPORT


def reported(asker: Asker, program: Program) -> Json:
    """Let a program answer; return what is said of it, the totals beside it."""
    while True:
        if program.has_event(is_question):  # what it owes from before
            program.event(is_question)
            assert program.ask(REPORTED).result == 0
        asker.ask()
        program.event(is_question)
        assert program.ask(REPORTED).result == 0
        found = asker.answer()
        if found["programs"][0]["report"] != "late":  # a busy machine has no 200 ms for it
            return {**found["programs"][0], "totals": found["totals"]["counts"]}


GARBAGE = {
    "zeros": bytes(PAGE_BYTES),
    "ones": b"\xff" * PAGE_BYTES,
    "random": random.Random(1).randbytes(PAGE_BYTES),
    "another version": page_of(version=2),
    "another size": page_of(size_bytes=PAGE_BYTES - 8),
    "written meanwhile": page_of(begun=2),
    "too many sockets": page_of(sockets=SOCKETS + 1),
    "as many sockets as there are numbers": page_of(sockets=2**32 - 1),
    "a name without end": page_of(name=b"x" * NAME_BYTES),
    "a count too large": page_of(count=LARGEST + 1),
    "a count that wraps": page_of(count=2**64 - 1),
    "no protocol": page_of(sockets=1, table=socket_of(protocol=1)),
    "no family": page_of(sockets=1, table=socket_of(family=10)),
    "no state": page_of(sockets=1, table=socket_of(state=0)),
    "a state too large": page_of(sockets=1, table=socket_of(state=12)),
    "a number too large": page_of(sockets=1, table=socket_of(number=2**63)),
    "the last socket": page_of(sockets=SOCKETS, table=socket_of() * (SOCKETS - 1) + socket_of(state=99)),
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=[name.replace(" ", "-") for name in GARBAGE])
def test_garbage_is_not_believed(asker: Asker, join: Join, content: bytes) -> None:
    program = join(Memory(content).descriptor)
    before = reported(asker, program)["totals"]
    found = reported(asker, program)
    assert (found["report"], "sockets" in found) == ("malformed", False)
    assert found["totals"] == before


def test_a_full_page_is_shown(asker: Asker, join: Join, repository: Path, lab: AccelLab) -> None:
    """All sockets that have room, and a name that a terminal is not to see."""
    name = b'\x1b[2J"\\\xff'
    content = page_of(sockets=SOCKETS, name=name, table=socket_of() * SOCKETS)
    program = join(Memory(content).descriptor)
    found = reported(asker, program)
    assert found["report"] == "fresh"
    assert found["name"] == '\x1b[2J"\\\ufffd'
    assert [each["local"] for each in found["sockets"]] == [{"address": "1.1.1.1", "port": 1}] * SOCKETS
    argv = [str(repository / ".build/linux/targets/linux/userstack/netstat/bw-netstat")]
    argv += ["--socket", str(lab.socket)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=HANG_S)
    assert "does not answer" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert f'?[2J"\\?/{os.getpid()}' in done.stdout
    assert len(done.stdout.splitlines()) == SOCKETS + 1


def test_counters_only_rise(asker: Asker, join: Join) -> None:
    """Also where a program's own go back."""
    memory = Memory(page_of(count=100))
    program = join(memory.descriptor)
    first = reported(asker, program)
    os.pwrite(memory.descriptor, page_of(count=40), 0)
    second = reported(asker, program)
    assert second["counts"] == first["counts"] == dict.fromkeys(first["counts"], 100)
    assert second["totals"] == first["totals"]
    os.pwrite(memory.descriptor, page_of(count=1000), 0)
    program.close()
    wait_until(lambda: not asker.statistics()["programs"], "its end")
    last = asker.statistics()["totals"]["counts"]
    assert last == {name: count + 900 for name, count in second["totals"].items()}


def test_pages_that_are_none_are_refused(asker: Asker, lab: AccelLab, tmp_path: Path) -> None:
    """A file, a pipe, a socket, memory that can shrink or grow, or has another size."""
    content = page_of()
    file = tmp_path / "page"
    file.write_bytes(content)
    ends = os.pipe()
    with file.open("r+b") as opened, socket.socket() as sock:
        given = [opened.fileno(), ends[0], sock.fileno()]
        given += [Memory(content, seals=seals).descriptor for seals in (0, 2, 4)]
        given += [Memory(b"", size_bytes=size).descriptor for size in (0, PAGE_BYTES - 1, PAGE_BYTES + 1)]
        stranger = Program(lab.socket, hello=False)
        for each in given:
            assert stranger.ask(HELLO, given=[each]).result == "EINVAL"
        stranger.close()
    for end in ends:
        os.close(end)
    assert asker.statistics()["programs"] == []


def test_a_hole_in_the_page_is_zeros(asker: Asker, join: Join) -> None:
    """What cannot shrink can still lose its memory."""
    memory = Memory(page_of(count=5))
    program = join(memory.descriptor)
    assert reported(asker, program)["report"] == "fresh"
    with mmap.mmap(memory.descriptor, PAGE_BYTES) as mapped:
        mapped.madvise(mmap.MADV_REMOVE)
    found = reported(asker, program)
    assert found["report"] == "malformed"
    assert set(found["counts"].values()) == {5}


def test_others_are_served_while_one_is_waited_for(asker: Asker, join: Join, lab: AccelLab) -> None:
    silent = join(Memory(page_of()).descriptor)
    asker.ask()
    silent.event(is_question)
    assert silent.ask(99).result == "EINVAL"
    assert lab.show()["programs"]
    found = asker.answer()["programs"]
    assert [each["report"] for each in found] == ["late"]
    # It is asked once as long as it owes an answer.
    for _ in range(3):
        assert asker.statistics()["programs"][0]["report"] == "late"
    assert silent.ask(REPORTED).result == 0
    assert [event.verb for event in silent.events] == []
    assert silent.ask(REPORTED).result == "EINVAL"


def test_what_is_asked_twice_is_refused(asker: Asker, join: Join) -> None:
    join(Memory(page_of()).descriptor)
    asker.ask(1)
    asker.ask(2)
    data = asker.connection.recv(4096)
    assert struct.unpack_from("=IIi", data) == (STATISTICS, 2, -114)
    asker.answer(1)


def test_who_asks_meanwhile_gets_what_comes_after(asker: Asker, join: Join, lab: AccelLab) -> None:
    """A report that was begun before the question is none to it."""
    memory = Memory(page_of())
    program = join(memory.descriptor)
    later = Asker(lab.socket)
    found: list[Json] = []
    while [each["programs"][0]["report"] for each in found] != ["fresh", "fresh"]:  # 200 ms are over
        asker.statistics()
        program.event(is_question)
        asker.ask()
        later.ask()
        assert program.ask(REPORTED).result == 0  # to the first question of all
        for who, count in (asker, 1), (later, 9):
            if not program.has_event(is_question):
                select.select([program.connection, who.connection], [], [])
            if program.has_event(is_question):  # so it is asked again
                program.event(is_question)
                os.pwrite(memory.descriptor, page_of(count=count), 0)
                assert program.ask(REPORTED).result == 0
        found = [asker.answer(), later.answer()]
    assert [each["programs"][0]["counts"]["ip_in"] for each in found] in ([1, 9], [9, 9])
    later.connection.close()


def test_ends_while_it_is_waited_for(asker: Asker, join: Join, lab: AccelLab) -> None:
    """Of the program, and of who has asked."""
    first, second = join(Memory(page_of()).descriptor), join(None)
    asker.ask()
    first.event(is_question)
    gone = Asker(lab.socket)
    gone.ask()
    gone.connection.close()
    first.close()
    assert [each["report"] for each in asker.answer()["programs"]] in (["none"], ["late", "none"])
    second.close()


def test_sixty_five_programs(asker: Asker, join: Join, lab: AccelLab) -> None:
    before = asker.statistics()["totals"]["counts"]["ip_in"]
    for _ in range(SLOTS):
        join(Memory(page_of(count=3, sockets=1, table=socket_of())).descriptor)
    one_more = Program(lab.socket, hello=False)
    assert one_more.ask(HELLO, given=[Memory(page_of()).descriptor]).result == "ENOSPC"
    found = asker.statistics()
    assert len(found["programs"]) == SLOTS
    assert sum(len(each["sockets"]) for each in found["programs"]) == SLOTS
    assert found["totals"]["counts"]["ip_in"] == before + 3 * SLOTS
    one_more.close()


def test_descriptors_of_pages_do_not_pile_up(asker: Asker, join: Join, lab: AccelLab) -> None:
    assert lab.service
    folder = Path("/proc", str(lab.service.pid), "fd")
    program = join(None)
    asker.statistics()
    before = len(list(folder.iterdir()))
    page = Memory(page_of()).descriptor
    for _ in range(5):
        assert program.ask(HELLO, given=[page]).result == "EINVAL"
        asker.statistics()
    wait_until(lambda: len(list(folder.iterdir())) <= before, "the service to close what it was given")


def test_totals_stop_where_readers_of_json_do(asker: Asker, join: Join) -> None:
    """It comes last: the service does not forget it."""
    largest = join(Memory(page_of(count=LARGEST)).descriptor)
    assert set(reported(asker, largest)["totals"].values()) == {LARGEST}
    another = join(Memory(page_of(count=LARGEST)).descriptor)
    largest.close()
    wait_until(lambda: len(asker.statistics()["programs"]) == 1, "its end")
    assert set(reported(asker, another)["totals"].values()) == {LARGEST}
