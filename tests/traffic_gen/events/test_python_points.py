# SPDX-License-Identifier: Apache-2.0
"""Points of a program in Python are recorded like those of C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reports.timeline.event_stream_file import read_event_stream, read_event_streams
from tests.patience import HANG_S

POINTS = """
program = "of python"
[[point]]
group = "work"
name = "step"
kind = "event"
about = "a step; tag: its number"
[[point]]
group = "work"
name = "bytes"
kind = "data"
decoder = "<q"
[[point]]
group = "work"
name = "pass"
kind = "interval"
[[point]]
group = "work"
name = "sum"
kind = "counter"
[[point]]
group = "work"
name = "spread"
kind = "histogram"
low = -5
high = 5
buckets = 10
"""

PROGRAM = """
import os, struct, sys, threading
from pathlib import Path
import bwevents

points = bwevents.Points(Path(sys.argv[1]))
def steps(first):
    for number in range(first, first + 100):
        points.event("work.step", tag=number)
threads = [threading.Thread(target=steps, args=(first,)) for first in (0, 100)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
if not child:
    steps(200)
    os._exit(0)
os.waitpid(child, 0)
for number in (1, -(2**63)):
    points.event("work.bytes", number, struct.pack("<q", number))
with points.interval("work.pass", tag=3):
    pass
for value in range(-8, 8):
    points.add("work.sum", value)
    points.add("work.spread", value)
points.log("work.spread")
print(points.records, points.is_on("work.step"))
points.close()
points.close()
points.event("work.step", tag=9999)
"""


@pytest.fixture
def environment(repository: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Give what a program needs to find module and library."""
    library = repository / ".build/linux/traffic-gen/events/libbwevents.so"
    monkeypatch.setenv("BWEVENTS_LIBRARY", str(library))
    monkeypatch.setenv("PYTHONPATH", str(repository / "traffic-gen/events/python"))
    return dict(os.environ)


def _written(folder: Path, text: str) -> Path:
    path = folder / "points.toml"
    path.write_text(text)
    return path


def test_all_that_python_does_is_there(tool: str, tmp_path: Path, environment: dict[str, str]) -> None:
    points = _written(tmp_path, POINTS)
    output = tmp_path / "events"
    command = [tool, "record", "--output", str(output), "--", sys.executable, "-c", PROGRAM, str(points)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=HANG_S
    )
    assert done.stdout == "True True\n"
    (stream,) = read_event_streams(output)
    assert stream.program == "of_python"
    steps = stream.of("work.step")
    assert np.sort(stream.tag[steps]).tolist() == list(range(300))
    assert len(set(stream.thread[steps].tolist())) == 3
    data = stream.of("work.bytes")
    assert np.ascontiguousarray(stream.data(data)).view("<q").reshape(-1).tolist() == [1, -(2**63)]
    (whole,) = stream.of("work.pass")
    assert stream.tag[whole] == 3
    assert 0 < stream.lengths_ticks(np.array([whole]))[0] < 10**10
    assert stream.totals[stream.number("work.sum")].total == sum(range(-8, 8))
    cells = [3, *([1] * 10), 3]
    assert stream.totals[stream.number("work.spread")].cells.tolist() == cells
    (logged,) = stream.of("work.spread")
    assert stream.data(np.array([logged])).copy().view("<u8").reshape(-1).tolist() == [16, *cells]


def test_without_a_recording_nothing_happens(tmp_path: Path, environment: dict[str, str]) -> None:
    points = _written(tmp_path, POINTS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(points)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert (done.stdout, done.stderr) == ("False False\n", "")


@pytest.mark.parametrize(
    ("wrong", "instead", "says"),
    [
        ('kind = "event"', 'kind = "evnt"', "point 1: kind: 'evnt'; allowed: event, data"),
        ('kind = "event"', 'kind = "event"\nlow = 3', "point 1: unknown key low"),
        ('decoder = "<q"', "", "point 2: decoder is missing"),
        ("high = 5", "high = -5", "point 5: low must be below high"),
        ("buckets = 10", "buckets = 501", "buckets 1 to 500"),
        ("low = -5", "low = 0.5", "point 5: low: 0.5"),
        ('name = "step"', f'name = "{"n" * 40}"', "point 1: name"),
        ('name = "bytes"', 'name = "step"', "a group has a name twice"),
        ('name = "spread"', 'name = "step"', "a group has a name twice"),
        ('name = "step"', 'name = "st.ep"', "a group has a name twice, or one has a space"),
        ('program = "of python"', "", "program: None"),
        ('program = "of python"', 'program = "p"\nother = 1', "unknown key other"),
    ],
)
def test_a_wrong_file_is_named(
    tool: str, tmp_path: Path, environment: dict[str, str], wrong: str, instead: str, says: str
) -> None:
    assert wrong in POINTS
    points = _written(tmp_path, POINTS.replace(wrong, instead, 1))
    program = "import bwevents, sys, pathlib; bwevents.Points(pathlib.Path(sys.argv[1]))"
    command = [tool, "record", "--output", str(tmp_path), "--", sys.executable, "-c", program, str(points)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 5
    assert "PointsError" in done.stderr
    assert says in done.stderr
    assert str(points) in done.stderr
    listed = subprocess.run([tool, "list", str(points)], capture_output=True, text=True, check=False)
    assert listed.returncode == 2
    assert str(points) in listed.stderr


def test_points_are_found_in_a_file_of_names(tool: str, tmp_path: Path) -> None:
    found = subprocess.check_output([tool, "list", "--json", str(_written(tmp_path, POINTS))], text=True)
    assert [json.loads(line) for line in found.splitlines()] == [
        {"group": "work", "name": "step", "kind": "event", "about": "a step; tag: its number"},
        {"group": "work", "name": "bytes", "kind": "data", "decoder": "<q", "about": ""},
        {"group": "work", "name": "pass", "kind": "interval", "about": ""},
        {"group": "work", "name": "sum", "kind": "counter", "about": ""},
        {
            "group": "work",
            "name": "spread",
            "kind": "histogram",
            "low": -5,
            "high": 5,
            "buckets": 10,
            "about": "",
        },
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (POINTS.replace('kind = "event"', 'kind = "evnt"'), ':6: [[point]] name "step": kind: "evnt"'),
        (POINTS.replace("buckets = 10", ""), "buckets: missing; a point of kind histogram has it"),
        (POINTS.replace('program = "of python"', ""), ": program is missing"),
        (POINTS.replace('program = "of python"', "program = 1"), ":2: before the first table: program:"),
        (f"{POINTS}[[point]]", "group: missing"),
        ('program = "p"\n', ": table [[point]] is missing"),
        ("", "is missing"),
        ("program =", ":1: "),
    ],
)
def test_what_is_wrong_in_a_file_of_names_is_listed(tool: str, tmp_path: Path, text: str, says: str) -> None:
    points = _written(tmp_path, text)
    listed = subprocess.run([tool, "list", str(points)], capture_output=True, text=True, check=False)
    assert listed.returncode == 2
    assert not listed.stdout
    assert listed.stderr.startswith(f"bw-events list: {points}:")
    assert says in listed.stderr


def test_a_stream_of_python_is_whole_after_a_kill(
    tool: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    points = _written(tmp_path, POINTS)
    program = """
import os, signal, sys, bwevents
from pathlib import Path
points = bwevents.Points(Path(sys.argv[1]))
for number in range(1000):
    points.event("work.step", number)
os.kill(os.getpid(), signal.SIGKILL)
"""
    output = tmp_path / "events"
    command = [tool, "record", "--output", str(output), "--", sys.executable, "-c", program, str(points)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert "the program ended with 137" in done.stderr
    stream = read_event_stream(next(output.glob("*.bwevents")))
    assert np.sort(stream.tag).tolist() == list(range(1000))


def test_a_recording_that_cannot_be_joined_ends_no_program(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "control").write_bytes(b"something else" * 20_000)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(_written(tmp_path, POINTS))],
        env={**environment, "BW_EVENTS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert done.stdout == "False False\n"
    assert done.stderr == f"of python: BW_EVENTS={tmp_path}: Bad message: no event is recorded\n"


GIVEN = """
import array, contextlib, struct, sys, bwevents
from pathlib import Path

class Index:
    def __index__(self):
        return 7

points = bwevents.Points(Path(sys.argv[1]))
packed = struct.pack("<3q", 1, 2, 3)
points.event("work.bytes", Index(), packed[:8])
points.event("work.bytes", 8, bytearray(packed[8:16]))
points.event("work.bytes", 9, memoryview(packed)[16:])
points.event("work.bytes", 10, memoryview(array.array("q", [4, 0, 5, 0]))[::4])

def refused(error, call, *arguments):
    try:
        with call(*arguments) or contextlib.nullcontext():
            print("not refused:", arguments)
    except error as raised:
        assert type(raised) is error, raised

for wrong in (2**63, -(2**63) - 1, 2**64 + 5):
    refused(OverflowError, points.event, "work.step", wrong)
    refused(OverflowError, points.interval, "work.pass", wrong)
    refused(OverflowError, points.add, "work.sum", wrong)
for wrong in (1.0, "1", None):
    refused(TypeError, points.event, "work.step", wrong)
    refused(TypeError, points.interval, "work.pass", wrong)
    refused(TypeError, points.add, "work.sum", wrong)
for wrong in (8, "text", [1, 2]):
    refused(TypeError, points.event, "work.bytes", 1, wrong)
points.event("work.step", 2**63 - 1)
"""


@pytest.mark.parametrize("recorded", [True, False])
def test_what_is_given_is_recorded_or_refused(
    tool: str, tmp_path: Path, environment: dict[str, str], *, recorded: bool
) -> None:
    """A program is told what is wrong whether it is recorded or not: it goes on as it does without."""
    output = tmp_path / "events"
    command = [sys.executable, "-c", GIVEN, str(_written(tmp_path, POINTS))]
    if recorded:
        command = [tool, "record", "--output", str(output), "--", *command]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    if not recorded:
        return
    (stream,) = read_event_streams(output)
    data = stream.of("work.bytes")
    assert stream.tag[data].tolist() == [7, 8, 9, 10]
    assert np.ascontiguousarray(stream.data(data)).view("<q").reshape(-1).tolist() == [1, 2, 3, 4]
    assert stream.tag[stream.of("work.step")].tolist() == [2**63 - 1]
    assert not stream.of("work.pass").size


def test_a_missing_library_is_named(tmp_path: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(_written(tmp_path, POINTS))],
        env={**environment, "BWEVENTS_LIBRARY": "/nowhere/libbwevents.so"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("OSError: /nowhere/libbwevents.so: cannot open")
    assert "BWEVENTS_LIBRARY may name its file" in done.stderr
