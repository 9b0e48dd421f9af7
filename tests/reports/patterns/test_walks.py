# SPDX-License-Identifier: Apache-2.0
"""In a random walk with gaps or two levels a drift keeps its rate, and no change of level is made up."""

from __future__ import annotations

import pytest

from bench.patterns.drawn_series import PAPER, draw
from reports.patterns.detect import detect
from reports.patterns.series import series_of


@pytest.mark.parametrize(
    ("kinds", "seed"),
    [
        (("drifting_grid", "gap"), 1245),  # what follows gaps was guessed, and is none
        (("drifting_grid", "recovery"), 1261),
        (("drifting_grid", "two_levels"), 797),  # a width apart
    ],
)
def test_a_drift_in_a_random_walk_has_its_period(kinds: tuple[str, ...], seed: int) -> None:
    made = draw(kinds, "random_walk", PAPER, seed)
    found = {each.kind: each for each in detect(series_of(made.times_s, made.values_ms)).findings}
    assert found.keys() == made.truth.keys()
    period_s = made.truth["drifting_grid"]["period_s"]
    assert found["drifting_grid"].parameters["period"].value == pytest.approx(period_s, rel=0.002)


@pytest.mark.parametrize("seed", [220, 508])
def test_gaps_in_a_random_walk_make_no_change_of_level(seed: int) -> None:
    made = draw(("recovery",), "random_walk", PAPER, seed)
    findings = detect(series_of(made.times_s, made.values_ms)).findings
    assert sorted(each.kind for each in findings) == ["gap", "recovery"]
