# SPDX-License-Identifier: Apache-2.0
"""A program that is recorded goes on as it does without."""

from __future__ import annotations

import mmap
import os
import re
import signal
import struct
import subprocess
from pathlib import Path

import numpy as np

from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S, wait_until
from tests.traffic_gen.events.recording import recorder


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


def test_a_program_has_no_more_open_files_than_without(tool: str, probe: str, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_bytes(bytes(4096))

    def names(environment: dict[str, str]) -> list[str]:
        with (
            page.open("r+b") as stdin,
            subprocess.Popen([probe, "until-killed"], stdin=stdin, env=environment) as program,
        ):
            wait_until(lambda: page.read_bytes()[:8] != bytes(8), "the program runs")
            found = sorted(each.name for each in Path(f"/proc/{program.pid}/fd").iterdir())
            program.kill()
        page.write_bytes(bytes(4096))
        return found

    with recorder(tool, tmp_path / "output") as (_, environment):
        assert names(environment) == names(dict(os.environ))


def test_a_program_with_a_small_limit_of_file_size_runs(tool: str, probe: str, tmp_path: Path) -> None:
    said = _record(tool, tmp_path, "sh", "-c", 'ulimit -f 100; "$0" count 5; echo "ended $?"', probe, code=4)
    assert "ended 0" in said
    assert "File too large: no event is recorded" in said


def test_a_program_has_the_signals_that_it_has_without(tool: str, tmp_path: Path) -> None:
    command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    without = subprocess.check_output(command, text=True)
    assert without in _record(tool, tmp_path, *command, code=4)


def test_a_program_goes_on_with_its_points_off_where_nothing_can_be_written(
    tool: str, probe: str, tmp_path: Path, events_memory: Path
) -> None:
    output, page = tmp_path / "output", tmp_path / "page"
    output.mkdir()
    page.write_bytes(bytes(4096))
    record = f"mount -t tmpfs -o nr_inodes=1 none {output} && exec {tool} record --output {output}"
    command = ["unshare", "--mount", "sh", "-c", record]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        name, _, folder = process.stdout.readline().strip().partition("=")
        process.send_signal(signal.SIGSTOP)  # until the test has the program's rings open
        with (
            page.open("r+b") as stdin,
            subprocess.Popen(
                [probe, "until-killed"], stdin=stdin, env={**os.environ, name: folder}
            ) as program,
        ):
            wait_until(lambda: any(events_memory.glob("*/*.rings")), "the program has rings")
            with next(events_memory.glob("*/*.rings")).open("rb") as file:
                rings = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            process.send_signal(signal.SIGCONT)
            said = process.stderr.read()
            assert process.wait(HANG_S) == 5
            assert program.poll() is None
            program.kill()
    assert "No space left on device" in said
    (points,), (wanted_at,) = struct.unpack_from("<I", rings, 92), struct.unpack_from("<Q", rings, 120)
    assert rings[wanted_at : wanted_at + points] == bytes(points)
    assert re.search(r": [1-9]\d* slots were not written", said)
