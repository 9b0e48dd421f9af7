# SPDX-License-Identifier: Apache-2.0
"""What a recorder leaves that is killed: the next one saves it, or leaves it where it is, and says so."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import numpy as np

from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S
from tests.traffic_gen.events.recording import recorder, stop


def _leave(tool: str, probe: str, output: Path, events: int) -> Path:
    """Kill a recorder that has not yet collected what a program has recorded; return its folder in memory."""
    with recorder(tool, output) as (process, environment):
        stop(process)
        subprocess.run(
            [probe, "count", str(events)],
            env=environment,
            check=True,
            timeout=HANG_S,
            stdout=subprocess.DEVNULL,
        )
        process.kill()
        process.wait(HANG_S)
    return Path(environment["BW_EVENTS"])


def _next(tool: str, output: Path) -> str:
    """Start another recorder, of a program without points; return what it says."""
    done = subprocess.run(
        [tool, "record", "--output", str(output), "--", "true"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 4, done.stderr
    return done.stderr


def test_what_another_user_left_is_not_touched(tool: str, probe: str, tmp_path: Path) -> None:
    """Its control names the folder that files are written to, by whoever saves it."""
    folder = _leave(tool, probe, tmp_path / "output", 5)
    os.chown(folder, 65534, 65534)
    assert "killed" not in _next(tool, tmp_path / "next")
    assert folder.exists()
    assert not list((tmp_path / "output").iterdir())
    os.chown(folder, os.geteuid(), os.getegid())
    assert "5 slots of 1 programs" in _next(tool, tmp_path / "next")


def test_a_folder_of_a_recorder_that_was_killed_at_its_start_goes(
    tool: str, tmp_path: Path, events_memory: Path
) -> None:
    for name in ("bw-events-empty", "bw-events-making"):
        (events_memory / name).mkdir(mode=0o700)
    (events_memory / "bw-events-making" / ".making-abcdef").write_bytes(b"")
    _next(tool, tmp_path)
    assert not list(events_memory.iterdir())


def test_a_folder_that_is_being_made_stays(tool: str, tmp_path: Path, events_memory: Path) -> None:
    folder = events_memory / "bw-events-making"
    folder.mkdir(mode=0o700)
    with (folder / ".making-abcdef").open("w+b") as file:
        file.write(b"a")
        file.flush()
        fcntl.flock(file, fcntl.LOCK_SH)
        _next(tool, tmp_path)
        assert folder.exists()
    _next(tool, tmp_path)


def test_what_cannot_be_saved_stays_until_it_can(tool: str, probe: str, tmp_path: Path) -> None:
    output = tmp_path / "output"
    folder = _leave(tool, probe, output, 10_000)
    # A folder with room for a part of it, of which the next recorder knows.
    script = f'mount -t tmpfs -o size=64k none {output} && "$@"; cp {output}/* {tmp_path}'
    said = subprocess.run(
        [
            "unshare",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            tool,
            "record",
            "--output",
            str(tmp_path / "next"),
            "--",
            "true",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    ).stderr
    assert (
        f"cannot be saved in {output}: No space left on device; it stays in {folder} until it can be" in said
    )
    for part in tmp_path.glob("*.bwevents"):
        part.rename(output / part.name)
    assert "1 programs, is in" in _next(tool, tmp_path / "next")
    (stream,) = read_event_streams(output)
    assert np.array_equal(np.sort(stream.tag), np.arange(10_000))
    assert stream.ends


def test_the_rest_of_a_folder_that_has_gone_is_thrown_away(tool: str, probe: str, tmp_path: Path) -> None:
    _leave(tool, probe, tmp_path / "output", 5)
    (tmp_path / "output").rmdir()
    assert f"thrown away: its folder {tmp_path / 'output'} has gone" in _next(tool, tmp_path / "next")
