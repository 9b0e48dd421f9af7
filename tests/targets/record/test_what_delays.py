# SPDX-License-Identifier: Apache-2.0
"""what_delays.py: of made-up programs the fault of each, at its place and cost; of repaired ones none."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.targets.record.made_up import READER_FOLDER, Program, what_delays

ROUNDS = 30
CASES = 8
"""Of each program on a busy machine, a seed each."""
TCP_NODELAY = {"level": 6, "option": 1, "value": 1}


def writes(program: Program, *, repaired: bool) -> None:
    program.connect()
    if repaired:
        program.call("setsockopt", socket=1, **TCP_NODELAY)
    for turn in range(ROUNDS):
        program.send(4)
        program.send(28)
        program.receive(32, 32, took_ms=0.1 if repaired or not turn else 40.1)


def small_buffer(program: Program, *, repaired: bool) -> None:
    program.connect()
    for _ in range(ROUNDS):
        program.send()
        room = 8192 if repaired else 512
        for piece in range(8192 // room):
            program.receive(room, room, took_ms=0.005 if piece else 0.1)


def small_buffer_never_blocking(program: Program, *, repaired: bool) -> None:
    """Nothing is sent; each message is read until nothing is there."""
    program.connect()
    for _ in range(ROUNDS):
        program.select(0.5, -1, 1)
        for size in [1000] if repaired else [256, 256, 256, 232]:
            program.receive(size, 2000 if repaired else 256)
        program.nothing_there()


def sleep(program: Program, *, repaired: bool) -> None:
    program.connect()
    for _ in range(ROUNDS):
        if not repaired:
            program.call("sleep", 10.1, timeout_ns=10_000_000)
        program.receive(32, 64, took_ms=5 if repaired else 0.005)
        program.send()
        if not repaired:
            program.nothing_there()


def timeout(program: Program, *, repaired: bool) -> None:
    """Wait for another socket, which has never anything, with a time-out."""
    program.connect()
    program.connect(2)
    for _ in range(ROUNDS):
        if repaired:
            program.select(5, 20, 1)
        else:
            program.select(20.1, 20)
        program.receive(32, 64)


def one_thread(program: Program, *, repaired: bool) -> None:
    sockets = range(1, 5)
    for socket in sockets:
        program.connect(socket)
    for _ in range(ROUNDS):
        if not repaired:
            program.select(0.1, -1, *sockets)
        for socket in sockets:
            thread = 1 + socket if repaired else 1
            program.receive(32, 64, 6 if repaired else 0.005, socket, thread)
            program.own(2, thread)
            program.send(32, socket, thread)


def name(program: Program, *, repaired: bool) -> None:
    program.connect()
    for turn in range(ROUNDS):
        if not repaired or not turn:
            program.call("resolve", 0.5, name="server")
        program.send()
        program.receive(32, 64, took_ms=0.1)


def late(program: Program, *, repaired: bool) -> None:
    program.connect()
    for _ in range(10 * ROUNDS):
        program.own(0.01 if repaired else 2)
        program.receive(16384, 16384, took_ms=0.01)


def late_behind_waits(program: Program, *, repaired: bool) -> None:
    """Ask select before each read; it says at once that there is something."""
    program.connect()
    for _ in range(10 * ROUNDS):
        program.own(0.01 if repaired else 2)
        program.select(0.005, -1, 1)
        program.receive(16384, 16384, took_ms=0.01)


SMALL_WRITES = "small writes wait for an acknowledgement"
BUFFER = "a receive buffer is smaller than a message"
PACED = "a time-out or sleep paces the data path"
SHARED = "one thread is behind many sockets"
NAME = "a name is looked up in the data path"
LATE = "the reader comes late"
TRUTH: list[tuple[Callable[..., None], str, str, float]] = [
    # Program, fault, part of the place, and cost in ms.
    (writes, SMALL_WRITES, "socket 1, TCP with 10.0.0.2:7001", (ROUNDS - 1) * 40.0),
    (small_buffer, BUFFER, "socket 1, TCP with 10.0.0.2:7001", (ROUNDS - 1) * 15 * 0.006),
    (small_buffer_never_blocking, BUFFER, "socket 1,", ROUNDS * 3 * 0.006),
    (sleep, PACED, "socket 1, TCP with 10.0.0.2:7001, thread 1", ROUNDS * 10.1),
    (timeout, PACED, "socket 1, TCP with 10.0.0.2:7001, thread 1", ROUNDS * 20.1),
    (one_thread, SHARED, "thread 1, 4 sockets: 1, 2, 3, 4", ROUNDS * 3 * 2.0),
    (name, NAME, "thread 1; socket 1, TCP with 10.0.0.2:7001", (ROUNDS - 1) * 0.5),
    (late, LATE, "socket 1, TCP with 10.0.0.2:7001, thread 1", (10 * ROUNDS - 1) * 2.0),
    (late_behind_waits, LATE, "socket 1,", (10 * ROUNDS - 1) * 2.0),
]


def found_in(program: Program, folder: Path) -> list[tuple[str, str, float]]:
    """Return fault, place and cost in ms of all findings."""
    module = what_delays()
    trace = module.timed_calls.read(program.write(folder / "record.ndjson"))
    assert list(module.page_of("record", trace))
    return [(each.fault, each.where, each.cost_ns / 1e6) for each in module.findings_of(trace)]


@pytest.mark.parametrize("windows", [False, True], ids=["linux", "windows"])
@pytest.mark.parametrize(("run", "fault", "place", "cost_ms"), TRUTH)
def test_the_fault_is_named_with_its_place_and_cost(
    tmp_path: Path, run: Callable[..., None], fault: str, place: str, cost_ms: float, windows: bool
) -> None:
    program = Program(windows=windows)
    run(program, repaired=False)
    ((named, where, named_ms),) = found_in(program, tmp_path)
    assert named == fault
    assert place in where
    assert named_ms == pytest.approx(cost_ms, rel=0.05)
    program = Program(windows=windows)
    run(program, repaired=True)
    assert found_in(program, tmp_path) == []


@pytest.mark.parametrize(("run", "fault"), [row[:2] for row in TRUTH])
def test_a_busy_machine_changes_no_verdict(tmp_path: Path, run: Callable[..., None], fault: str) -> None:
    for seed in range(CASES):
        for repaired in (False, True):
            program = Program(windows=bool(seed % 2), stalls=random.Random(seed))
            run(program, repaired=repaired)
            named = [each for each, _, _ in found_in(program, tmp_path)]
            assert named == ([] if repaired else [fault]), f"seed {seed}"


def peer_that_takes_its_time(program: Program) -> None:
    """As long as a delayed acknowledgement, but so with single writes, too."""
    program.connect()
    for turn in range(2 * ROUNDS):
        program.send(4)
        if turn % 2:
            program.send(28)
        program.receive(32, 32, took_ms=45)


def slow_answers(program: Program) -> None:
    """Longer than a delayed acknowledgement of Linux, shorter than one of Windows."""
    program.connect()
    for _ in range(ROUNDS):
        program.send(4)
        program.send(28)
        program.receive(32, 32, took_ms=100)


def listener_without_delay(program: Program) -> None:
    program.call("socket", socket=1, domain=2, type=1)
    program.call("setsockopt", socket=1, **TCP_NODELAY)
    program.call("accept", socket=1, accepted=2, peer=["10.0.0.2", 7001])
    for _ in range(ROUNDS):
        program.send(4, socket=2)
        program.send(28, socket=2)
        program.receive(32, 32, 40.1, socket=2)


def socket_of_before(program: Program) -> None:
    """Its options are not in the record."""
    for _ in range(ROUNDS):
        program.send(4)
        program.send(28)
        program.receive(32, 32, took_ms=40.1)


def head_and_body(program: Program) -> None:
    program.connect()
    for _ in range(ROUNDS):
        program.send()
        program.receive(4, 4, took_ms=0.1)
        program.receive(600, 600)


def bulk(program: Program) -> None:
    """Cut by the path: nobody says where a message ends."""
    program.connect()
    for _ in range(ROUNDS):
        for size in (16384, 16384, 16384, 16331):
            program.receive(size, 16384, took_ms=0.01)


def schedule(program: Program) -> None:
    """It asks every ten milliseconds, and has its answer soon."""
    program.connect()
    for _ in range(ROUNDS):
        program.call("sleep", 10.1, timeout_ns=10_000_000)
        program.send()
        program.receive(32, 64, took_ms=0.1)


def idle(program: Program) -> None:
    """Waits for the socket end without data, then with some."""
    program.connect()
    for _ in range(ROUNDS):
        program.select(20.1, 20)
        program.select(3, 20, 1)
        program.receive(32, 64)


def quick_rounds(program: Program) -> None:
    for socket in (1, 2):
        program.connect(socket)
    for _ in range(ROUNDS):
        program.select(5, -1, 1, 2)
        for socket in (1, 2):
            program.receive(32, 64, socket=socket)
            program.send(32, socket)


def addresses(program: Program) -> None:
    program.connect()
    for _ in range(ROUNDS):
        for address in ("10.0.0.2", "fe80::1%eth0"):
            program.call("resolve", 0.5, name=address)
        program.send()
        program.receive(32, 64, took_ms=0.1)


def interrupted_reader(program: Program) -> None:
    """A fast reader that loses the processor for 5 ms now and then."""
    program.connect()
    for turn in range(1000):
        program.own(0.01 if turn % 20 else 5)
        program.receive(16384, 16384)


def few(program: Program) -> None:
    """Every fault, and none often."""
    program.connect()
    for _ in range(200):
        program.send(100)
        program.receive(32, 64, took_ms=1)
    for _ in range(4):
        program.send(4)
        program.send(28)
        program.receive(32, 32, took_ms=40)
        program.call("sleep", 10.1, timeout_ns=10_000_000)
        program.receive(64, 64)
        program.own(5)
        program.receive(64, 64)


INNOCENT = [
    *(peer_that_takes_its_time, slow_answers, listener_without_delay, socket_of_before, head_and_body, bulk),
    *(schedule, idle, quick_rounds, addresses, interrupted_reader, few),
]


@pytest.mark.parametrize("run", INNOCENT)
def test_what_the_record_does_not_show_is_not_named(tmp_path: Path, run: Callable[[Program], None]) -> None:
    for windows in (False, True):
        program = Program(windows=windows)
        run(program)
        assert found_in(program, tmp_path) == []
        text = subprocess.run(
            [sys.executable, str(READER_FOLDER / "what_delays.py"), str(tmp_path / "record.ndjson")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert text.endswith("\nnothing that the record shows\n")


def test_operations_that_end_elsewhere_are_calls_from_begin_to_end(tmp_path: Path) -> None:
    """The reads are begun before the writes, and end at a port."""
    program = Program(windows=True)
    program.connect()
    for turn in range(1, ROUNDS + 1):
        operation = {"socket": 1, "operation": turn}
        program.call("receive", asked=32, flags=0, errno="WSA_IO_PENDING", **operation)
        program.send(4)
        program.send(28)
        program.call("wait", 40.1, timeout_ns=-1, ready=[], result=1)
        program.call("receive", 0, result=32, **operation)
        program.lines[-1]["function"] = "completion"
    ((fault, _, cost_ms),) = found_in(program, tmp_path)
    assert fault == SMALL_WRITES
    assert cost_ms == pytest.approx(ROUNDS * 40, rel=0.05)


def test_datagrams_that_were_cut_cost_data(tmp_path: Path) -> None:
    program = Program(windows=True)
    program.connect(kind=2)
    program.receive(10, 500)
    program.call("receive", socket=1, asked=500, flags=0, errno="WSAEMSGSIZE")
    ((fault, where, cost_ms),) = found_in(program, tmp_path)
    assert (fault, cost_ms) == (BUFFER, 0)
    assert "UDP" in where


def test_calls_within_a_call_are_not_the_programs_own(tmp_path: Path) -> None:
    """What a look-up does of itself is neither a transfer of the program nor its time."""
    program = Program(windows=True)
    program.connect()
    program.call("resolve", 10, name="server")
    outer = program.lines[-1]
    inner = {"begin_monotonic_ns": outer["begin_monotonic_ns"] + 5, "duration_ns": 5, "call": "send"}
    program.lines.append({**outer, **inner, "socket": 2, "asked": 5, "result": 5})
    program.send()
    trace = what_delays().timed_calls.read(program.write(tmp_path / "record.ndjson"))
    assert [call.call for call in trace.calls] == ["socket", "connect", "resolve", "send"]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"state": "complete"', '"state": "open"', "no whole record: .*not ended in order: 'open'"),
        ('"lost": 0', '"lost": 3', "no whole record: .*3 calls are not in the record"),
        ('"begin_monotonic_ns"', '"begin"', "line 2: .*an older recorder"),
        ('"duration_ns": ', '"duration_ns": -', "line 2: .*allowed: 0 and more"),
        ('"process": 9', '"process": 1e999', "line 2: .*infinity"),
        ('"type": 1', '"type": "one"', "line 2: .*'one'"),
    ],
)
def test_what_is_no_whole_record_is_refused(tmp_path: Path, old: str, new: str, reason: str) -> None:
    program = Program(windows=True)
    program.connect()
    file = program.write(tmp_path / "record.ndjson")
    file.write_text(file.read_text().replace(old, new))
    argv = [sys.executable, str(READER_FOLDER / "what_delays.py"), str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.search(re.escape(str(file)) + ".*" + reason, done.stderr), done.stderr


def test_without_data_nothing_is_said(tmp_path: Path) -> None:
    program = Program(windows=True)
    program.connect()
    program.lines.append(
        {"process": 9, "begin_monotonic_ns": 5, "duration_ns": 0, "note": "asks Registered I/O"}
    )
    module = what_delays()
    trace = module.timed_calls.read(program.write(tmp_path / "record.ndjson"))
    page = list(module.page_of("record", trace))
    assert "note: asks Registered I/O" in page
    assert page[-1] == "no data has gone through its sockets: nothing can be said"


@pytest.mark.parametrize("windows", [False, True], ids=["linux", "windows"])
def test_no_damage_breaks_the_reader(tmp_path: Path, windows: bool) -> None:
    module, file = what_delays(), tmp_path / "record.ndjson"
    program = Program(windows=windows)
    for run in (writes, one_thread, name):
        run(program, repaired=False)
    whole = program.write(file).read_bytes()[:6000]
    draw = random.Random(68)
    for _ in range(400):
        damaged = bytearray(whole[: draw.randint(1, len(whole))])
        for _ in range(draw.randint(0, 4)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        file.write_bytes(damaged)
        with suppress(ValueError):
            assert list(module.page_of("record", module.timed_calls.read(file)))
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=re.escape(str(file))):
        module.timed_calls.read(file)
