# SPDX-License-Identifier: Apache-2.0
"""Changes of a series: found with persistence, never taken back, and not where there are none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.dashboards.change_series import series
from dashboards.regressions.changes import DEFAULTS, Settings, change_needs, find_changes


def noise(runs: int, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return normal noise of deviation 1 around 100, in which nothing is found."""
    values = np.random.default_rng([31, seed]).normal(100, 1, runs)
    assert find_changes(values) == ()
    return values


@pytest.mark.parametrize(("step", "sign"), [(8, 1), (-8, -1)])
def test_finds_a_step_and_where_it_is(step: float, sign: int) -> None:
    values = noise(60)
    values[40:] += step
    (change,) = find_changes(values)
    assert (change.baseline, change.begin) == (0, 40)
    assert change.begin_earliest <= 40 <= change.begin_latest
    assert 42 <= change.seen <= 44
    assert change.z * sign >= DEFAULTS.z_min


@pytest.mark.parametrize(("wild_runs", "found"), [(1, 0), (2, 0), (3, 0), (4, 1)])
def test_asks_for_persistence(wild_runs: int, found: int) -> None:
    values = noise(40)
    values[-wild_runs:] = 1e6
    assert len(find_changes(values)) == found


def test_single_wild_runs_are_no_change_and_hide_none() -> None:
    values = noise(70, seed=1)
    values[[7, 21, 35]] = 1e6
    assert find_changes(values) == ()
    values[50:] += 8
    assert [change.begin for change in find_changes(values)] == [50]


def test_says_nothing_before_it_has_a_baseline() -> None:
    least = DEFAULTS.baseline_min
    values = noise(least + 10)
    values[least - 1 :] += 50
    assert all(change.begin >= least for change in find_changes(values[: least + 3]))
    values = noise(least + 10)
    values[least:] += 50
    assert [change.begin for change in find_changes(values)] == [least]


def test_a_change_can_be_seen_with_the_runs_that_it_needs() -> None:
    runs = np.arange(change_needs() + 1)
    seen: set[int] = set()
    for begin in runs[1:].tolist():
        values = runs * 1e-3 + 50.0 * (runs >= begin)
        assert find_changes(values[:-1]) == (), begin
        seen |= {change.seen for change in find_changes(values)}
    assert seen == {change_needs()}


def test_values_without_noise() -> None:
    assert find_changes([5.0] * 100) == ()
    assert find_changes([]) == ()
    (change,) = find_changes([5.0] * 40 + [6.0] * 20)
    assert (change.begin, change.seen) == (40, 43)
    assert (change.begin_earliest, change.begin_latest) == (40, 40)


def test_changes_follow_each_other() -> None:
    values = noise(140)
    values[40:80] += 9
    values[80:] -= 4
    assert [(c.begin, c.z > 0) for c in find_changes(values)] == [(40, True), (80, False)]


def test_what_was_found_never_changes_with_later_runs() -> None:
    found = 0
    for seed in range(5):
        values = series("log_normal", seed, step_sigma=1.5, runs=90, purpose=77)
        values[70:] *= 0.4
        whole = find_changes(values)
        found += len(whole)
        for runs in range(20, len(values) + 1, 2):
            assert find_changes(values[:runs]) == tuple(c for c in whole if c.seen < runs)
    assert found >= 5


def test_later_changes_need_only_the_runs_since_the_last_one() -> None:
    values = noise(140)
    values[40:80] += 9
    first, second = find_changes(values)
    (again,) = find_changes(values[first.begin :])
    assert (again.begin + first.begin, again.seen + first.begin, again.z) == (
        second.begin,
        second.seen,
        second.z,
    )


def test_a_logarithm_changes_nothing_but_the_place() -> None:
    seen: list[int] = []
    for seed in range(10):
        values = series("log_normal", seed, step_sigma=2, runs=53, purpose=77)
        plain, logarithms = find_changes(values), find_changes(np.log(values))
        assert [(c.seen, c.z) for c in plain[:1]] == [(c.seen, c.z) for c in logarithms[:1]]
        seen.extend(c.seen for c in plain[:1])
    assert len(seen) >= 8


def test_a_baseline_forgets() -> None:
    """A level of long ago, seldom met, does not count against the one of today."""
    settings = Settings(baseline_max=20)
    values = np.concatenate([noise(40), noise(60, seed=2)])
    values[40:] += 9
    values[80:] += 9
    assert [c.begin for c in find_changes(values, settings)] == [40, 80]
    assert find_changes(values, settings)[1].baseline >= 80 - 20 - settings.runs_after_max


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_refuses_what_is_no_value(value: float) -> None:
    with pytest.raises(ValueError, match="number 3 is not finite"):
        find_changes([1.0, 2.0, value, 4.0])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"z_min": 0.0}, "z_min"),
        ({"z_min": math.nan}, "z_min"),
        ({"runs_after_min": 0}, "runs_after_min"),
        ({"runs_after_min": 10}, "runs_after_max"),
        ({"runs_after_max": 16}, "baseline_min"),
        ({"baseline_max": 14}, "baseline_max"),
    ],
)
def test_refuses_settings_that_find_nothing_or_everything(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Settings(**wrong)  # pyright: ignore[reportArgumentType]
