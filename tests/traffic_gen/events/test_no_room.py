# SPDX-License-Identifier: Apache-2.0
"""Where there is no room, in memory or for the files: it is said, and what was written is whole."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np

from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S

ON_ONE = f"taskset -c {min(os.sched_getaffinity(0))}"
"""One processor, one ring: what is written is the beginning of what happened."""


def _with_small(place: str, size: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command where a folder has little room."""
    script = f'mount -t tmpfs -o size={size} none "$0" && exec "$@"'
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, place, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )


def test_without_room_in_memory_the_program_runs_and_says_it(
    tool: str, probe: str, tmp_path: Path, events_memory: Path
) -> None:
    command = [tool, "record", "--output", str(tmp_path), "--", probe, "count", "5"]
    done = _with_small(str(events_memory), "1m", command)
    assert done.returncode == 4
    assert "No space left on device: no event is recorded" in done.stderr
    assert "1 programs could not record" in done.stderr
    assert '"pid"' in done.stdout


def test_a_full_disk_is_said_and_what_was_written_is_whole(tool: str, probe: str, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    record = f"{tool} record --output {small} -- {ON_ONE} {probe} count 100000"
    script = f"{record}; code=$?; cp {small}/* {tmp_path}; exit $code"
    done = _with_small(str(small), "1m", ["sh", "-c", script])
    assert done.returncode == 5
    assert "No space left on device" in done.stderr
    told = [r"(\d+) slots of 32 bytes", r"(\d+) events lost", r"(\d+) slots were not written"]
    counted = [int(number) for each in told for number in re.findall(each, done.stderr)]
    assert len(counted) == len(told)
    assert sum(counted) == 100_000
    (stream,) = read_event_streams(tmp_path)
    assert 0 < stream.tag.size < 100_000
    assert np.array_equal(np.sort(stream.tag), np.arange(stream.tag.size))


def test_a_limit_of_file_size_is_said_and_what_was_written_is_whole(
    tool: str, probe: str, tmp_path: Path
) -> None:
    unlimited = 'ulimit -S -f unlimited; exec "$@" count 100000'
    record = f"{tool} record --output {tmp_path} --ring-kib 16384 -- sh -c '{unlimited}' sh {ON_ONE} {probe}"
    done = subprocess.run(
        ["sh", "-c", f"ulimit -S -f 600; exec {record}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 5
    assert "File too large" in done.stderr
    told = r"(\d+) slots of 32 bytes, 0 events lost(?s:.*) (\d+) slots were not written"
    (counted,) = re.findall(told, done.stderr)
    assert sum(map(int, counted)) == 100_000
    (stream,) = read_event_streams(tmp_path)
    assert 0 < stream.tag.size < 100_000
    assert np.array_equal(np.sort(stream.tag), np.arange(stream.tag.size))


def test_an_output_that_cannot_be_written_is_said_before_the_program_starts(
    tool: str, probe: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "read-only").mkdir()
    script = 'mount -t tmpfs -o ro none "$0" && exec "$@"'
    for name, says in (("file", "Not a directory"), ("read-only", "Read-only file system")):
        command = [tool, "record", "--output", str(tmp_path / name), "--", probe, "count", "1"]
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, str(tmp_path / "read-only"), *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )
        assert done.returncode == 2
        assert done.stderr == f"bw-events record: --output {tmp_path / name}: {says}\n"
        assert not done.stdout
