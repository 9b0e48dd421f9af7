# SPDX-License-Identifier: Apache-2.0
"""A program that is recorded goes on as it does without."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S


def _record(tool: str, output: Path, *program: str, code: int) -> str:
    done = subprocess.run(
        [tool, "record", "--output", str(output), "--", *program],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == code, done.stderr
    return done.stderr + done.stdout


def test_what_a_program_prints_without_standard_streams_is_in_no_ring(
    tool: str, probe: str, tmp_path: Path
) -> None:
    _record(tool, tmp_path, "sh", "-c", 'exec "$0" count 1000 <&- >&- 2>&-', probe, code=0)
    (stream,) = read_event_streams(tmp_path)
    assert np.array_equal(np.sort(stream.tag), np.arange(1000))


def test_a_program_with_a_small_limit_of_file_size_runs(tool: str, probe: str, tmp_path: Path) -> None:
    said = _record(tool, tmp_path, "sh", "-c", 'ulimit -f 100; "$0" count 5; echo "ended $?"', probe, code=4)
    assert "ended 0" in said
    assert "File too large: no event is recorded" in said


def test_a_program_has_the_signals_that_it_has_without(tool: str, tmp_path: Path) -> None:
    command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    without = subprocess.check_output(command, text=True)
    assert without in _record(tool, tmp_path, *command, code=4)
