# SPDX-License-Identifier: Apache-2.0
"""Several streams of one recording: histories that a trigger writes, and filters."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S, wait_until
from tests.traffic_gen.events.recording import recorder

ROOM_KIB = 8
SLOTS = ROOM_KIB * 32


def _written(folder: Path, text: str) -> Path:
    path = folder / "streams.toml"
    path.write_text(text)
    return path


def _record(
    tool: str, folder: Path, streams: str, *program: str, code: int = 0
) -> tuple[dict[str, EventStream], str]:
    command = [tool, "record", "--output", str(folder / "out"), "--streams", str(_written(folder, streams))]
    done = subprocess.run(
        [*command, "--", *program], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == code, done.stderr
    return {stream.stream: stream for stream in read_event_streams(folder / "out")}, done.stderr


def test_each_stream_has_its_own_points(tool: str, probe: str, tmp_path: Path) -> None:
    streams, _ = _record(
        tool,
        tmp_path,
        """
        [[stream]]
        name = "numbers"
        points = "probe.number"
        [[stream]]
        name = "values"
        points = "values -values.total"
        """,
        probe,
        "values",
    )
    assert set(streams) == {"numbers", "values"}
    assert not streams["numbers"].tag.size
    values = streams["values"]
    assert {values.points[int(number)].full_name for number in np.unique(values.point)} == {"values.spread"}
    assert values.totals[values.number("values.spread")].count == 120
    assert values.totals[values.number("values.total")].count == 0


def test_a_filter_passes_on_what_it_says(tool: str, probe: str, tmp_path: Path) -> None:
    streams, _ = _record(
        tool,
        tmp_path,
        """
        [[stream]]
        name = "all"
        [[stream]]
        name = "some"
        [[filter]]
        stream = "some"
        points = "probe.number"
        min = 1000
        max = 1999
        every = 10
        """,
        probe,
        "count",
        "5000",
    )
    assert np.array_equal(np.sort(streams["all"].tag), np.arange(5000))
    assert np.array_equal(np.sort(streams["some"].tag), np.arange(1000, 2000, 10))


def test_the_value_of_a_filter_is_what_comes_with_the_event(tool: str, probe: str, tmp_path: Path) -> None:
    streams, _ = _record(
        tool,
        tmp_path,
        f"""
        [[stream]]
        name = "some"
        [[filter]]
        stream = "some"
        min = {int.from_bytes(bytes([200] * 8), "little", signed=True)}
        max = {int.from_bytes(bytes([210] * 8), "little", signed=True)}
        """,
        probe,
        "data",
        "1000",
    )
    stream = streams["some"]
    numbers = np.arange(1000)
    with_value = numbers[(numbers % 150 >= 8) & (numbers & 0xFF >= 200) & (numbers & 0xFF <= 210)]
    assert np.array_equal(np.sort(stream.tag), with_value)


def _history(trigger: str, after_ms: int = 0) -> str:
    return f"""
        [[stream]]
        name = "before"
        kind = "history"
        points = "probe"
        trigger = "{trigger}"
        after_ms = {after_ms}
        ring_kib = {ROOM_KIB}
        """


def test_the_end_writes_the_newest(tool: str, probe: str, tmp_path: Path) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    streams, said = _record(tool, tmp_path, _history("end"), "taskset", "-c", cpu, probe, "count", "100000")
    stream = streams["before"]
    assert stream.tag.tolist() == list(range(100_000 - SLOTS, 100_000))
    assert [each.cause for each in stream.triggers] == ["end"]
    assert "1 histories written" in said
    assert stream.lost == 0


def test_without_a_trigger_nothing_is_written(tool: str, probe: str, tmp_path: Path) -> None:
    streams, said = _record(tool, tmp_path, _history("probe.handler"), probe, "count", "100000")
    assert not streams["before"].tag.size
    assert "0 histories written" in said


def test_an_event_writes_what_was_before_it(tool: str, probe: str, tmp_path: Path) -> None:
    # The handler's first event triggers; what was recorded before it is there, up to the ring's room.
    streams, _ = _record(
        tool,
        tmp_path,
        _history("probe.handler").replace(f"{ROOM_KIB}\n", "65536\n"),
        probe,
        "signals",
        "300000",
    )
    stream = streams["before"]
    first = stream.triggers[0]
    assert (first.cause, first.tag) == ("event", 0)
    handlers = stream.of("probe.handler")
    assert stream.ticks[handlers[0]] == first.ticks
    before = stream.tag[stream.of("probe.number")][: np.count_nonzero(stream.ticks < first.ticks)]
    assert before.size
    assert np.array_equal(before, np.arange(before.size))


def _histories(output: Path) -> int:
    """Return how many histories a recording that runs has written so far."""
    try:
        return sum(len(stream.triggers) for stream in read_event_streams(output))
    except RecordError:  # a file that is just being made
        return -1


@pytest.mark.parametrize("by", ["command", "signal"])
def test_a_command_writes_the_histories_of_all_programs(
    tool: str, probe: str, tmp_path: Path, by: str
) -> None:
    streams = _written(tmp_path, _history("probe.handler"))
    pages = [tmp_path / f"page-{number}" for number in range(2)]
    output = tmp_path / "out"
    with (
        recorder(tool, output, "--streams", str(streams)) as (process, environment),
        ExitStack() as started,
    ):
        done: list[mmap.mmap] = []
        programs: list[subprocess.Popen[bytes]] = []
        for page in pages:
            page.write_bytes(bytes(4096))
            with page.open("r+b") as file:
                done.append(mmap.mmap(file.fileno(), 4096))
                programs.append(subprocess.Popen([probe, "until-killed"], stdin=file, env=environment))
                started.callback(programs[-1].kill)
        for times in range(2):
            counts = [struct.unpack("<Q", each[:8])[0] for each in done]
            wait_until(
                lambda counts=counts: all(
                    struct.unpack("<Q", each[:8])[0] > count + 5000
                    for each, count in zip(done, counts, strict=True)
                ),
                "events",
            )
            if by == "command":
                subprocess.run([tool, "trigger", "--folder", environment["BW_EVENTS"]], check=True)
            else:
                process.send_signal(signal.SIGUSR1)
            wait_until(lambda times=times: _histories(output) == 2 * (times + 1), "histories")
        for program in programs:
            program.kill()
            program.wait(HANG_S)
    for stream in read_event_streams(output):
        assert [each.cause for each in stream.triggers] == ["command", "command"]
        assert SLOTS < stream.tag.size <= 2 * 2 * SLOTS
        # Of each processor the newest are there, without a gap.
        for ring in np.unique(stream.ring):
            assert (np.diff(stream.tag[stream.ring == ring]) > 0).all()


def test_what_is_recorded_after_the_trigger_is_there(tool: str, probe: str, tmp_path: Path) -> None:
    text = _history("probe.pause", after_ms=20).replace(f"{ROOM_KIB}\n", "1024\n")
    streams, _ = _record(tool, tmp_path, text, probe, "values")
    # Three pauses of 2 ms: the first one triggers, the others come within the time after it.
    assert streams["before"].tag[streams["before"].of("probe.pause")].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "stream"),
        ('[[stream]]\nname = "a b"', "allowed: letters, digits"),
        ('[[stream]]\nname = "a"\n[[stream]]\nname = "a"', "is there twice"),
        ('[[stream]]\nname = "a"\nkind = "history"', "trigger: is missing"),
        ('[[stream]]\nname = "a"\ntrigger = "x"', "only a history has triggers"),
        ('[[stream]]\nname = "a"\nafter_ms = 3', "only a history has triggers"),
        ('[[stream]]\nname = "a"\nring_kib = 1', "ring_kib: 1 is out of range; allowed 8..2097152"),
        ('[[stream]]\nname = "a"\n[[filter]]\nstream = "b"', "there is no such [[stream]]"),
        ('[[stream]]\nname = "a"\n[[filter]]\nstream = "a"\nmin = 2\nmax = 1', "min: is above max"),
        ('[[stream]]\nname = "a"\n[[filter]]\nstream = "a"\nevery = 0', "every"),
        ('[[stream]]\nname = "a"\npoint = "x"', "point"),
        (
            "\n".join(f'[[stream]]\nname = "s{number}"' for number in range(9)),
            "one stream too many; allowed 1..8",
        ),
    ],
)
def test_a_wrong_file_is_named(tool: str, tmp_path: Path, text: str, says: str) -> None:
    path = _written(tmp_path, text)
    done = subprocess.run(
        [tool, "record", "--output", str(tmp_path), "--streams", str(path), "--", "true"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 2
    assert str(path) in done.stderr
    assert says in done.stderr


def test_streams_and_points_do_not_go_together(tool: str, tmp_path: Path) -> None:
    path = _written(tmp_path, '[[stream]]\nname = "a"')
    command = [tool, "record", "--output", str(tmp_path), "--streams", str(path), "--points", "x"]
    done = subprocess.run([*command, "--", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "not together with --points" in done.stderr
