# SPDX-License-Identifier: Apache-2.0
"""The benchmark of patterns: which series it draws, and how it counts what was found in them."""

from __future__ import annotations

import numpy as np
import pytest

from bench.patterns.bench_patterns import (
    BARS,
    Outcome,
    Scene,
    confusion,
    figures_of,
    hits,
    period_error,
    scenes,
)
from bench.patterns.drawn_series import FORMS, KINDS, LIVE, NOISES, PAPER, draw, draw_noise, pairs
from reports.patterns.finding import Finding, Parameter


def test_all_kinds_noises_sizes_and_pairs_are_drawn() -> None:
    drawn = scenes(3000)
    assert {each.kinds for each in drawn} == {(), *((kind,) for kind in (*KINDS, *FORMS)), *pairs()}
    assert {(each.noise, each.size) for each in drawn} == {(n, s) for n in NOISES for s in (PAPER, 1, 2, 3)}
    assert len({each.seed for each in drawn}) == 3000
    assert sum(not each.kinds for each in drawn) == 750


@pytest.mark.parametrize("kinds", [(), *((kind,) for kind in (*KINDS, *FORMS)), *pairs()])
def test_a_seed_gives_one_series_and_the_truth_of_its_kinds(kinds: tuple[str, ...]) -> None:
    one, other = (draw(kinds, "ar1", PAPER, 5) for _ in range(2))
    assert np.array_equal(one.values_ms, other.values_ms)
    true = {FORMS.get(kind, kind) for kind in kinds}
    assert true <= set(one.truth) <= {*true, "gap"}
    assert np.all(np.diff(one.times_s) > 0)


def test_the_first_burst_is_off_the_beat_and_some_are_missing() -> None:
    made = draw(("burst",), "white", PAPER, 1)
    truth = made.truth["periodic_outlier"]
    begins_s = made.times_s[1:][np.diff(made.values_ms) > truth["height_ms"] / 2]
    turns = (begins_s - begins_s[-1]) / truth["period_s"]
    assert np.abs(turns[1:] - np.rint(turns[1:])).max() < 0.05
    assert abs(turns[0] - np.rint(turns[0])) == pytest.approx(0.1, abs=0.05)
    assert len(begins_s) < 400 / truth["period_s"] - 1


def test_a_late_first_part_is_above_all_that_follows() -> None:
    made = draw(("late_first",), "white", PAPER, 1)
    first = made.times_s - made.times_s[0] < made.truth["warm_up"]["end_s"]
    assert made.values_ms[first].min() > made.values_ms[~first].max()


def test_series_of_one_noise_are_all_in_it() -> None:
    drawn = scenes(400, 0, (LIVE,))
    assert {each.noise for each in drawn} == {LIVE}
    assert {each.kinds for each in drawn} == {each.kinds for each in scenes(3000)}
    assert "clean_live" in figures_of([outcome((), noise=LIVE)], (LIVE,))


def test_live_noise_has_tails_and_a_slow_wobble() -> None:
    noise = draw_noise(LIVE, 40_000, np.random.default_rng(1))
    assert noise.std() == pytest.approx(0.5, rel=0.1)
    assert np.abs(noise).max() > 8 * noise.std()
    assert noise.reshape(-1, 10).mean(axis=1).std() == pytest.approx(0.3, abs=0.06)  # white: 0.16


def test_live_grids_have_one_line_but_both_about_a_wrap() -> None:
    made = draw(("drifting_grid",), LIVE, PAPER, 3)
    truth = made.truth["drifting_grid"]
    turns = (made.values_ms - truth["slope_ms_per_s"] * made.times_s) / truth["width_ms"]
    line = np.rint(turns - np.angle(np.exp(2j * np.pi * turns).mean()) / (2 * np.pi))
    back = np.flatnonzero(np.diff(line) * np.sign(truth["slope_ms_per_s"]) > 0)
    assert len(back) > 20
    assert len(np.unique(line)) < 16
    usual = [np.ptp(part) == 0 for part in np.array_split(line, 400)]
    assert 0.6 < np.mean(usual) < 0.95


def ramp(period_s: float) -> Finding:
    parameters = {"period": Parameter(period_s, period_s - 1, period_s + 1, "s")}
    return Finding("ramp", parameters, 1e-4)


def outcome(kinds: tuple[str, ...], *findings: Finding, noise: str = "white") -> Outcome:
    truth = {kind: {"period_s": 30.0} for kind in kinds}
    return Outcome(Scene(kinds, noise, PAPER, 0), truth, findings, 0.1)


def test_what_is_found_is_counted() -> None:
    outcomes = [
        outcome(("ramp",), ramp(30.5)),
        outcome(("ramp",), ramp(33.0)),
        outcome(("ramp",)),
        outcome((), ramp(9)),
    ]
    figures = figures_of([*outcomes, outcome(()), outcome(("gap",), ramp(8))])
    assert figures["found_ramp"] == pytest.approx(2 / 3)
    assert figures["inside_ramp"] == 0.5
    assert figures["period_off_ramp"] == pytest.approx(0.1)
    assert (figures["clean_white"], figures["also_ramp"], figures["found_gap"]) == (0.5, 1.0, 0.0)
    bursts = Outcome(Scene(("burst",), "white", PAPER, 0), {"periodic_outlier": {}}, (), 0.1)
    late = figures_of([bursts])
    assert (late["found_burst"], late["alone_periodic_outlier"]) == (0.0, 0.0)
    assert confusion(outcomes) == {"ramp": {"series": 3, "ramp": 2}, "nothing": {"series": 1, "ramp": 1}}


def test_an_offset_is_one_of_a_grid() -> None:
    finding = Finding("grid", {"offset": Parameter(0.1, -0.2, 0.4, "value")}, 1e-4)
    assert hits(finding, {"width_ms": 5.0, "offset_ms": 4.9}) == [True]
    assert hits(finding, {"width_ms": 5.0, "offset_ms": 2.0}) == [False]
    assert period_error(finding, {"width_ms": 5.0}) == 0.0


def test_each_bar_has_its_figure() -> None:
    figures = figures_of([outcome(("ramp",), ramp(30))])
    assert set(BARS) - set(figures) == {"worse_kinds", "better_kinds", "many_s"}
