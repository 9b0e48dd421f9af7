# SPDX-License-Identifier: Apache-2.0
"""Series of a run, from the evidence of each capability that has some."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.__main__ import main
from reports.control_loops.camera_evidence import CAMERA_FOLDER
from reports.control_loops.ring_evidence import FOLDER, RING_FILE
from reports.latencies import latencies_of_run
from reports.run.folder import RunFolder
from tests.reports.control_loops.camera_sample import write_sample_camera
from tests.reports.control_loops.ring_sample import TARGET, write_sample_ring


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run with a ring, and a loop of a camera."""
    made = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = made.evidence_folder(FOLDER, TARGET)
    write_sample_ring(folder)
    write_sample_camera(folder / CAMERA_FOLDER / "0-ms")
    made.close()
    return made.path


def test_each_stretch_is_a_series_in_the_order_of_time(run: Path) -> None:
    found, problems = latencies_of_run(run)
    assert problems == []
    names = {(each.place.rpartition("/")[2], each.name) for each in found}
    assert {(TARGET, "whole"), (TARGET, "hop 1"), (TARGET, "node 2")} <= names
    assert {("0-ms", "whole"), ("0-ms", "camera to tracker"), ("0-ms", "tracker")} <= names
    for each in found:
        assert len(each.at_ns) == len(each.value_ns) > 0
        assert (np.diff(each.at_ns) > 0).all()
    [whole] = [each for each in found if each.name == "whole" and each.place.endswith("0-ms")]
    # From capture to tracker, tracking, and back: 4 + 1.2 ms and what the tracker takes, of every picture.
    assert len(whole.value_ns) == 80
    assert 5e6 < float(np.median(whole.value_ns)) < 20e6


def test_what_cannot_be_read_is_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [document] = run.glob(f"evidence/{FOLDER}/**/{RING_FILE}")
    document.write_text("{}")
    _, problems = latencies_of_run(run)
    assert len(problems) == 1
    assert RING_FILE in problems[0]
    assert main(["patterns", str(run), "--only", "0-ms: whole"]) == 0
    said = capsys.readouterr().out
    assert problems[0] in said
    assert "0-ms: whole: 80 values are too few for any claim" in said


def test_words_that_no_series_has_are_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", str(run), "--only", "nobody"]) == 2
    assert "no series of " in capsys.readouterr().err
    assert main(["patterns", str(run.parent)]) == 2
    assert "not a run folder" in capsys.readouterr().err
