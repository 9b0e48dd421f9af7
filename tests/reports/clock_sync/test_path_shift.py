# SPDX-License-Identifier: Apache-2.0
"""The shift by an asymmetric path is seen only where pairs agree with each other and with what was put in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.clock_sync.path_shift import path_shift, shift_measurement
from reports.clock_sync.trial import ClockTrial, load_trial
from reports.errors import RecordError
from reports.quantities import INSTRUMENT_CHECKS
from reports.record.context import Context
from reports.record.measurement import Conditions, Subject
from tests.reports.sample_clock import compare_answer, write_clock_trial

CONTEXT = Context(
    "run", "a test", Subject("virtual", "linux-rt", clock="chrony"), Conditions("ci", "asymmetry"), True, ()
)


def _pairs(folder: Path, means_ns: Sequence[tuple[int, int]]) -> list[tuple[ClockTrial, ClockTrial]]:
    pairs: list[tuple[ClockTrial, ClockTrial]] = []
    for number, pair in enumerate(means_ns):
        found: list[ClockTrial] = []
        for name, mean_ns in zip(("without", "with"), pair, strict=True):
            write_clock_trial(folder / f"{number}-{name}", compare_answer(mean_ns=mean_ns))
            found.append(load_trial(folder / f"{number}-{name}"))
        pairs.append((found[0], found[1]))
    return pairs


def _seen(
    pairs: Sequence[tuple[ClockTrial, ClockTrial]], asymmetries_ns: Sequence[tuple[int, int]]
) -> list[tuple[ClockTrial, ClockTrial]]:
    """Return the pairs with what captures saw of each trial's path."""
    return [
        (
            replace(before, facts=replace(before.facts, asymmetry_ns=without_ns)),
            replace(after, facts=replace(after.facts, asymmetry_ns=with_ns)),
        )
        for (before, after), (without_ns, with_ns) in zip(pairs, asymmetries_ns, strict=True)
    ]


def test_half_of_the_asymmetry_is_seen_and_the_servo_is_blind(tmp_path: Path) -> None:
    means_ns = [(3_000, -21_000), (5_000, -21_000), (1_000, -24_500), (2_000, -22_500)]
    shift = path_shift(_pairs(tmp_path, means_ns), 50_000)
    assert shift.reference_ns == pytest.approx(-25_000, abs=1_500)
    record = shift_measurement(shift, CONTEXT)
    assert (record.outcome, record.quantity, record.n) == ("pass", "path_shift", 4)
    assert "the servo of 0" in record.reason
    assert shift.servo_ns == 0
    assert shift.expected_ns == -25_000
    assert "4 pairs" in shift.text()


def test_what_was_seen_on_the_way_counts_more_than_what_was_set(tmp_path: Path) -> None:
    pairs = _pairs(tmp_path, [(0, -57_000)] * 3)
    assert path_shift(_seen(pairs, [(-100_000, 14_000)] * 3), 50_000).expected_ns == -57_000
    assert path_shift(pairs, 50_000).expected_ns == -25_000


def test_a_path_that_wanders_takes_no_precision_where_captures_saw_it(tmp_path: Path) -> None:
    """By 100 us from pair to pair; what each pair shows is what it should to 3 us."""
    wander_ns = (0, 100_000, -100_000, 60_000, -20_000)
    errors_ns = (1_000, -2_000, 3_000, -1_000, 0)
    pairs = _pairs(
        tmp_path,
        [(0, round(-250_000 - each / 2 + error)) for each, error in zip(wander_ns, errors_ns, strict=True)],
    )
    seen = path_shift(_seen(pairs, [(0, 500_000 + each) for each in wander_ns]), 500_000)
    assert seen.residual_half_ns < 3_000 < 40_000 < seen.reference_half_ns
    assert shift_measurement(seen, CONTEXT).outcome == "pass"
    # The reference shows a tenth less than it should: nobody knows, but by captures.
    short = [(0, round(-0.9 * (250_000 + each / 2))) for each in wander_ns]
    pairs = _pairs(tmp_path / "short", short)
    seen = path_shift(_seen(pairs, [(0, 500_000 + each) for each in wander_ns]), 500_000)
    assert shift_measurement(seen, CONTEXT).outcome == "inconclusive"
    assert shift_measurement(path_shift(pairs, 500_000), CONTEXT).outcome == "pass"


@pytest.mark.parametrize(
    "means_ns",
    [
        [(0, 500), (0, -700), (0, 300)],  # nothing to be seen
        [(0, -60_000), (0, 9_000), (0, -24_000)],  # the pairs contradict each other: the interval holds 0
        [(0, -50_000), (0, -50_500), (0, -49_500)],  # seen, but not what was put in
    ],
)
def test_is_not_shown(tmp_path: Path, means_ns: Sequence[tuple[int, int]]) -> None:
    record = shift_measurement(path_shift(_pairs(tmp_path, means_ns), 50_000), CONTEXT)
    assert record.outcome == "inconclusive"
    assert record.quantity in INSTRUMENT_CHECKS


def test_a_delay_of_the_other_direction_is_seen_with_its_sign(tmp_path: Path) -> None:
    pairs = _pairs(tmp_path, [(0, 24_000), (0, 25_500), (0, 26_000)])
    assert shift_measurement(path_shift(pairs, -50_000), CONTEXT).outcome == "pass"
    assert shift_measurement(path_shift(pairs, 50_000), CONTEXT).outcome == "inconclusive"


def test_two_pairs_are_too_few(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="2 pairs of trials: need at least 3"):
        path_shift(_pairs(tmp_path, [(0, -25_000), (0, -25_000)]), 50_000)
