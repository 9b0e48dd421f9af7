# SPDX-License-Identifier: Apache-2.0
"""Grids that drift and show one line at a time, values on both about each wrap: a real one, and drawn ones.

polled_ring_hop.csv is every eighth value of the first hop of a ring on the virtual bench. Its source sends
each 5 ms by one clock, and its first node looks each 5 ms by another, 174.7 ppm apart: 4.6 ramps of 28.62 s.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.patterns.bench_patterns import hits
from bench.patterns.drawn_series import LIVE, PAPER, draw
from reports.__main__ import main
from reports.patterns.detect import detect
from reports.patterns.series import Series, read_csv, series_of
from reports.patterns.wrapped import find_wrapped

MEASURED = Path(__file__).with_name("polled_ring_hop.csv")
TRUTH = {"width_ms": 5.0, "period_s": 5 / 0.1747, "slope_ms_per_s": -0.1747}


@pytest.fixture(name="measured", scope="module")
def _measured() -> Series:
    return series_of(*read_csv(MEASURED))


def medians(series: Series, of: int) -> Series:
    """Return medians of blocks."""
    whole = len(series.values) // of * of
    times_s, values = (each[:whole].reshape(-1, of) for each in (series.times_s, series.values))
    return series_of(times_s.mean(axis=1), np.median(values, axis=1))


def test_a_measured_grid_is_found_with_its_width_period_and_slope(measured: Series) -> None:
    [finding] = detect(measured).findings
    assert finding.kind == "drifting_grid"
    assert finding.parameters["period"].value == pytest.approx(TRUTH["period_s"], rel=0.01)
    assert hits(finding, TRUTH) == [True, True, True]


def test_it_is_said_to_agree_with_both_clocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["patterns", str(MEASURED), "--grid", "5", "--rate-ppm=-174.7"]) == 0
    said = capsys.readouterr().out
    assert "height is the grid of 5; slope is the difference of rates, -174.7 ppm" in said
    assert "periodic_outlier" not in said


@pytest.mark.parametrize("by", [2, 4])
def test_it_is_found_in_each_second_and_fourth_value(measured: Series, by: int) -> None:
    [finding] = detect(series_of(measured.times_s[::by], measured.values[::by])).findings
    assert finding.kind == "drifting_grid"
    assert finding.parameters["period"].value == pytest.approx(TRUTH["period_s"], rel=0.01)


@pytest.mark.parametrize("of", [2, 4])
def test_it_is_found_in_medians_of_blocks(measured: Series, of: int) -> None:
    [finding] = detect(medians(measured, of)).findings
    assert finding.kind == "drifting_grid"
    assert finding.parameters["period"].value == pytest.approx(TRUTH["period_s"], rel=0.01)
    assert hits(finding, TRUTH) == [True, True, True]


def test_4_1_periods_are_enough_and_3_9_are_not(measured: Series) -> None:
    for periods, kinds in ((4.1, ["drifting_grid"]), (3.9, [])):
        part = measured.kept(measured.times_s < periods * TRUTH["period_s"])
        assert [each.kind for each in detect(part).findings if each.kind == "drifting_grid"] == kinds


def test_outliers_of_another_period_beside_it_are_found(measured: Series) -> None:
    values = measured.values.copy()
    values[np.searchsorted(measured.times_s, np.arange(3.0, 130.0, 9.0))] += 60
    found = {each.kind: each for each in detect(series_of(measured.times_s, values)).findings}
    assert found.keys() == {"drifting_grid", "periodic_outlier"}
    assert found["periodic_outlier"].parameters["period"].value == pytest.approx(9, abs=0.05)
    assert found["drifting_grid"].parameters["period"].value == pytest.approx(TRUTH["period_s"], rel=0.01)


@pytest.mark.parametrize(("other", "seed"), [("periodic_outlier", 2461), ("warm_up", 2473)])
def test_it_is_found_beside_what_hides_its_lines(other: str, seed: int) -> None:
    made = draw(("drifting_grid", other), LIVE, PAPER, seed)
    found = {each.kind: each for each in detect(series_of(made.times_s, made.values_ms)).findings}
    assert found.keys() == made.truth.keys()
    period_s = made.truth["drifting_grid"]["period_s"]
    assert found["drifting_grid"].parameters["period"].value == pytest.approx(period_s, rel=0.005)


def test_intervals_hold_the_truth_of_drawn_ones() -> None:
    inside: list[bool] = []
    for seed in range(1, 5):
        made = draw(("drifting_grid",), LIVE, PAPER, seed)
        [finding] = detect(series_of(made.times_s, made.values_ms)).findings
        assert finding.kind == "drifting_grid"
        inside += hits(finding, made.truth["drifting_grid"])
    assert sum(inside) >= 9  # of 12; by chance of 95 % it is less in 1 of 400


@pytest.mark.parametrize("noise", ["heavy_tailed", "random_walk", LIVE])
def test_ramps_that_jump_at_an_instant_are_no_grid(noise: str) -> None:
    made = draw(("ramp",), noise, PAPER, 12)
    series = series_of(made.times_s, made.values_ms)
    wrapped = find_wrapped(series)
    assert wrapped is None or not wrapped.is_grid
    assert [each.kind for each in detect(series).findings] == ["ramp"]


@pytest.mark.parametrize("seed", range(2))
def test_live_noise_alone_has_nothing(seed: int) -> None:
    made = draw((), LIVE, PAPER, seed)
    assert not detect(series_of(made.times_s, made.values_ms)).findings


def test_lines_of_which_several_are_in_use_are_left_to_differences() -> None:
    made = draw(("drifting_grid",), "white", PAPER, 12)
    assert find_wrapped(series_of(made.times_s, made.values_ms)) is None
