# SPDX-License-Identifier: Apache-2.0
"""What the target's clock did meanwhile: its line taken off, or not where something corrects it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.control_loops.camera_evidence import CAMERA_FOLDER, write_camera
from reports.control_loops.case import Case
from reports.control_loops.clock import ClockCourse, clock_course
from reports.control_loops.ring import load_ring
from reports.control_loops.ring_evidence import FOLDER, RING_FILE, load_ring_facts, write_ring
from reports.run.folder import RunFolder
from tests.reports.control_loops.camera_sample import write_sample_camera
from tests.reports.control_loops.ring_sample import MACHINES, TARGET, write_sample_ring
from tests.reports.pages import page_with, words_of


def course(folder: Path, clock: str | None) -> ClockCourse:
    facts = replace(write_sample_ring(folder), clock=clock)
    write_ring(folder, facts)
    found = clock_course(folder, Case(clock=clock or ""), load_ring_facts(folder).ends[0])
    assert found
    return found


def test_clock_that_runs_free_has_its_line_taken_off(tmp_path: Path) -> None:
    found = course(tmp_path, None)
    assert found.rate_ppb == pytest.approx(1000 * MACHINES[TARGET].rate_ppm, abs=100)
    assert np.abs(found.off_ns).max() < 50
    assert (found.name, found.u_ns > 0) == ("not corrected", True)


def test_what_is_left_of_a_clock_that_is_corrected_is_not_taken_off(tmp_path: Path) -> None:
    """The sample's clock runs 25 ppm fast: a daemon that left it so would show."""
    found = course(tmp_path, "chrony")
    low_ns, high_ns = found.range_ns
    passed_ns = (found.at_s[-1] - found.at_s[0]) * 1000 * MACHINES[TARGET].rate_ppm
    assert high_ns - low_ns == pytest.approx(0.98 * passed_ns, rel=0.05)
    assert found.name == "chrony"


def test_clock_that_is_the_reference_has_no_course(tmp_path: Path) -> None:
    facts = write_sample_ring(tmp_path)
    other = replace(facts, ends=(replace(facts.ends[0], exchanges=None), *facts.ends[1:]))
    assert clock_course(tmp_path, Case(), other.ends[0]) is None


def test_page_shows_the_clock_of_each_ring(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "nightly", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_sample_ring(folder)
    course(folder / "with-chrony", "chrony")
    assert (folder / "with-chrony" / RING_FILE).exists()
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    page = page_with(run.path, "control-loops")
    assert page.count("<figure><svg") == 3
    words = words_of(page)
    assert "25.000 ppm" in words
    assert "not corrected" in words


def test_timeline_allows_a_clock_that_is_corrected_more_than_an_oscillator_changes(tmp_path: Path) -> None:
    course(tmp_path, "chrony")
    drifts = {each.node: each.limits.drift_ppb for each in load_ring(tmp_path).clocks}
    assert drifts.pop(TARGET) == 500_000
    assert set(drifts.values()) == {15_000}


def test_page_shows_the_clock_of_each_loop_of_a_camera_at_that_delay(tmp_path: Path) -> None:
    """A loop at another delay is none to compare with, and one with a corrected clock in no curve."""
    run = RunFolder.create(tmp_path / "results", "virtual", "nightly", simulated=True, commit="0" * 40)
    cases = Case(0), Case(50), Case(0, clock="chrony"), Case(0, "compile-like", "chrony")
    for case in cases:
        folder = run.evidence_folder(FOLDER, TARGET) / CAMERA_FOLDER / case.folder
        facts = write_sample_camera(folder)
        node = facts.camera.node if case.clock else None
        write_camera(folder, replace(facts, clock=case.clock or None, clock_node=node))
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    page = page_with(run.path, "control-loops")
    rows = [page.count(f'<th scope="row">{who}</th>') for who in ("not corrected", "chrony")]
    assert [*rows, page.count('<th scope="row">chrony, compile-like load</th>')] == [1, 1, 1]
    assert "0 ms compile-like, chrony" in words_of(page)
