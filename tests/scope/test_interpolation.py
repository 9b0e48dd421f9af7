# SPDX-License-Identifier: Apache-2.0
"""The errors of interpolation that budgets hold are those that are measured, shape by shape."""

from __future__ import annotations

import numpy as np
import pytest

from scope.crossing import fit_samples
from scope.edges import EdgeSettings, find_edges, rise_samples
from scope.interpolation import FOUR_POLES, GAUSSIAN, ONE_POLE, bend, interpolation
from scope.levels import estimate_levels
from tests.scope.model import FrontEnd

INTERVAL_S = 1e-10
TABLES = {"gaussian": GAUSSIAN, "poles": FOUR_POLES, "pole": ONE_POLE}
RISES = (0.9, 1.25, 1.75, 2.5, 3.5, 5.0, 7.0)


def measured(shape: str, rise: float, *, falling: bool = False) -> tuple[float, float, float, float]:
    """Return rise time as it is found, bend, scatter and lean of edges that are spread evenly."""
    rng = np.random.default_rng(1)
    truth = rng.uniform(-3, 3, (1500, 1)) * INTERVAL_S
    front = FrontEnd(rise_s=rise * INTERVAL_S, shape=shape, bits=16)
    frames = front.frames(truth, rng, interval_s=INTERVAL_S, samples=100, starts_high=falling)
    levels = estimate_levels(frames[:200])
    found_rise = rise_samples(frames[:64], levels)
    edges = find_edges(frames, EdgeSettings(levels, fit_samples(found_rise)))
    errors = (edges.time_s - truth[edges.frame, 0]) / INTERVAL_S
    slope, sign = float(np.abs(edges.slope_v_s).mean()), np.sign(edges.slope_v_s)
    bent = bend(slope, float((edges.curvature_v_s2 * sign).mean()), levels.amplitude_v)
    return found_rise, bent, float(errors.std()), float(errors.mean())


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("rise", RISES)
@pytest.mark.parametrize("shape", sorted(TABLES))
def test_table_is_what_is_measured(shape: str, rise: float, falling: bool) -> None:
    row = TABLES[shape][RISES.index(rise)]
    found_rise, bent, scatter, lean = measured(shape, rise, falling=falling)
    assert found_rise == pytest.approx(row[0], rel=0.04)
    assert bent == pytest.approx(row[1], rel=0.07, abs=0.01)
    assert scatter == pytest.approx(row[2], rel=0.15, abs=4e-4)
    assert lean == pytest.approx(row[3], rel=0.15, abs=2e-3)
    stated = interpolation(found_rise, bent)
    assert stated == pytest.approx((scatter, lean), rel=0.2, abs=4e-3)


def test_edge_that_leans_the_other_way_is_found_early() -> None:
    late, early = interpolation(2.0, 0.3), interpolation(2.0, -0.3)
    assert early == (late[0], -late[1])
    assert late[1] > 0


@pytest.mark.parametrize("rise", [0.1, 50.0])
def test_nearest_figures_hold_beyond_the_table(rise: float) -> None:
    assert interpolation(rise, 10.0) == (
        ONE_POLE[0 if rise < 1 else -1][2],
        ONE_POLE[0 if rise < 1 else -1][3],
    )
