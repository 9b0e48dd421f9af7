# SPDX-License-Identifier: Apache-2.0
"""Looking at many runs at once finds what looking at each of them finds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dashboards.regressions.changes import find_changes
from dashboards.regressions.settings import DEFAULTS, Settings
from dashboards.regressions.split import score_table, score_variance, splits, strongest
from dashboards.regressions.suspects import CLOSE, suspects

SHORT = Settings(z_min=2.6, runs_after_min=3, runs_after_max=7, baseline_min=12, baseline_max=60)


def alarms(values: NDArray[np.float64], settings: Settings) -> set[int]:
    """Return the runs after which a series has changed, each looked at by itself, its beginning the same."""
    found: set[int] = set()
    for last in range(settings.baseline_min + settings.runs_after_min - 1, len(values)):
        window = values[max(0, last + 1 - settings.runs_after_max - settings.baseline_max) : last + 1]
        longest = min(settings.runs_after_max, len(window) - settings.baseline_min)
        strong = strongest(splits(window, range(settings.runs_after_min, longest + 1)))
        if abs(strong.z) >= settings.z_min:
            found.add(last)
    return found


@pytest.mark.parametrize("settings", [DEFAULTS, SHORT], ids=["defaults", "short"])
@pytest.mark.parametrize("kind", ["smooth", "step", "few values", "two values"])
def test_no_alarm_is_missed(kind: str, settings: Settings) -> None:
    found = 0
    for seed in range(12):
        values = np.random.default_rng([64, seed]).lognormal(0, 0.5, 330)
        if kind == "step":
            values[150:] *= 1.8
        if kind == "few values":
            values = np.round(values)
            values[200:] += 1
        if kind == "two values":
            values[200:] *= 2
            values = (values > 1.9).astype(np.float64)
        wanted = alarms(values, settings)
        assert wanted <= set(suspects(values, 0, 0, settings)), seed
        found += len(wanted)
    assert found


def test_equal_values_take_less_from_z_than_is_allowed_for() -> None:
    """Groups of equal values at both ends are what shifts the mean of the scores the most."""
    worst = 0.0
    for n in (24, 60, DEFAULTS.baseline_max + DEFAULTS.runs_after_max):
        table = score_table(n)
        single = np.array([table[2 * rank] for rank in range(1, n + 1)])
        step = n // 12
        for low in range(0, n + 1, step):
            for high in range(0, n - low + 1, step):
                lost = low * table[low + 1] - single[:low].sum() if low else 0.0
                lost += high * table[2 * n - high + 1] - single[n - high :].sum() if high else 0.0
                for count in range(DEFAULTS.runs_after_min, DEFAULTS.runs_after_max + 1):
                    z = count * lost / n * np.sqrt((1 / count + 1 / (n - count)) / score_variance(n))
                    worst = max(worst, abs(z))
    assert 0.2 < worst < CLOSE


def test_a_run_that_is_wild_by_itself_is_no_change() -> None:
    values = np.random.default_rng(7).lognormal(0, 0.1, 60)
    values[30] = 1e9
    assert find_changes(values) == ()
