# SPDX-License-Identifier: Apache-2.0
"""Patterns are drawn where the values lie, and said in a sentence."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bench.patterns.drawn_series import KINDS, PAPER, draw
from reports.patterns import drawn as drawing
from reports.patterns.detect import detect
from reports.patterns.drawn import Drawn, drawn_of
from reports.patterns.finding import Finding, Parameter
from reports.patterns.plot import figure_patterns
from reports.patterns.sentence import KINDS as SAID
from reports.patterns.sentence import parameter_words, sentence
from reports.patterns.series import Series, series_of


def shown(kinds: tuple[str, ...], seed: int = 12) -> tuple[Series, Drawn, list[str]]:
    made = draw(kinds, "white", PAPER, seed)
    series = series_of(made.times_s, made.values_ms)
    found = detect(series).findings
    assert {each.kind for each in found} == set(kinds)
    return series, drawn_of(series, found), [sentence(each) for each in found]


def off_lines(of: Drawn, kind: str) -> np.ndarray:
    """Return how far each drawn value lies from the nearest line of a kind at its time, in ms."""
    nearest = np.full(len(of.times_s), np.inf)
    for line in of.lines:
        if line.kind == kind:
            at = np.interp(of.times_s, line.times_s, line.values, left=np.nan, right=np.nan)
            nearest = np.fmin(nearest, np.abs(np.array(of.values) - at))
    return nearest


@pytest.mark.parametrize("kind", ["ramp", "grid", "drifting_grid"])
def test_lines_go_through_the_values(kind: str) -> None:
    _, of, _ = shown((kind,))
    # Noise deviates by 0.5 ms, a grid is 5 ms wide: at random nearly half lay farther off than 1.2 ms.
    assert np.quantile(off_lines(of, kind), 0.9) < 1.2


def test_a_ramp_goes_on_at_another_level() -> None:
    _, of, _ = shown(("ramp", "level_change"))
    assert np.quantile(off_lines(of, "ramp"), 0.9) < 1.2
    assert {line.kind for line in of.lines} == {"ramp", "level_change"}


def test_gaps_are_where_values_are_missing() -> None:
    series, of, _ = shown(("gap", "recovery"))
    gaps = [each for each in of.spans if each.kind == "gap"]
    assert len(gaps) >= 15
    for gap in gaps:
        inside = (series.times_s > gap.begin_s + 1e-3) & (series.times_s < gap.end_s - 1e-3)
        assert not inside.any()
    [first, *_] = [line for line in of.lines if line.kind == "recovery" and line.times_s[0] in _ends(gaps)]
    assert first.values[0] > first.values[-1] + 3


def _ends(gaps: list[drawing.Span]) -> set[float]:
    return {each.end_s for each in gaps}


def test_gaps_of_two_turns_are_those_of_one() -> None:
    """Of gaps each 10 s, found with a period of 20 s, those of one phase are drawn: not none between both."""
    at = np.arange(0, 400, 0.1)
    kept = (at + 5) % 10 > 0.8
    series = series_of(at[kept], np.sin(at[kept] * 77.7))
    period = Finding(
        "gap", {"period": Parameter(20, 20, 20, "s"), "length": Parameter(0.8, 0.8, 0.8, "s")}, 0
    )
    assert len(drawn_of(series, [period]).spans) == 20


def test_outliers_levels_and_warm_up_are_marked() -> None:
    _, of, _ = shown(("periodic_outlier", "warm_up"))
    assert len(of.marked) > 30
    assert min(of.marked) > 500
    assert [each.kind for each in of.spans] == ["warm_up"]
    _, of, _ = shown(("two_levels",))
    assert np.quantile(off_lines(of, "two_levels"), 0.9) < 1.2


def test_bursts_are_marked_as_long_as_they_are() -> None:
    made = draw(("burst",), "white", PAPER, 12)
    series = series_of(made.times_s, made.values_ms)
    [finding] = detect(series).findings
    of = drawn_of(series, [finding])
    late = series.values > 12 + 0.15 * made.truth["periodic_outlier"]["height_ms"]
    shown_late = late & (series.times_s >= of.from_s) & (series.times_s <= of.to_s)
    on_beat = np.isin(np.round(series.times_s[shown_late], 6), np.array(of.marked_s))
    assert on_beat.mean() > 0.9  # all but the first burst, which is off the beat
    assert sentence(finding).startswith("Each ")
    assert " values are late for " in sentence(finding)


def test_the_sentence_of_a_first_part_that_is_late() -> None:
    first = {"end": Parameter(1.84, 1.8, 1.88, "s"), "height": Parameter(494.0, 493.0, 495.0, "value")}
    assert sentence(Finding("warm_up", first, 0)) == "The first 1.84 s lie 494 ms above the rest."


def test_a_grid_that_is_too_fine_is_not_an_area() -> None:
    rng = np.random.default_rng(1)
    series = series_of(np.arange(500.0), (0.01 * rng.integers(0, 200, 500)).astype(np.float64))
    grid = Finding("grid", {"width": Parameter(0.01, 0.01, 0.01, "value")}, 0)
    assert drawn_of(series, [grid]).lines == ()


def test_few_values_are_drawn_and_the_farthest_are_among_them() -> None:
    series, of, _ = shown(("level_change",))
    assert len(of.times_s) <= drawing.POINTS_MAX + drawing.FAR_MAX < len(series.values)
    assert round(float(series.values.max()), 6) in of.values
    assert (of.from_s, of.to_s) == (0.0, round(series.length_s, 6))
    # Of many periods only some are.
    _, of, _ = shown(("gap",))
    assert of.to_s - of.from_s < 200


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_sentence_and_a_figure(kind: str) -> None:
    kinds = ("gap", "recovery") if kind == "recovery" else (kind,)
    made = draw(kinds, "white", PAPER, 12)
    series = series_of(made.times_s, made.values_ms)
    found = [each for each in detect(series).findings if each.kind == kind]
    assert len(found) == 1
    assert SAID[kind] <= found[0].parameters.keys()
    said = sentence(found[0])
    assert re.fullmatch(r"[A-Z].*\.", said)
    assert "e+" not in said
    svg = figure_patterns("one", drawn_of(series, found), "whole", [said])
    assert said in svg
    assert svg == figure_patterns("one", drawn_of(series, found), "whole", [said])


def test_the_sentence_of_a_grid_that_drifts() -> None:
    drifts = Finding(
        "drifting_grid",
        {
            "width": Parameter(5.0, 4.99, 5.01, "value"),
            "period": Parameter(32.69, 32.68, 32.7, "s"),
            "slope": Parameter(0.1531, 0.153, 0.1532, "value/s"),
        },
        1e-9,
    )
    said = "Values rise by 5 ms and jump back each 32.7 s: a grid whose two clocks differ by 153 ppm."
    assert sentence(drifts) == said
    assert parameter_words(drifts).endswith("slope 0.1531 (0.153 … 0.1532) ms/s; false alarms below 1e-6")


def test_ramps_that_no_two_clocks_make_are_no_grid() -> None:
    def ramp(slope: float) -> Finding:
        of = {"period": (32.0, "s"), "height": (5.0, "value"), "slope": (slope, "value/s")}
        return Finding("ramp", {name: Parameter(v, v, v, unit) for name, (v, unit) in of.items()}, 0)

    assert sentence(ramp(-0.156)).endswith(": were it a grid, its two clocks would differ by 156 ppm.")
    assert sentence(ramp(-3.9)) == "Values fall by 5 ms and jump back each 32 s."
    assert "clocks" not in sentence(ramp(-0.156), of_clock=True)
