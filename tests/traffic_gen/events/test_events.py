# SPDX-License-Identifier: Apache-2.0
"""Points in programs: all that a program did is in its stream, once, whatever happens to either of them."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import re
import resource
import signal
import struct
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np
import pytest

from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S, wait_until
from tests.traffic_gen.events.recording import recorder, stop

RING_KIB = 16384
"""More than any program here writes."""


def _record(
    tool: str, output: Path, *arguments: str, program: list[str], code: int = 0
) -> tuple[list[EventStream], str]:
    """Record a program; return its streams and what was said."""
    done = subprocess.run(
        [tool, "record", "--output", str(output), *arguments, "--", *program],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == code, done.stderr
    return read_event_streams(output), done.stderr + done.stdout


def _one(streams: list[EventStream]) -> EventStream:
    assert len(streams) == 1
    assert not streams[0].damaged_bytes
    return streams[0]


@contextmanager
def _until_killed(
    probe: str, environment: dict[str, str], page: Path
) -> Generator[tuple[subprocess.Popen[bytes], mmap.mmap]]:
    """Start a program that records for ever, with the page in which it counts calls that returned."""
    page.write_bytes(bytes(4096))
    with page.open("r+b") as file:
        done = mmap.mmap(file.fileno(), 4096)
        with subprocess.Popen([probe, "until-killed"], stdin=file, env=environment) as program:
            try:
                yield program, done
            finally:
                program.kill()


def _count(done: mmap.mmap) -> int:
    (count,) = struct.unpack("<Q", done[:8])
    return count


def _go_on(done: mmap.mmap, events: int) -> int:
    """Wait until so many more calls have returned; return how many have by then."""
    until = _count(done) + events
    wait_until(lambda: _count(done) >= until, "calls that return")
    return _count(done)


@pytest.mark.parametrize("variant", ["linux", "asan"])
def test_points_are_found_in_the_file_of_a_program(
    tool: str, repository: Path, variant: str, probe: str
) -> None:
    program = repository / ".build" / variant / "tests/traffic_gen/events-probe"
    if not program.exists():
        pytest.skip(f"tests are not built for {variant}")
    found = subprocess.run([tool, "list", "--json", str(program)], capture_output=True, text=True, check=True)
    points = {(each["group"], each["name"]): each for each in map(json.loads, found.stdout.splitlines())}
    assert {key: each["kind"] for key, each in points.items()} == {
        ("probe", "number"): "event",
        ("probe", "handler"): "event",
        ("other", "never"): "event",
        ("probe", "bytes"): "data",
        ("probe", "pause"): "interval",
        ("values", "total"): "counter",
        ("values", "spread"): "histogram",
    }
    spread = points["values", "spread"]
    assert (spread["low"], spread["high"], spread["buckets"]) == (-10, 90, 50)
    assert points["probe", "bytes"]["decoder"] == "bytes"


def test_what_is_no_program_is_named(tool: str, tmp_path: Path) -> None:
    whole = Path(tool).read_bytes()
    for name, content, says in (
        ("text", b"#!/bin/sh\n", "neither an ELF nor a PE file"),
        ("empty", b"", "neither an ELF nor a PE file"),
        ("cut", whole[: len(whole) // 2], "damaged"),
        ("big-endian", whole[:5] + b"\2" + whole[6:], "of another byte order"),
    ):
        file = tmp_path / name
        file.write_bytes(content)
        done = subprocess.run([tool, "list", str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert says in done.stderr


def test_each_event_is_there_once(tool: str, probe: str, tmp_path: Path) -> None:
    streams, said = _record(tool, tmp_path, "--ring-kib", str(RING_KIB), program=[probe, "count", "100000"])
    stream = _one(streams)
    pid = json.loads(said.splitlines()[-1])["pid"]
    order = stream.of("probe.number")
    assert np.array_equal(stream.tag[order], np.arange(100_000))
    assert set(stream.thread.tolist()) == {pid}
    assert (stream.program, stream.pid, stream.lost) == ("events-probe", pid, 0)
    assert sum(end.slots for end in stream.ends.values()) == 100_000


@pytest.mark.parametrize(("mode", "writers"), [("threads", 4), ("forks", 6)])
def test_threads_and_children_lose_nothing(
    tool: str, probe: str, tmp_path: Path, mode: str, writers: int
) -> None:
    count = 20_000
    made = writers if mode == "threads" else writers // 2
    streams, _ = _record(
        tool, tmp_path, "--ring-kib", str(RING_KIB), program=[probe, mode, str(made), str(count)]
    )
    stream = _one(streams)
    tags = stream.tag[stream.of("probe.number")]
    for writer in range(writers):
        own = tags[tags >> 32 == writer] & 0xFFFFFFFF
        assert np.array_equal(own, np.arange(count)), writer
    by_thread = {int(tag) >> 32 for tag in stream.tag}
    assert len(by_thread) == len(set(stream.thread.tolist())) == writers


def test_signal_handlers_may_record_in_between(tool: str, probe: str, tmp_path: Path) -> None:
    streams, said = _record(tool, tmp_path, "--ring-kib", "65536", program=[probe, "signals", "400000"])
    stream = _one(streams)
    handled = int(json.loads(said.splitlines()[-1])["handled"])
    assert handled > 0
    assert np.array_equal(stream.tag[stream.of("probe.number")], np.arange(400_000))
    assert np.array_equal(stream.tag[stream.of("probe.handler")], np.arange(int(handled)))


def test_bytes_come_with_their_event(tool: str, probe: str, tmp_path: Path) -> None:
    streams, _ = _record(tool, tmp_path, "--ring-kib", str(RING_KIB), program=[probe, "data", "3000"])
    stream = _one(streams)
    numbers = stream.of("probe.bytes")
    assert np.array_equal(stream.tag[numbers], np.arange(3000))
    assert np.array_equal(stream.size_bytes[numbers], np.arange(3000) % 150)
    for size in range(150):
        chosen = numbers[stream.size_bytes[numbers] == size]
        expected = np.repeat((stream.tag[chosen] & 0xFF).astype(np.uint8)[:, None], size, axis=1)
        assert np.array_equal(stream.data(chosen).reshape(len(chosen), size), expected)


def test_counters_histograms_intervals(tool: str, probe: str, tmp_path: Path) -> None:
    stream = _one(_record(tool, tmp_path, program=[probe, "values"])[0])
    added = np.arange(-20, 100)
    cells = np.histogram(added, np.linspace(-10, 90, 51))[0]
    cells[-1] -= 1  # numpy counts the upper end in its last bucket
    cells = np.concatenate([[10], cells, [10]])
    (total,), (spread,) = stream.of("values.total"), stream.of("values.spread")
    assert stream.tag[total] == stream.tag[spread] == added.sum()
    logged = stream.data(np.array([spread])).copy().view("<u8").reshape(-1)
    assert logged[0] == added.size
    assert np.array_equal(logged[1:], cells)
    assert (
        stream.totals[stream.number("values.total")].total,
        stream.totals[stream.number("values.total")].count,
    ) == (7, 1)
    assert np.array_equal(stream.totals[stream.number("values.spread")].cells, cells)
    pauses = stream.of("probe.pause")
    assert stream.tag[pauses].tolist() == [0, 1, 2]
    # By a clock of the same machine: no pause is shorter than it was asked for.
    first, last = [[each for each in stream.clocks if each.clock == "monotonic-raw"][at] for at in (0, -1)]
    ns_per_tick = (last.clock_ns - first.clock_ns) / max(1, last.before_ticks - first.before_ticks)
    assert (stream.lengths_ticks(pauses) * ns_per_tick >= 1.9e6).all()


def test_what_has_no_room_is_counted_at_its_place(tool: str, probe: str, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    with recorder(tool, tmp_path, "--ring-kib", "8") as (process, environment):
        stop(process)
        # In a ring of 256 slots are the first 256; the rest of the first program is lost.
        first = ["taskset", "-c", str(cpu), probe, "count", "1000"]
        subprocess.run(first, env=environment, check=True, timeout=HANG_S, stdout=subprocess.DEVNULL)
        process.send_signal(signal.SIGCONT)
        second = ["taskset", "-c", str(cpu), probe, "pace", "200000", "2000000"]
        subprocess.run(second, env=environment, check=True, timeout=HANG_S, stdout=subprocess.DEVNULL)
    assert process.returncode == 4
    streams = sorted(read_event_streams(tmp_path), key=lambda stream: stream.pid)
    for stream, sent in zip(streams, (1000, 200_000), strict=True):
        assert stream.tag.size + stream.lost == sent
        # One thread on one processor: what is missing before an event is what was lost before it.
        gaps = np.diff(stream.tag, prepend=-1) - 1
        assert np.array_equal(gaps, stream.lost_before)
    assert streams[0].tag.tolist() == list(range(256))
    assert sum(end.lost for end in streams[0].ends.values()) == 744


def test_a_program_that_is_killed_loses_nothing(tool: str, probe: str, tmp_path: Path) -> None:
    for trial in range(3):
        output = tmp_path / str(trial)
        with recorder(tool, output, "--ring-kib", "65536") as (_, environment):
            with _until_killed(probe, environment, tmp_path / "page") as (program, done):
                _go_on(done, 1000 + 7777 * trial)
            program.wait(HANG_S)
            returned = _count(done)
        stream = _one(read_event_streams(output))
        assert stream.tag.size + stream.lost in (returned, returned + 1)
        if not stream.lost:
            assert np.array_equal(np.sort(stream.tag), np.arange(stream.tag.size))


def test_a_recorder_that_is_killed_loses_nothing(tool: str, probe: str, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with recorder(tool, output, "--ring-kib", "65536") as (process, environment):
        with _until_killed(probe, environment, tmp_path / "page") as (program, done):
            _go_on(done, 20_000)
            process.kill()
            process.wait(HANG_S)
            _go_on(done, 20_000)
        program.wait(HANG_S)
        returned = _count(done)
    next_output = tmp_path / "next"
    _, said = _record(tool, next_output, program=[probe, "count", "1"])
    assert "a recording was killed: the rest of it" in said
    stream = _one(read_event_streams(output))
    assert stream.tag.size + stream.lost in (returned, returned + 1)
    assert np.unique(stream.tag).size == stream.tag.size


def test_points_are_turned_on_and_off_while_a_program_runs(tool: str, probe: str, tmp_path: Path) -> None:
    with (
        recorder(tool, tmp_path / "output", "--points", "other", "--ring-kib", "65536") as (_, environment),
        _until_killed(probe, environment, tmp_path / "page") as (_, done),
    ):
        folder = ["--folder", environment["BW_EVENTS"]]
        before_on = _go_on(done, 1000)
        subprocess.run([tool, "on", "probe.number", *folder], check=True, stdout=subprocess.DEVNULL)
        after_on = _count(done)
        shown = json.loads(subprocess.check_output([tool, "show", *folder]))
        assert set(shown["on"]) == {"other.never", "probe.number"}
        before_off = _go_on(done, 1000)
        subprocess.run([tool, "off", "pro*", *folder], check=True, stdout=subprocess.DEVNULL)
        after_off = _count(done)
        _go_on(done, 1000)
        unknown = subprocess.run([tool, "on", "nobody", *folder], capture_output=True, text=True, check=False)
        assert unknown.returncode == 4
        assert "no point of these names" in unknown.stderr
    stream = _one(read_event_streams(tmp_path / "output"))
    tags = np.sort(stream.tag)
    assert before_on <= tags[0]
    assert tags[-1] <= after_off + 1  # one may have begun before, and is counted behind it
    if not stream.lost:  # a recorder without a processor may have lost the first, or the last
        assert tags[0] <= after_on
        assert before_off <= tags[-1]
        assert np.array_equal(tags, np.arange(int(tags[0]), int(tags[-1]) + 1))


def test_two_who_turn_points_on_wait_for_each_other(tool: str, tmp_path: Path) -> None:
    """Each reads the list and writes it back: at once, one would take away what the other one has added."""
    with recorder(tool, tmp_path, "--points", "first") as (_, environment):
        folder = environment["BW_EVENTS"]
        with Path(folder, "control").open("r+b") as control:
            fcntl.lockf(control, fcntl.LOCK_EX)
            with subprocess.Popen(
                [tool, "on", "second", "--folder", folder], stdout=subprocess.DEVNULL
            ) as other:
                waits = re.compile(rf"-> POSIX .* {other.pid} ")
                wait_until(
                    lambda: (
                        other.poll() is not None or waits.search(Path("/proc/locks").read_text()) is not None
                    ),
                    "the other one waits or ends",
                )
                assert other.poll() is None
                fcntl.lockf(control, fcntl.LOCK_UN)
                assert other.wait(HANG_S) == 0


def test_a_daemon_that_closes_all_is_collected_to_its_end(tool: str, probe: str, tmp_path: Path) -> None:
    stream = _one(_record(tool, tmp_path, program=[probe, "daemon", "5000"])[0])
    assert np.array_equal(np.sort(stream.tag), np.arange(5000))


def test_names_are_chosen(tool: str, probe: str, tmp_path: Path) -> None:
    chosen = {
        "group": ["--points", "values"],
        "all but": ["--points", "-probe"],
        "pattern": ["--points", "*.tot*", "--points", "va*.spread"],
    }
    for name, arguments in chosen.items():
        stream = _one(_record(tool, tmp_path / name, *arguments, program=[probe, "values"])[0])
        names = {stream.points[int(number)].full_name for number in np.unique(stream.point)}
        assert names == {"values.total", "values.spread"}, name


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--points", "nobody", "--", "PROBE", "count", "1"], 4, "events-probe itself has 7 points, none"),
        (["--points", "nobody", "--", "PROBE", "count", "1"], 4, "no program or library had a point of"),
        (["--points", "a b", "--", "PROBE", "count", "1"], 2, "names no points"),
        (["--", "/nowhere/program"], 2, "No such file or directory"),
        (["--ring-kib", "1", "--", "PROBE"], 2, "ring-kib"),
        (["--", "true"], 4, "0 programs"),
        (["--", "PROBE", "no-such-mode"], 5, "the program ended with 2"),
    ],
)
def test_bad_input_is_named(
    tool: str, probe: str, tmp_path: Path, arguments: list[str], code: int, says: str
) -> None:
    command = [probe if word == "PROBE" else word for word in arguments]
    done = subprocess.run(
        [tool, "record", "--output", str(tmp_path), *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert says in done.stderr


def test_nothing_is_recorded_by_a_stranger_of_the_environment(probe: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [probe, "count", "1"], env={**os.environ, "BW_EVENTS": "/nowhere"}, capture_output=True, check=True
    )
    assert not ended.stderr
    (tmp_path / "control").write_bytes(b"something else" * 20_000)
    damaged = subprocess.run(
        [probe, "count", "1"],
        env={**os.environ, "BW_EVENTS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "no event is recorded" in damaged.stderr


def _read_line(stream: IO[str] | None) -> str:
    assert stream
    return stream.readline()


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_recording_and_its_program(
    tool: str, probe: str, tmp_path: Path, ended_by: signal.Signals
) -> None:
    page = tmp_path / "page"
    page.write_bytes(bytes(4096))
    with page.open("r+b") as file:
        done = mmap.mmap(file.fileno(), 4096)
        command = [
            tool,
            "record",
            "--output",
            str(tmp_path),
            "--ring-kib",
            "65536",
            "--",
            probe,
            "until-killed",
        ]
        with subprocess.Popen(command, stdin=file, stderr=subprocess.PIPE, text=True) as recorder:
            wait_until(lambda: _count(done) > 1000, "calls that return")
            recorder.send_signal(ended_by)
            said = _read_line(recorder.stderr)
            recorder.wait(HANG_S)
    assert "1 programs" in said
    assert recorder.returncode == 5  # the program ended by a signal
    stream = _one(read_event_streams(tmp_path))
    assert stream.tag.size + stream.lost in (_count(done), _count(done) + 1)


def test_each_program_under_one_number_is_there(
    tool: str, probe: str, tmp_path: Path, events_memory: Path
) -> None:
    """In containers every program has the number 1; a number that lives on belongs to another program."""
    run = f"unshare --pid --fork {probe} count 5"
    collected = f"while ls {events_memory}/*/*.rings > /dev/null 2>&1; do sleep 0.01; done"
    script = f"{run}; {collected}; {run}; {collected}; {run}"
    streams, _ = _record(tool, tmp_path, program=["sh", "-c", script])
    assert [stream.tag.tolist() for stream in streams] == [list(range(5))] * 3
    assert {stream.pid for stream in streams} == {1}


@pytest.mark.parametrize("resumed", [True, False])
def test_more_programs_than_a_recorder_may_open_files(
    tool: str, probe: str, tmp_path: Path, *, resumed: bool
) -> None:
    """Whether it has time to collect some before others, or ends at once."""
    with recorder(tool, tmp_path, "--ring-kib", "8") as (process, environment):
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (16, 16))
        stop(process)
        for _ in range(20):
            subprocess.run([probe, "count", "5"], env=environment, check=True, stdout=subprocess.DEVNULL)
        if not resumed:
            process.terminate()
        process.send_signal(signal.SIGCONT)
        if resumed:
            wait_until(lambda: len(list(tmp_path.iterdir())) == 20, "all are collected")
    assert process.returncode == 0
    assert [stream.tag.tolist() for stream in read_event_streams(tmp_path)] == [list(range(5))] * 20


def test_texts_of_a_point_that_are_too_long_are_not_compiled(repository: Path) -> None:
    for about, fits in ((143 * "a", True), (144 * "a", False), (145 * "a", False)):
        source = f'#include <bwevents.h>\nBW_EVENT_POINT(it, "{23 * "g"}", "{39 * "n"}", "{about}");\n'
        compiler = ["gcc", "-fsyntax-only", f"-I{repository / 'traffic-gen/events'}", "-x", "c", "-"]
        done = subprocess.run(compiler, input=source, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) is fits, done.stderr
        assert ("it_texts_fit" in done.stderr) is not fits
