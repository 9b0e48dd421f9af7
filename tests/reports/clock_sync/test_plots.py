# SPDX-License-Identifier: Apache-2.0
"""Figures of clocks: the same bytes each time, sound XML, open gaps, extremes that survive thinning."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reports.clock_sync.client_logs import read_ntp_user
from reports.clock_sync.holdover import HoldoverEnvelope, measured_holdover
from reports.clock_sync.linuxptp_logs import read_ptp4l
from reports.clock_sync.logs import ServoSeries
from reports.clock_sync.mask import load_mask
from reports.clock_sync.mask_curve import MaskPoint
from reports.clock_sync.plots import (
    _upright,  # pyright: ignore[reportPrivateUsage]
    bars_of,
    figure_corrections,
    figure_distribution,
    figure_holdover,
    figure_offset_delay,
    figure_stability,
    figure_time_error,
)
from reports.clock_sync.series import ClockSeries
from reports.clock_sync.stability import Curve, mtie
from reports.clock_sync.time_error import distribution
from reports.errors import ReportError
from reports.record.histogram import Summary
from reports.svg import INKS
from reports.units import NS_PER_S
from tests.reports.sample_run import summary as tool_summary

LOG = Path(__file__).resolve().parent / "golden" / "ptp4l.log"


def series(n: int = 6000) -> ClockSeries:
    rng = np.random.default_rng(3)
    times = np.concatenate([np.arange(n // 2), n + np.arange(n - n // 2)]) * NS_PER_S
    return ClockSeries.from_samples(times, np.rint(rng.normal(0, 900, n)).astype(np.int64))


def servo() -> ServoSeries:
    return read_ptp4l(LOG.read_text()).series[0]


def envelope() -> HoldoverEnvelope:
    found = measured_holdover([(series(), 100 * NS_PER_S)])
    assert found is not None
    return found


def curve() -> Curve:
    found = mtie(series())
    assert found is not None
    return found


FIGURES: dict[str, Callable[[], str]] = {
    "te": lambda: figure_time_error(
        "te", [("bench", series()), ("other", series(40))], limit_ns=2000, steps_ns=[NS_PER_S]
    ),
    "dist": lambda: figure_distribution("dist", distribution(series().offsets())),
    "tool": lambda: figure_distribution("tool", Summary.from_json(tool_summary([3, 900, 20_000, 1_000_000]))),
    "mtie": lambda: figure_stability(
        "mtie", "mtie", [("bench", curve())], load_mask("g8272-prtc-a"), MaskPoint(4 * NS_PER_S, 20, 26, 9)
    ),
    "bare": lambda: figure_stability("bare", "mtie", [("bench", curve())]),
    "hold": lambda: figure_holdover(
        "hold",
        envelope(),
        [4000.0],
    ),
    "delay": lambda: figure_offset_delay("delay", servo()),
    "corr": lambda: figure_corrections("corr", servo()),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_sound_deterministic_and_in_the_pages_colours(name: str) -> None:
    text = FIGURES[name]()
    assert text == FIGURES[name]()
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - our own
    assert f'id="{name}-title"' in text
    assert not [colour for colour in INKS.values() if colour in text]
    assert "#000000" not in text
    assert "var(--type0)" in text


def paths(text: str, colour: str = "--type0") -> list[str]:
    """Return the drawn lines of one colour."""
    return [d for d, style in re.findall(r'<path d="([^"]+)"[^>]*style="([^"]*)"', text) if colour in style]


def test_a_name_with_dollars_is_a_name() -> None:
    """It is no formula, and no broken one ends the page."""
    assert "$x_{$ gm" in figure_time_error("a", [("$x_{$ gm", series())])


def test_a_gap_stays_open() -> None:
    whole = ClockSeries.regular(NS_PER_S, series().offsets())
    assert len(paths(figure_time_error("a", [("x", whole)]))) < len(
        paths(figure_time_error("a", [("x", series())]))
    )


def test_one_outlier_of_a_million_is_drawn() -> None:
    offsets = np.zeros(1_000_000, np.int64)
    offsets[123_456] = 5_000_000
    text = figure_time_error("a", [("x", ClockSeries.regular(1_000_000, offsets))])
    heights = [float(y) for d in paths(text) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", d)]
    assert max(heights) - min(heights) > 100
    assert "5.0" not in text
    assert "time error in ms" in text


def test_the_dashed_lines_stand_at_the_extremes() -> None:
    text = figure_distribution("a", distribution(np.array([-500, 0, 0, 800], np.int64)))
    assert len(re.findall(r"stroke: var\(--type1\)", text)) == 2
    assert "4 samples from \N{MINUS SIGN}500 ns to 800 ns." in text


def test_bars_hold_every_sample_once() -> None:
    for found in (
        distribution(series().offsets()),
        distribution(series().offsets(), 1),
        Summary.from_json(tool_summary([3, 900, 20_000, 1_000_000, -7, -900_000])),
        distribution(np.array([12], np.int64)),
    ):
        edges, counts = bars_of(found)
        assert counts.sum() == found.n
        assert len(edges) == len(counts) + 1 <= 123
        assert found.min_ns is not None
        assert found.max_ns is not None
        assert edges[0] <= found.min_ns
        assert edges[-1] >= found.max_ns


def test_what_is_above_the_mask_is_ringed_in_the_colour_of_failure() -> None:
    mask = load_mask("g8272-prtc-a")
    good, bad = (
        figure_stability("a", "mtie", [("bench", curve())], mask, MaskPoint(4 * NS_PER_S, value_ns, 26, 9))
        for value_ns in (26, 26.5)
    )
    assert bad.count("var(--fail)") > good.count("var(--fail)")
    assert "26 ns allowed at tau = 4 s, where least is left" in good
    assert "No tau can be judged" in figure_stability("a", "mtie", [("bench", curve())], mask)


def test_overflow_is_said() -> None:
    found = Summary(3, 0, 10**9, None, None, 1, ((0, 1, 2),))
    assert "1 samples beyond the buckets" in figure_distribution("a", found)


def test_figures_without_samples_are_refused() -> None:
    empty = ClockSeries.from_samples([], [])
    with pytest.raises(ReportError, match="0 series"):
        figure_time_error("a", [("x", empty)])
    with pytest.raises(ReportError, match="no sample"):
        figure_distribution("a", distribution(empty.offsets()))
    with pytest.raises(ReportError, match="0 curves"):
        figure_stability("a", "mtie", [])
    silent = read_ntp_user(
        '{"type":"poll","time_tai_ns":1,"offset_ns":2,"delay_ns":null,"freq_ppb":null,"state":""}\n'
    ).series[0]
    with pytest.raises(ReportError, match="path delays"):
        figure_offset_delay("a", silent)
    assert "frequency in ppb" not in figure_corrections("a", silent)


def test_axes_of_stability_have_times_not_powers_of_ten() -> None:
    large = replace(curve(), value=curve().value * 1000)
    svg = figure_stability("mtie", "mtie", [("clock", large)], load_mask("paper-40us"))
    texts = re.findall(r"<text[^>]*>([^<]*)<", svg)
    assert "MTIE" in texts
    assert any(re.fullmatch(r"[0-9.]+ ms", text) for text in texts)
    assert not [text for text in texts if "e+" in text]


def test_a_clock_with_many_gaps_and_steps_makes_no_large_figure() -> None:
    """A day on which every other second is missing, and the clock is stepped each time."""
    times = 3 * np.arange(28_800) * NS_PER_S
    times = np.sort(np.concatenate([times, times + NS_PER_S]))
    offsets = np.rint(np.random.default_rng(4).normal(0, 900, len(times))).astype(np.int64)
    offsets[40_000] = 90_000
    gapped = ClockSeries.from_samples(times, offsets)
    assert len(gapped.stretches) == 28_800
    drawn = figure_time_error("te", [("bench", gapped)], steps_ns=times[::50].tolist())
    assert len(drawn) < 200_000
    assert f"28799 gaps, {len(times[::50])} steps" in drawn
    assert np.nanmax(_upright(gapped)[1]) == 90_000
    few = figure_time_error("te", [("bench", ClockSeries.from_samples(times[:40], offsets[:40]))])
    assert len(few) < 60_000
