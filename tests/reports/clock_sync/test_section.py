# SPDX-License-Identifier: Apache-2.0
"""The page's section on clocks shows what the trials hold, and says what is damaged."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.clock_sync.capability import MISSED
from reports.clock_sync.mask import load_mask, mask_file
from reports.clock_sync.mask_verdict import MaskRange, mask_measurements
from reports.clock_sync.reported_bound import reported_bound_measurement
from reports.clock_sync.section import ClockSection, gather_clocks, servo_of
from reports.clock_sync.tai_utc import TAI_UTC, NodeTaiUtc, write_tai_utc
from reports.clock_sync.trial import FILTERED, MASK, SEQUENTIAL, TRIAL, load_trial, phc_read_file, write_trial
from reports.clock_sync.two_way_reference import TARGET_FILE
from reports.clock_sync.usage import READ_COST, Usage, write_usage
from reports.clock_sync.verdict import sync_measurement
from reports.page.model import gather
from reports.page.render import render
from reports.record.context import Context
from reports.record.measurement import Conditions
from reports.run.folder import RunFolder
from reports.section import TargetData
from reports.units import NS_PER_S
from tests.reports.clock_run import SUBJECT, add_clock_trial
from tests.reports.clock_sync.test_reported_bound import LIMITS, told
from tests.reports.clock_sync.test_two_way_reference import LIMIT
from tests.reports.clock_sync.test_two_way_reference import answer as two_way_answer
from tests.reports.clock_sync.test_two_way_reference import trial as two_way_trial
from tests.reports.sample_clock import compare_answer, write_clock_trial
from tests.reports.sample_read_latency import latency_answer

GOLDEN = Path(__file__).parent / "golden"


def _run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "virtual", "ci", simulated=True, commit="0" * 40)


def test_shows_verdict_witnesses_and_figures(tmp_path: Path) -> None:
    run = _run(tmp_path)
    record = add_clock_trial(run, compare_answer())
    run.close()
    report = gather(run.path)
    clocks = report.shown_in("clocks")
    assert isinstance(clocks, ClockSection)
    (row,) = clocks.rows
    assert row.record == record
    assert row.title == "chrony, steady state"
    assert report.others == ()
    assert report.counts["pass"] == 1
    page = render(run.path)
    for text in ("chrony, steady state", "Three witnesses", "memory shared with the host", "12.5 s"):
        assert text in page
    assert page.count("<svg") >= 3
    assert render(run.path) == page


def test_a_target_without_timecard_has_no_three_witnesses(tmp_path: Path) -> None:
    """The page says what its clock was held against, and draws it all the same."""
    run = _run(tmp_path)
    folder = run.evidence_folder("clock_sync", "as-found")
    trial = two_way_trial(folder, two_way_answer())
    subject = replace(SUBJECT, target="windows", clock="as-found")
    files = tuple(run.evidence(folder / name) for name in (TRIAL, TARGET_FILE))
    context = Context(run.run_id, "As Found", subject, Conditions("ci"), True, files)
    record = sync_measurement(trial, "CLK-AS-FOUND", LIMIT, 99, context)
    run.append(record)
    run.close()
    report = gather(run.path)
    clocks = report.shown_in("clocks")
    assert isinstance(clocks, ClockSection)
    assert [row.record for row in clocks.rows] == [record]
    page = render(run.path)
    assert "The target has no timecard: two-way time" in page
    assert "Three witnesses" not in page
    assert page.count("<svg") >= 3


def test_table_2_beside_intervals_and_holdover(tmp_path: Path) -> None:
    run = _run(tmp_path)
    for kind, interval_s in (("interval", 30), ("holdover", None)):
        folder = run.evidence_folder("clock_sync", kind)
        write_clock_trial(folder, compare_answer())
        (folder / SEQUENTIAL).write_text(json.dumps(compare_answer(read="sequential")) + "\n")
        write_trial(folder, replace(load_trial(folder).facts, kind=kind, interval_s=interval_s))
    run.close()
    clocks = gather_clocks(TargetData(run.path))
    assert clocks is not None
    measured = [pair for pair in clocks.table if pair.measured is not None]
    assert [pair.measured.reading for pair in measured if pair.measured] == [
        "chrony, sequential",
        "chrony, bracketed",
        "chrony, sequential",
        "chrony, bracketed",
    ]
    assert all(pair.paper is not None for pair in measured)
    page = render(run.path)
    assert "no sync" in page
    assert "Table 2" in page


@pytest.mark.parametrize("name", ["g8272-prtc-a", "g8273-2-class-a"])
def test_masks_stand_beside_the_trial(tmp_path: Path, name: str) -> None:
    """Each curve that is limited has a figure, which rings the tau of the record."""
    run = _run(tmp_path)
    add_clock_trial(run, compare_answer())
    folder = run.evidence_folder("clock_sync", "chrony")
    mask = load_mask(name)
    (folder / MASK).write_bytes(mask_file(name, folder).read_bytes())
    files = tuple(run.evidence(folder / name) for name in (TRIAL, MASK))
    context = Context(run.run_id, "Chrony", SUBJECT, Conditions("ci"), True, files)
    records = mask_measurements(load_trial(folder), MaskRange(mask), "CLK-CHRONY", 99, context)
    for record in records:
        run.append(record)
    run.close()
    report = gather(run.path)
    clocks = report.shown_in("clocks")
    assert isinstance(clocks, ClockSection)
    (row,) = clocks.rows
    assert row.masks == tuple(records)
    assert report.others == ()
    curves = [record for record in records if record.quantity in mask.curves]
    assert len(curves) == 2
    for record, (caption, figure) in zip(curves, clocks.figures.masks, strict=True):
        assert f"MTIE against the mask {mask.name}" in caption or "TDEV" in caption
        tau = re.search(r"tau = \S+ s", record.limit.source)
        assert f"{tau[0]}, where least is left" in figure if tau else "No tau can be judged" in figure
    page = render(run.path)
    for text in ("Against masks", f"MTIE against the mask {mask.name}", "judged", "clause"):
        assert text in page
    assert render(run.path) == page


def test_tai_is_shown_as_each_node_has_it(tmp_path: Path) -> None:
    run = _run(tmp_path)
    add_clock_trial(run, compare_answer())
    folder = run.evidence_folder("clock_sync")
    write_tai_utc(folder, [NodeTaiUtc("target", 37), NodeTaiUtc("switch", 0)])
    run.close()
    page = render(run.path)
    assert "target 37 s, switch 37 s (its kernel does not know)" in page
    (folder / TAI_UTC).write_text('{"nodes":[')
    clocks = gather_clocks(TargetData(run.path))
    assert clocks is not None
    assert any(TAI_UTC in problem for problem in clocks.problems)


def test_the_servos_log_is_read_with_the_targets_tai(tmp_path: Path) -> None:
    run = _run(tmp_path)
    times: list[int] = []
    for tai_utc_s in (37, 38):
        folder = run.evidence_folder("clock_sync", f"tai-{tai_utc_s}")
        write_clock_trial(folder, compare_answer(device={"name": "realtime", "tai_utc_s": tai_utc_s}))
        (folder / "statistics.log").write_text((GOLDEN / "chrony-statistics.log").read_text())
        facts = replace(
            load_trial(folder).facts, servo_log="statistics.log", servo_format="chrony-statistics"
        )
        write_trial(folder, facts)
        servo = servo_of(load_trial(folder))
        assert servo is not None
        times.append(int(servo.time_ns[0]))
    assert times[1] - times[0] == NS_PER_S


def test_lines_that_are_in_no_figure_are_counted_on_the_page(tmp_path: Path) -> None:
    run = _run(tmp_path)
    folder = run.evidence_folder("clock_sync", "ptp-software")
    write_clock_trial(folder, compare_answer())
    log = (GOLDEN / "ptp4l.log").read_text()
    (folder / "ptp4l.log").write_text(f"Nov  1 18:05:54 box sshd[71]: Accepted\n{log[:-4]}")
    write_trial(folder, replace(load_trial(folder).facts, servo_log="ptp4l.log", servo_format="ptp4l"))
    run.close()
    damaged = log.count("\n") + 1
    assert f"lines left out: 1 damaged (line {damaged}); 1 of other programs" in render(run.path)


def test_a_phc_by_each_way_of_reading_it(tmp_path: Path) -> None:
    run = _run(tmp_path)
    folder = run.evidence_folder("clock_sync", "phc2sys")
    write_clock_trial(folder, compare_answer())
    (folder / phc_read_file("basic")).write_text(json.dumps(compare_answer(phc_read="basic")) + "\n")
    run.close()
    page = render(run.path)
    for text in (
        "the same card by each way",
        "says nothing of this time",
        "not offered by this card",
        "721 ns",
    ):
        assert text in page
    assert "88 ns" in page


def test_a_damaged_trial_is_told_and_the_rest_is_shown(tmp_path: Path) -> None:
    run = _run(tmp_path)
    add_clock_trial(run, compare_answer())
    folder = run.evidence_folder("clock_sync", "torn")
    write_clock_trial(folder, compare_answer())
    (folder / FILTERED).write_text('{"type":"result"')
    run.close()
    clocks = gather_clocks(TargetData(run.path))
    assert clocks is not None
    assert len(clocks.rows) == 1
    assert any("evidence/clock_sync/torn" in problem for problem in clocks.problems)
    assert "clock_sync/torn" in render(run.path)


def test_a_run_without_clocks_has_no_section(tmp_path: Path) -> None:
    run = _run(tmp_path)
    run.close()
    assert gather_clocks(TargetData(run.path)) is None
    assert "Three witnesses" not in render(run.path)


def test_shows_what_a_clock_told_of_its_error_and_what_each_stack_costs(tmp_path: Path) -> None:
    run = _run(tmp_path)
    for clock, device in (("timeservice", "timeservice"), ("chrony", "realtime")):
        folder = run.evidence_folder("clock_sync", "linux-rt", clock)
        write_clock_trial(folder, told(compare_answer()) if clock == "timeservice" else compare_answer())
        write_trial(folder, replace(load_trial(folder).facts, clock=clock, device=device))
        write_usage(folder, Usage(clock, "bw-timed" if clock == "timeservice" else "chronyd", 0.25, 10))
        (folder / READ_COST.format(clock=device)).write_text(json.dumps(latency_answer()) + "\n")
    folder = run.evidence_folder("clock_sync", "linux-rt", "timeservice")
    files = tuple(run.evidence(folder / name) for name in (TRIAL, FILTERED))
    context = Context(
        run.run_id, "A Bound", replace(SUBJECT, clock="timeservice"), Conditions("ci"), True, files
    )
    record = reported_bound_measurement(load_trial(folder), MISSED, "CLK-BOUND", LIMITS[MISSED], 10, context)
    run.append(record)
    run.close()
    report = gather(run.path)
    clocks = report.shown_in("clocks")
    assert isinstance(clocks, ClockSection)
    assert [usage.usage.clock for usage in clocks.usages] == ["chrony", "timeservice"]
    assert record in clocks.records
    assert report.others == ()
    page = render(run.path)
    for text in ("told of its own error", "CLK-BOUND", "Side by side", "2.50 %", "bw-timed"):
        assert text in page
    (folder / "usage.json").write_text("{}")
    damaged = gather(run.path).shown_in("clocks")
    assert isinstance(damaged, ClockSection)
    assert any("timeservice" in problem for problem in damaged.problems)
