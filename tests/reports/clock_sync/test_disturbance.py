# SPDX-License-Identifier: Apache-2.0
"""Records of disturbed clocks: times to lock, steps that must be seen; and what the report says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.clock_sync.disturbance import (
    DISTURBANCE,
    STEP_TOLERANCE_NS,
    Disturbance,
    Event,
    load_disturbance,
    lock_time_measurement,
    step_measurement,
    write_disturbance,
)
from reports.clock_sync.disturbance_section import farthest_ns
from reports.clock_sync.section import gather_clocks
from reports.clock_sync.trial import Lock, load_trial, write_trial
from reports.errors import RecordError
from reports.page.render import render
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Measurement, Subject
from reports.run.folder import RunFolder
from reports.run.tally import overall
from reports.section import TargetData
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer, write_clock_trial

DEADLINE = Limit(60, None, "test")
LIMIT = Limit(2_000_000, -2_000_000, "test")
CONTEXT = Context("run", "test", Subject("virtual", "linux-rt", clock="chrony"), Conditions("ci"), True, ())
STEP_NS = 1_000_000


def lock_record(*after_s: float, bound_s: float | None = 1.1, required: int = 1) -> Measurement:
    locks = [Lock(value, "rule", bound_s) for value in after_s]
    return lock_time_measurement(locks, "CLK", DEADLINE, required, CONTEXT, "not locked within 60 s")


@pytest.mark.parametrize(
    ("after_s", "outcome"),
    [((30.0, 12.0), "pass"), ((12.0, 58.9), "pass"), ((59.5,), "inconclusive"), ((12.0, 90.0), "fail")],
)
def test_the_longest_time_to_lock_is_judged(after_s: tuple[float, ...], outcome: str) -> None:
    record = lock_record(*after_s)
    assert (record.quantity, record.unit, record.statistic) == ("lock_time", "s", "max")
    assert (record.value, record.n, record.outcome) == (max(after_s), len(after_s), outcome)
    assert record.uncertainty.expanded == 1.1


def test_a_lock_whose_look_is_not_known_is_as_uncertain_as_it_is_long() -> None:
    assert lock_record(25.0, bound_s=None).uncertainty.expanded == 25.0
    assert lock_record(31.0, bound_s=None).outcome == "inconclusive"


def test_fewer_locks_than_wanted_do_not_pass() -> None:
    assert lock_record(5.0, required=2).outcome == "inconclusive"


def test_no_lock_is_unset_and_says_why() -> None:
    record = lock_record()
    assert (record.outcome, record.value, record.reason) == ("unset", None, "not locked within 60 s")


def stepped(folder: Path, *steps_ns: int, **changes: Any) -> Measurement:
    """Judge a trial in which the tool has found these steps."""
    steps = [{"time_tai_ns": START_TAI_NS + SECOND_NS, "step_ns": step_ns} for step_ns in steps_ns]
    write_clock_trial(folder, compare_answer(steps=steps, **changes))
    return step_measurement(load_trial(folder), STEP_NS, LIMIT, 99, CONTEXT)


def test_a_step_is_seen_with_its_size(tmp_path: Path) -> None:
    record = stepped(tmp_path, -150_000, STEP_NS + STEP_TOLERANCE_NS // 2)
    assert (record.quantity, record.value, record.n) == ("clock_step", STEP_NS + STEP_TOLERANCE_NS // 2, 2)
    assert record.outcome == "pass"


@pytest.mark.parametrize(
    ("steps_ns", "said"),
    [
        ((STEP_NS // 2,), "is under"),
        ((-STEP_NS,), "is under"),
        ((2 * STEP_NS,), "is over"),
    ],
)
def test_a_step_of_another_size_is_the_benchs_fault(
    tmp_path: Path, steps_ns: tuple[int, ...], said: str
) -> None:
    record = stepped(tmp_path, *steps_ns)
    assert record.outcome == "inconclusive"
    assert said in record.reason
    assert overall([replace(record, quantity="sync_offset", outcome="fail"), record]) == "fail"


def test_a_step_that_nobody_sees_is_no_pass(tmp_path: Path) -> None:
    """Without the step the trial is sound and within its limit: it would pass."""
    record = stepped(tmp_path)
    assert (record.outcome, record.value) == ("inconclusive", None)
    assert record.reason == "the clock stepped, and the trial would have passed"
    invalid = stepped(tmp_path / "invalid", valid=False, invalid_reasons=["the timecard drifted"])
    assert (invalid.outcome, invalid.reason) == (
        "inconclusive",
        "the clock was stepped, and no step was seen",
    )


def disturbance() -> Disturbance:
    return Disturbance(
        "chrony",
        "oscillator",
        (
            Event("oscillator +100 ppm", 2.0, Lock(6.4, "rule", 1.1), "servo before: -33.0 ppm"),
            Event("oscillator +100 ppm, taken back", 8.5, None, ""),
        ),
    )


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert load_disturbance(tmp_path) is None
    write_disturbance(tmp_path, disturbance())
    assert load_disturbance(tmp_path) == disturbance()
    assert len(disturbance().locks) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "disturbance.json: "),
        ('{"clock":"chrony","kind":"step","events":[]}', "disturbance.json.schema: missing key"),
        (
            '{"clock":"chrony","kind":"step","events":[],"schema":"benchwright.clock_disturbance/2"}',
            "must be benchwright.clock_disturbance/1",
        ),
    ],
)
def test_a_damaged_one_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / DISTURBANCE).write_text(text)
    with pytest.raises(RecordError, match=said):
        load_disturbance(tmp_path)


def test_offset_of_an_event_is_that_until_the_next_one(tmp_path: Path) -> None:
    answer = compare_answer(mean_ns=0, deviation_ns=0)
    rows: list[list[int]] = answer["series"]["rows"]
    rows[30][4] = 400_000  # 3 s
    rows[90][3] = -300_000  # 9 s
    write_clock_trial(tmp_path, answer)
    trial = load_trial(tmp_path)
    assert farthest_ns(trial, 2.0, 8.5) == 400_000
    assert farthest_ns(trial, 8.5, float("inf")) == -300_000
    assert farthest_ns(trial, 60.0, float("inf")) is None


def test_the_page_shows_each_event(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci", simulated=True, commit="0" * 40)
    folder = run.evidence_folder("clock_sync", "disturbances", "chrony-oscillator")
    write_clock_trial(folder, compare_answer())
    write_trial(folder, replace(load_trial(folder).facts, kind="oscillator"))
    write_disturbance(folder, disturbance())
    # Locks of stacks that were started on a wrong clock: without a trial.
    relock = run.evidence_folder("clock_sync", "chrony-relock")
    write_disturbance(relock, replace(disturbance(), kind="relock"))
    torn = run.evidence_folder("clock_sync", "torn")
    (torn / DISTURBANCE).write_text("{")
    run.close()
    clocks = gather_clocks(TargetData(run.path))
    assert clocks is not None
    titles = [row.title for row in clocks.disturbances]
    assert titles == ["chrony, started on a wrong clock"] * 2 + ["chrony, oscillator changed"] * 2
    assert [row.farthest_ns is None for row in clocks.disturbances] == [True, True, False, False]
    page = render(run.path)
    for text in ("Disturbances", "oscillator +100 ppm, taken back", "6.4 s", "servo before: -33.0 ppm"):
        assert text in page
    assert "clock_sync/torn: disturbance.json" in page
    assert json.loads((folder / DISTURBANCE).read_text())["schema"] == "benchwright.clock_disturbance/1"
