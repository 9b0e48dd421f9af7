# SPDX-License-Identifier: Apache-2.0
"""Figures of timed edges: what they are drawn from, and what cannot be drawn."""

from __future__ import annotations

import re

import numpy as np
import pytest

from reports.errors import ReportError
from reports.timed_edges.plots import (
    MethodMark,
    bars_of,
    crossing_ns,
    figure_delays,
    figure_distances,
    figure_methods,
    figure_overlay,
    figure_witnesses,
)
from reports.timed_edges.trial import Delays
from reports.timed_edges.waveforms import Segment, Trace, Waveforms
from tests.reports.sample_edges import digitised, drawn_trial, segments_of


def _delays(values_ns: np.ndarray) -> Delays:
    found = drawn_trial(values_ns, "tgpio-latch").delays
    assert found is not None
    return found


def _step(at_ns: float, height_v: float = 3.3) -> Trace:
    return Trace((0.0, at_ns - 1, at_ns + 1, 100.0), (0.0, 0.0, height_v, height_v))


def test_bars_hold_every_edge_once() -> None:
    delays = _delays(np.random.default_rng(3).normal(-50, 400, 3000))
    edges, counts = bars_of(delays)
    assert counts.sum() == 3000
    assert 40 < len(counts) <= 112
    assert edges[0] <= delays.minimum_ns
    assert edges[-1] >= delays.maximum_ns
    assert np.ptp(np.diff(edges)) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("scale", "unit"), [(1.0, "delay in ns"), (1e3, "delay in µs"), (1e6, "delay in ms")]
)
def test_the_axis_has_the_unit_that_suits(scale: float, unit: str) -> None:
    figure = figure_delays("d", _delays(np.linspace(-30, 30, 50) * scale), "some")
    assert unit in figure


def test_a_single_edge_far_off_is_seen_beside_thousands() -> None:
    figure = figure_delays(
        "d", _delays(np.append(np.random.default_rng(1).normal(0, 5, 5000), 900.0)), "some"
    )
    assert "to 900 ns" in figure
    for power in ("1", "10", "100", "1000"):
        assert re.search(rf">{power}</text>", figure)


def test_one_edge_and_equal_edges_can_be_drawn() -> None:
    for values in (np.array([5.0]), np.full(9, 5.0)):
        delays = _delays(values)
        assert "<svg" in figure_delays("d", delays, "some")
        assert "<svg" in figure_distances("x", [("some", delays)])


def test_distances_need_one_to_four_distributions() -> None:
    delays = _delays(np.linspace(-3, 3, 100))
    assert "10 %" in figure_distances("x", [("a", delays)] * 4)
    for curves in ([], [("a", delays)] * 5):
        with pytest.raises(ReportError, match="1 to 4 distributions"):
            figure_distances("x", curves)


def test_methods_stand_beside_the_papers() -> None:
    marks = [
        MethodMark("tgpio-latch", 8.1, 0.2, 33.0, (16.0, 65.0)),
        MethodMark("some", 81.0, 200.0, None, None),
    ]
    figure = figure_methods("m", marks, 10_000)
    for text in ("8.10 ns", "33.0 ns", "81.0 ns", "of 10⁴ edges", "paper, Table II"):
        assert text in figure
    assert "of 2000 edges" in figure_methods("m", marks, 2000)
    for wrong in ([], [MethodMark("still", 0.0, 0.0, None, None)]):
        with pytest.raises(ReportError, match="at least one method"):
            figure_methods("m", wrong, 0)


def test_a_crossing_is_that_of_the_middle_nearest_to_a_time() -> None:
    assert crossing_ns(_step(40), 0, 1.0) == pytest.approx(40)
    pulse = Trace((0.0, 9.0, 11.0, 59.0, 61.0, 100.0), (0.0, 0.0, 3.0, 3.0, 0.0, 0.0))
    assert crossing_ns(pulse, 0, 1.0) == pytest.approx(10)
    assert crossing_ns(pulse, 80, 1.0) == pytest.approx(10)
    assert crossing_ns(pulse, 0, 1.0, rising=False) == pytest.approx(60)
    assert crossing_ns(_step(40), 0, 1.0, rising=False) is None
    assert crossing_ns(_step(40, 0.4), 0, 1.0) is None
    assert crossing_ns(Trace((0.0, 1.0), (2.0, 2.0)), 0, 0.0) is None


def test_edges_are_laid_over_each_other_from_their_reference() -> None:
    segments = segments_of(digitised(np.array([20.0, 30.0, np.nan, 25.0])))
    figure = figure_overlay("o", Waveforms(tuple(segments)), "some")
    for text in ("3 edges (thin)", "1 missing", "time after the reference edge in ns"):
        assert text in figure
    whole = figure_overlay("o", Waveforms(tuple(segments[:2])), "some")
    assert "missing" not in whole.split("</desc>")[1]


def test_an_edge_is_one_of_the_references_direction_however_near_another_is() -> None:
    falls = Trace((-500.0, -401.0, -399.0, 9.0, 11.0, 100.0), (0.0, 0.0, 3.0, 3.0, 0.0, 0.0))
    reference = Trace((-500.0, -1.0, 1.0, 100.0), (0.0, 0.0, 3.0, 3.0))
    figure = figure_overlay("o", Waveforms((Segment(reference, falls),)), "some")
    assert "400</text>" in figure
    down = [Trace(each.time_ns, tuple(3.0 - volt for volt in each.volts)) for each in (reference, falls)]
    assert "400</text>" in figure_overlay("o", Waveforms((Segment(*down),)), "some")


def test_an_edge_far_off_is_counted_and_the_others_are_told_apart() -> None:
    late = [Segment(_step(0.0), _step(at)) for at in (2.0, 3.0, 4.0, 5.0, 90.0)]
    figure = figure_overlay("o", Waveforms(tuple(late)), "some")
    assert "5 edges (thin), 1 of them beyond" in figure


def test_a_small_signal_is_an_edge_where_all_are_small() -> None:
    segments = [Segment(_step(40, 3.3), _step(50, 0.4)), Segment(_step(40, 3.3), _step(52, 0.4))]
    assert "2 edges (thin)" in figure_overlay("o", Waveforms(tuple(segments)), "some")


def test_without_a_reference_edge_nothing_is_laid_over() -> None:
    flat = Trace((0.0, 1.0, 2.0), (1.0, 1.0, 1.0))
    for segments in ((), (Segment(flat, _step(40)),)):
        with pytest.raises(ReportError, match="no segment with a reference edge"):
            figure_overlay("o", Waveforms(segments), "some")


def test_witnesses_are_drawn_with_their_u() -> None:
    figure = figure_witnesses("w", [("oscilloscope", 1900.0, 15.0), ("captured-edge", -200.0, 30.0)])
    assert "offset in µs, with U" in figure
    assert "oscilloscope" in figure
    with pytest.raises(ReportError, match="no witness"):
        figure_witnesses("w", [])
