# SPDX-License-Identifier: Apache-2.0
"""Changes of a run of clocks are named where other evidence holds them; what honest trials do is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.clock_sync.trial import FILTERED, SEQUENTIAL, TRIAL
from reports.clock_sync.two_way_reference import SERVER_FILE, TARGET_FILE
from reports.rejudge.clock_answer import clock_answer_discrepancies
from reports.run.folder import MEASUREMENTS
from tests.reports.rejudge.clock_run import LOG, OTHER, TARGET, make_clock_run
from tests.reports.rejudge.clock_trials import edit
from tests.reports.rejudge.field_campaign import unnamed_changes
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS

CHRONY, PTP = f"{TARGET}/chrony", f"{TARGET}/ptp-software"
BY_TWO_WAY = f"{OTHER}/timeservice"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of clocks that nobody has changed."""
    return make_clock_run(tmp_path_factory.mktemp("clocks")).path


@pytest.fixture
def changed(sound: Path) -> Any:
    """Return what changes a file of the run for one test."""
    kept: dict[Path, str] = {}

    def change(place: str, *values: tuple[str, Any]) -> None:
        file = sound / "evidence" / "clock_sync" / place
        kept.setdefault(file, file.read_text())
        edit(file, *values)

    yield change
    for file, text in kept.items():
        file.write_text(text)


def said_of(run: Path) -> list[str]:
    records = [json.loads(line) for line in (run / MEASUREMENTS).read_text().splitlines()]
    return clock_answer_discrepancies(run, records)[0]


@pytest.mark.parametrize("seed", range(1, 4))
def test_an_honest_run_has_no_discrepancy(tmp_path: Path, seed: int) -> None:
    assert said_of(make_clock_run(tmp_path, seed).path) == []


@pytest.mark.parametrize(
    ("file", "place", "value", "said"),
    [
        (f"{CHRONY}/{FILTERED}", "device.name", "tai", "its device is tai, a realtime"),
        (f"{CHRONY}/{FILTERED}", "reference.kind", "phc", "its reference is card, a phc"),
        (f"{CHRONY}/{FILTERED}", "read", "bracketed", "read is bracketed"),
        (f"{CHRONY}/{FILTERED}", "reference_bound_ns", 90, "the card has 397"),
        (f"{CHRONY}/{FILTERED}", "steps_dropped", 3, "steps_dropped is 3, 0 steps are listed"),
        (f"{CHRONY}/{FILTERED}", "elapsed_ns", 8 * SECOND_NS, "took 8000000000 ns, its series ends"),
        (f"{CHRONY}/{FILTERED}", "series.interval_ns", 50_000_000, "100000000 ns apart and more"),
        (f"{CHRONY}/{FILTERED}", "start_monotonic_ns", 3, "uptime began at"),
        (f"{CHRONY}/{SEQUENTIAL}", "start_tai_ns", START_TAI_NS + 1, "nothing was discarded"),
        (f"{CHRONY}/{SEQUENTIAL}", "iterations", 7, "7 iterations, 0 discarded"),
        (f"{CHRONY}/{SEQUENTIAL}", "offset.stddev_ns", 7, "stddev_ns is 7"),
        (f"{CHRONY}/{TRIAL}", "servo.mean_ns", 9, "servo.mean_ns is 9, its log has"),
        (f"{PTP}/{TRIAL}", "servo.observations", 9, "servo.observations is 9, its log has"),
        (f"{PTP}/{TRIAL}", "servo.mean_path_delay_ns", 9, "servo.mean_path_delay_ns is 9, its log has"),
        (f"{PTP}/{TRIAL}", "servo_format", "ptp5", "of format 'ptp5'"),
        (f"{PTP}/{FILTERED}", "gaps.0.to_tai_ns", START_TAI_NS + 9 * SECOND_NS, "its series has samples"),
        (f"{BY_TWO_WAY}/{TARGET_FILE}", "offset_ns", 900_000, "the line has"),
        (f"{BY_TWO_WAY}/{SERVER_FILE}", "kept", 7, "7 kept, its series has 320"),
        (f"{OTHER}/tai-utc.json", "nodes", [{"node": "a", "kernel_s": 36}], "tai-utc.json has [36] s"),
    ],
)
def test_what_was_changed_is_named(
    sound: Path, changed: Callable[..., None], file: str, place: str, value: Any, said: str
) -> None:
    changed(file, (place, value))
    problems = said_of(sound)
    assert any(said in problem for problem in problems), problems


def test_an_answer_that_is_doubtful_anyway_may_have_any_times(
    sound: Path, changed: Callable[..., None]
) -> None:
    reasons = ["reference: the card drifted"]
    gap = {"from_tai_ns": 7, "to_tai_ns": 9}
    changed(f"{CHRONY}/{FILTERED}", ("gaps", [gap]), ("valid", False), ("invalid_reasons", reasons))
    assert said_of(sound) == []


def test_an_answer_of_an_earlier_version_is_left_alone(sound: Path, changed: Callable[..., None]) -> None:
    changed(f"{CHRONY}/{FILTERED}", ("version", "0.2.1"), ("gap_ns", 1), ("filter_ns", 1_000))
    assert said_of(sound) == []


def test_a_log_out_of_order_is_not_counted_again(sound: Path) -> None:
    log = sound / "evidence" / "clock_sync" / PTP / LOG
    text = log.read_text()
    try:
        log.write_text(text + text.replace("ptp4l[10", "ptp4l[9"))
        assert said_of(sound) == []
    finally:
        log.write_text(text)


@pytest.mark.parametrize("every", [18, pytest.param(2, marks=pytest.mark.slow)])
def test_changes_of_trials_are_named_where_other_evidence_holds_them(tmp_path: Path, every: int) -> None:
    run = make_clock_run(tmp_path / "results").path
    unnamed, count = unnamed_changes(run, tmp_path / "work", "clock_sync", every=every)
    assert len(unnamed) <= 0.1 * count, unnamed
    assert count >= 360 // every
