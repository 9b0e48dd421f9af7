# SPDX-License-Identifier: Apache-2.0
"""Pictures that may be left out at the beginning, by the second judge."""

from __future__ import annotations

import numpy as np
import pytest

from reports.control_loops.warm_up import Floats, warm_up
from reports.rejudge.camera_cut import FEW, cut_problems

N = 300


def series(seed: int, memory: float, unsettled: int, kind: str) -> Floats:
    """Return delays in ns whose first values are higher, or scatter more."""
    rng = np.random.default_rng(seed)
    news = rng.standard_t(4, N)
    values = news.copy()
    for n in range(1, N):
        values[n] += memory * values[n - 1]
    if kind == "level":
        values[:unsettled] += 15
    else:
        values[:unsettled] *= 6
    return 1e8 + 1e5 * values


def problems(values: Floats, cut: int, rest: int = 0) -> list[str]:
    took = {number: int(value) for number, value in enumerate(values)}
    return list(cut_problems(took, cut, len(values), rest))


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["level", "scatter"])
def test_what_the_first_judge_cuts_is_never_named(memory: float, kind: str) -> None:
    cuts = 0
    for seed in range(40):
        values = series(seed, memory, 20 + 3 * seed, kind)
        cut = warm_up(np.arange(N) / 25, values).count
        cuts += cut > 0
        assert problems(values, cut) == [], seed
    assert cuts > 20


def test_a_steady_half_that_is_left_out_is_named() -> None:
    named = [problems(series(seed, 0.0, 0, "level"), N // 2) for seed in range(100)]
    assert sum(found == [f"{N // 2} pictures are left out, they are like the others"] for found in named) > 75


def test_more_than_half_is_named_or_a_third_of_few() -> None:
    assert problems(series(1, 0.0, 250, "level"), 200) == ["200 pictures are left out, allowed: 150 at most"]
    few = series(1, 0.0, 0, "level")[: FEW - 1]
    assert problems(few, 33) == []
    assert problems(few, 34) == ["34 pictures are left out, allowed: 33 at most"]


def test_pictures_of_the_rest_may_be_left_out() -> None:
    steady = series(1, 0.0, 0, "level")
    assert problems(steady, 201, rest=201) == []
    assert "202 pictures are left out, allowed: 201 at most" in problems(steady, 202, rest=201)
