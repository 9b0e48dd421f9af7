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
from bench.patterns.drawn_series import KINDS, NOISES, PAPER, draw, pairs
from reports.patterns.finding import Finding, Parameter


def test_all_kinds_noises_sizes_and_pairs_are_drawn() -> None:
    drawn = scenes(3000)
    assert {each.kinds for each in drawn} == {(), *((kind,) for kind in KINDS), *pairs()}
    assert {(each.noise, each.size) for each in drawn} == {(n, s) for n in NOISES for s in (PAPER, 1, 2, 3)}
    assert len({each.seed for each in drawn}) == 3000
    assert sum(not each.kinds for each in drawn) == 750


@pytest.mark.parametrize("kinds", [(), *((kind,) for kind in KINDS), *pairs()])
def test_a_seed_gives_one_series_and_the_truth_of_its_kinds(kinds: tuple[str, ...]) -> None:
    one, other = (draw(kinds, "ar1", PAPER, 5) for _ in range(2))
    assert np.array_equal(one.values_ms, other.values_ms)
    assert set(kinds) <= set(one.truth) <= {*kinds, "gap"}
    assert np.all(np.diff(one.times_s) > 0)


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
    assert confusion(outcomes) == {"ramp": {"series": 3, "ramp": 2}, "nothing": {"series": 1, "ramp": 1}}


def test_an_offset_is_one_of_a_grid() -> None:
    finding = Finding("grid", {"offset": Parameter(0.1, -0.2, 0.4, "value")}, 1e-4)
    assert hits(finding, {"width_ms": 5.0, "offset_ms": 4.9}) == [True]
    assert hits(finding, {"width_ms": 5.0, "offset_ms": 2.0}) == [False]
    assert period_error(finding, {"width_ms": 5.0}) == 0.0


def test_each_bar_has_its_figure() -> None:
    figures = figures_of([outcome(("ramp",), ramp(30))])
    assert set(BARS) - set(figures) == {"worse_kinds", "better_kinds", "many_s"}
