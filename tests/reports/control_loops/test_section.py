# SPDX-License-Identifier: Apache-2.0
"""The section on control loops: what each stretch takes, known hold, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

from reports.control_loops.ring_evidence import FOLDER, HOLD_FOLDER, NAGLE_FOLDER, KnownHold
from reports.control_loops.section import gather_control_loops
from reports.control_loops.timelines import timelines_of
from reports.run.folder import RunFolder
from reports.section import TargetData
from tests.reports.control_loops.ring_sample import TARGET, hop_ns, write_sample_ring, wrong_clock
from tests.reports.pages import page_with, words_of


def test_page_shows_stretches_and_hold(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder(FOLDER, TARGET)
    write_sample_ring(folder)
    write_sample_ring(folder / HOLD_FOLDER, hold=KnownHold(2, 2000, 10))
    write_sample_ring(folder / NAGLE_FOLDER, hops=lambda place, number: hop_ns(place, number) + 40_000_000)
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    page = page_with(run.path, "control-loops")
    words = words_of(page)
    for row in (
        "on 4 machines",
        "hop 2 producer-12 → p01 50.30 µs",
        "node 3 p02 700 ns",
        "hop 4 p02 → linux-rt 70.30 µs",
        "hop 4 p02 → linux-rt 40.07 ms",
        "node 2 2.00 ms 2.00 ms",
        "hop 3 0 ns 0 ns",
    ):
        assert row in words, row
    assert page.count("<figure><svg") == 2


def test_contradiction_is_said(tmp_path: Path) -> None:
    write_sample_ring(tmp_path / "evidence" / FOLDER / TARGET, machines=wrong_clock("p01", -500_000))
    shown = gather_control_loops(TargetData(tmp_path, target=TARGET))
    assert shown
    assert "the clock of p01 is wrong" in shown.contradiction


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET
    write_sample_ring(folder)
    (folder / "2.bwevents").unlink()
    shown = gather_control_loops(TargetData(tmp_path, target=TARGET))
    assert shown
    assert "2.bwevents" in shown.problems[0]
    assert shown.rows == []


def test_nothing_measured_has_no_section(tmp_path: Path) -> None:
    assert gather_control_loops(TargetData(tmp_path, target=TARGET)) is None


def test_ring_is_a_timeline(tmp_path: Path) -> None:
    write_sample_ring(tmp_path / "evidence" / FOLDER / TARGET)
    [timeline], problems = timelines_of(tmp_path)
    assert problems == []
    assert [track.lane for track in timeline.tracks][:2] == ["hop 1: sent", "hop 1: received"]
    assert len(timeline.tracks) == 8
    assert timeline.flows.from_track.size == 4 * 210
