# SPDX-License-Identifier: Apache-2.0
"""Patterns that hid each other, or hid in their noise: each is found with what it truly is."""

from __future__ import annotations

import numpy as np
import pytest

from bench.patterns.drawn_series import PAPER, draw
from reports.patterns.detect import detect
from reports.patterns.finding import Parameter
from reports.patterns.lines_shared import find_change_of_lines
from reports.patterns.noise import fit_noise
from reports.patterns.series import series_of
from reports.patterns.unfolded import unfolded


@pytest.mark.parametrize(
    ("kinds", "noise", "seed"),
    [
        (("ramp",), "random_walk", 1003),  # jumps are all one sees of it
        (("ramp", "gap"), "heavy_tailed", 1114),  # its period is nearly thrice that of the gaps
        (("grid", "level_change"), "white", 1148),
        (("grid", "warm_up"), "white", 1156),
        (("grid", "warm_up"), "ar1", 229),  # its lines are miscounted there: no level by itself
        (("grid", "late_first"), "ar1", 2),
        (("drifting_grid", "periodic_outlier"), "ar1", 1169),
        (("drifting_grid", "two_levels"), "random_walk", 1179),
        (("ramp", "two_levels"), "ar1", 1129),
    ],
)
def test_both_of_a_pair_are_found(kinds: tuple[str, ...], noise: str, seed: int) -> None:
    made = draw(kinds, noise, PAPER, seed)
    findings = detect(series_of(made.times_s, made.values_ms)).findings
    assert sorted(each.kind for each in findings) == sorted(made.truth)
    for each in findings:
        if "period" in each.parameters:
            period_s = made.truth[each.kind]["period_s"]
            assert each.parameters["period"].value == pytest.approx(period_s, rel=0.002)


def test_values_less_their_lines_follow_a_level_that_moves() -> None:
    rng = np.random.default_rng(3)
    times_s = np.arange(2000, dtype=np.float64) * 0.1
    level = 4 * np.clip((times_s - 80) / 20, 0, 1) + rng.normal(0, 0.3, 2000)
    values = np.asarray(level + 5 * rng.choice(3, 2000), np.float64)
    found = unfolded(times_s, values, 5.0, 0.0)
    assert found is not None
    left = values - found.grid - level
    assert left == pytest.approx(np.full(2000, left[0]), abs=1e-9)


def test_lines_that_nobody_can_tell_are_none() -> None:
    rng = np.random.default_rng(3)
    assert unfolded(np.arange(2000, dtype=np.float64) * 0.1, rng.normal(0, 5, 2000), 5.0, 0.0) is None


WIDTH = Parameter(5.0, 4.99, 5.01, "value")


@pytest.mark.parametrize(("by", "course_s", "kind"), [(1, 20.0, "two_levels"), (-2, 0.01, "level_change")])
def test_a_change_by_whole_widths_is_in_the_numbers_of_lines(by: int, course_s: float, kind: str) -> None:
    rng = np.random.default_rng(5)
    times_s = np.arange(3000, dtype=np.float64) * 0.1
    share = np.clip((times_s - 140) / course_s, 0, 1)
    lines = (rng.choice(3, 3000, p=(0.7, 0.2, 0.1)) + by * (rng.random(3000) < share)).astype(np.int64)
    found = find_change_of_lines(times_s, lines, WIDTH)
    assert found is not None
    assert found.kind == kind
    assert found.parameters["height"].value == 5.0 * by
    assert found.parameters["start"].low <= 140 <= found.parameters["start"].high + 0.2


def test_more_lines_are_no_change_of_level() -> None:
    """The mean changes by one width, but values come to lie on other lines."""
    rng = np.random.default_rng(5)
    late = np.arange(3000) > 1500
    lines = np.where(late, rng.choice(3, 3000, p=(0.5, 0.0, 0.5)), 0).astype(np.int64)
    assert find_change_of_lines(np.arange(3000, dtype=np.float64) * 0.1, lines, WIDTH) is None


def test_white_noise_has_no_memory_that_cancels() -> None:
    fitted = [fit_noise(np.random.default_rng(seed).normal(0, 1, 4000)) for seed in range(8)]
    assert sum(each.memory == each.mixed == 0 for each in fitted) >= 7
