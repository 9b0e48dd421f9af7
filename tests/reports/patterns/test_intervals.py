# SPDX-License-Identifier: Apache-2.0
"""Intervals hold what is true where least squares, or a first guess that confirms itself, are off."""

from __future__ import annotations

import numpy as np
import pytest

from bench.patterns.bench_patterns import hits
from bench.patterns.drawn_series import PAPER, draw
from reports.patterns.detect import detect
from reports.patterns.edges import jump_draws, tails_of
from reports.patterns.noise import Noise
from reports.patterns.ramp_on_lines import ramp_on_lines
from reports.patterns.regression import distances_of, regress
from reports.patterns.series import Series, series_of


def test_values_on_a_wrong_line_do_not_make_a_grid_narrower() -> None:
    rng = np.random.default_rng(2)
    lines = np.ceil(np.abs(rng.normal(0, 1.5, 4000)))
    values = 5 * lines + rng.normal(0, 0.3, 4000)
    low = (lines == 1) & (rng.random(4000) < 0.03)
    values[low] -= 2.6
    taken = np.where(low, 0.0, lines)
    columns = np.stack([taken, np.ones(4000)])
    answer, deviations = regress(Noise(0, 0), columns, values, np.array([5.0, 0.0]), np.ones(4000))
    assert abs(answer[0] - 5) < 3 * deviations[0]
    least_squares = np.linalg.lstsq(columns.T, values, rcond=None)[0]
    assert abs(least_squares[0] - 5) > 3 * deviations[0]


def test_a_walk_goes_on_while_values_are_missing() -> None:
    assert Noise(1.0, 0.0).deviations_after(np.array([1.0, 4.0])) == pytest.approx([1, 2])
    assert Noise(0.0, 0.0).deviations_after(np.array([1.0, 4.0])) == pytest.approx([1, 1])
    assert distances_of(np.array([0, 0.1, 0.2, 0.6])) == pytest.approx([1, 1, 1, 4])


def test_jumps_tell_a_period_also_beside_far_values() -> None:
    inside = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        times_s = np.sort(0.1 * np.arange(4000) + rng.uniform(-0.01, 0.01, 4000))
        period_s, jump_s = rng.uniform(20, 40), 100 + rng.uniform(0, 20)
        news = rng.standard_t(3, 4000) * 0.3
        turns = (times_s - jump_s) / period_s
        seen = np.asarray(5 * (turns - np.floor(turns)) + news, np.float64)
        turns = (times_s - jump_s - 0.02) / (period_s + 0.002)
        left = np.asarray(seen - 5 * (turns - np.floor(turns)), np.float64)
        start = np.array([period_s + 0.002, jump_s + 0.02])
        drawn = jump_draws(times_s, left - np.median(left), Noise(0, 0), start, 5.0)
        low, high = np.quantile(drawn[:, 0], (0.025, 0.975))
        inside += low <= period_s <= high
    assert inside >= 13  # of 16; by chance of 95 % it is less in 1 of 100


def test_heavy_tails_are_told_from_normal_ones() -> None:
    rng = np.random.default_rng(1)
    assert tails_of(rng.normal(0, 2, 4000)).freedom == 30
    heavy = tails_of(rng.standard_t(3, 4000))
    assert heavy.freedom < 5
    assert heavy.scale == pytest.approx(1, abs=0.1)


def test_ramps_beside_a_grid_do_not_confirm_the_guess_at_them() -> None:
    made = draw(("ramp", "grid"), "white", PAPER, 1)
    truth = made.truth["ramp"]
    findings = detect(series_of(made.times_s, made.values_ms)).findings
    found = {each.kind: each for each in findings}
    assert abs(found["ramp"].parameters["period"].value - truth["period_s"]) < 0.005
    assert hits(found["ramp"], truth)[1]


def test_ramps_on_lines_are_those_by_which_values_lie_on_them() -> None:
    rng = np.random.default_rng(4)
    times_s = 0.1 * np.arange(4000, dtype=np.float64)
    turns = (times_s - 11) / 27.9
    values = 7 * (turns - np.floor(turns)) + 5 * rng.choice(3, 4000) + rng.normal(0, 0.5, 4000)
    series = Series(times_s, np.asarray(values, np.float64))
    [period_s, _], height = ramp_on_lines(series, 5.0, np.array([27.95, 10.8]), 6.8)
    assert period_s == pytest.approx(27.9, abs=0.01)
    assert height == pytest.approx(7, abs=0.25)


def test_a_ramp_whose_period_is_a_multiple_of_that_of_gaps_is_no_part_of_them() -> None:
    made = draw(("ramp", "gap"), "white", PAPER, 1553)
    findings = detect(series_of(made.times_s, made.values_ms)).findings
    assert sorted(each.kind for each in findings) == ["gap", "ramp"]
