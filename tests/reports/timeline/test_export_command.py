# SPDX-License-Identifier: Apache-2.0
"""The command that exports a run: what it writes and says, what it refuses, and that it leaves no half."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.timeline import export_command
from reports.timeline.export_command import WRITERS
from reports.timeline.placed_events import Timeline
from tests.reports.realtime_ethernet.sample import write_ring_sample
from tests.reports.sample_run import Disturbance, make_run, write_evidence

FILES: Mapping[str, set[str]] = {
    "ctf": {"metadata", "stream-0", "stream-1"},
    "perfetto": {"timeline.pftrace", "nodes.tar"},
    "parquet": {"events.parquet", "flows.parquet"},
}
PLACES = "daq_replay/linux-rt/attempt-9", "realtime_ethernet/linux-rt/traced-64"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run with late messages of a stream, and a kernel recording."""
    path = make_run(tmp_path / "results").path
    folder = path / "evidence" / PLACES[0]
    folder.mkdir(parents=True)
    write_evidence(folder, Disturbance(path_delay_ns={33: 15_000_000}), seed=3)
    (path / "evidence" / "realtime_ethernet").mkdir()
    write_ring_sample(path / "evidence" / "realtime_ethernet" / "linux-rt")
    return path


def exported(run: Path, form: str, output: Path) -> int:
    """Run the command, and return its exit code."""
    return main(["timeline", str(run), "--export", form, "--output", str(output)])


@pytest.mark.parametrize("form", WRITERS)
def test_each_timeline_of_a_run_has_a_folder(
    run: Path, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    assert exported(run, form, output) == 0
    for place in PLACES:
        found = {each.name for each in (output / place).iterdir()}
        assert found == FILES[form] - ({"stream-1"} if place == PLACES[1] else set())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out", "results"]
    said = capsys.readouterr().out.splitlines()
    assert "daq_replay/attempt-1: 0 events on 0 lanes; by the target's clock" in said
    assert f"{PLACES[1]}: 3 events on 1 lanes; by the target's CLOCK_MONOTONIC" in said
    assert "  left out: 3 events: CPU 3: its buffer had no room" in said
    assert said[-1] == str(output)


def test_what_exists_and_what_lies_in_the_run_is_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("full", "file", "link"):
        assert exported(run, "ctf", tmp_path / name) == 2
        assert capsys.readouterr().err == f"reports: {tmp_path / name}: exists and is no empty folder\n"
    assert (tmp_path / "full" / "mine").read_text() == (tmp_path / "file").read_text() == "kept"
    assert exported(run, "ctf", run / "out") == 2
    assert "lies in the run folder" in capsys.readouterr().err
    assert exported(tmp_path, "ctf", tmp_path / "out") == 2
    assert "no run folder: it has no run.json" in capsys.readouterr().err
    (tmp_path / "below").write_text("")
    assert exported(run, "ctf", tmp_path / "below" / "out") == 2
    assert str(tmp_path / "below" / "out") in capsys.readouterr().err


def test_a_run_without_events_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_run(tmp_path / "results").path
    assert exported(path, "perfetto", tmp_path / "out") == 2
    assert (
        capsys.readouterr().err
        == f"reports: {path}: no event of it has a place: there is nothing to export\n"
    )
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_read_is_named_and_the_rest_is_exported(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ring = run / "evidence" / f"{PLACES[1]}-ring.gz"
    ring.write_bytes(ring.read_bytes()[:-9])
    assert exported(run, "ctf", tmp_path / "out") == 0
    assert f"reports: not read: {PLACES[1]}: traced-64-ring.gz: " in capsys.readouterr().err
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["daq_replay"]


def test_without_pyarrow_parquet_says_how_to_get_it(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert exported(run, "parquet", tmp_path / "out") == 3
    assert "pip install --python .build/venv/bin/python pyarrow" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("ended_by", "code"), [(KeyboardInterrupt(), 4), (OSError(28, "No space left on device"), 2)]
)
def test_an_export_that_is_broken_off_leaves_nothing(
    run: Path, tmp_path: Path, ended_by: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []

    def broken_off(timeline: Timeline, folder: Path) -> None:
        WRITERS["ctf"](timeline, folder)
        written.append(folder / "metadata")
        if len(written) == 2:
            raise ended_by

    monkeypatch.setattr(export_command, "WRITERS", {**WRITERS, "perfetto": broken_off})
    assert exported(run, "perfetto", tmp_path / "out") == code
    assert len(written) == 2
    assert [each.name for each in tmp_path.iterdir()] == ["results"]
