# SPDX-License-Identifier: Apache-2.0
"""Change points of one series of values, found run by run as a user would have seen them.

After each run the splits that leave `runs_after_min` .. `runs_after_max` runs behind them are looked at. If
the strongest reaches `z_min`, the series has changed; the values behind the change are the next baseline.
What was found never changes with later runs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dashboards.regressions.place import Place, find_place
from dashboards.regressions.settings import DEFAULTS, Settings
from dashboards.regressions.split import splits, strongest
from dashboards.regressions.suspects import suspects


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a series; all places are indices of its values.

    Attributes:
        baseline: First value of the baseline that it is a change from.
        begin: Most likely the first value after the change.
        begin_earliest: The first value after the change is this one or a later one.
        begin_latest: It is this one or an earlier one.
        seen: The value with which the change became visible.
        z: How strong it is; positive: values went up.
    """

    baseline: int
    begin: int
    begin_earliest: int
    begin_latest: int
    seen: int
    z: float


def find_changes(
    values: Sequence[float] | NDArray[np.float64], settings: Settings = DEFAULTS
) -> tuple[Change, ...]:
    """Return the changes of a series in the order in which they became visible.

    Args:
        values: In the order of the runs, all measured with the same bench.
        settings: How to look.

    Raises:
        ValueError: A value is not finite.
    """
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"values: number {int(np.argmin(np.isfinite(array))) + 1} is not finite")
    found: list[Change] = []
    while (change := _next_change(array, found, settings)) is not None:
        found.append(change)
    return tuple(found)


@functools.cache
def change_needs(settings: Settings = DEFAULTS) -> int:
    """Return how many earlier runs there have to be before a run can show a change, however large."""
    ready = settings.baseline_min + settings.runs_after_min
    return next(
        runs - 1
        for runs in range(ready, settings.baseline_min + ready + settings.baseline_max)
        if _change_seen(np.arange(runs, dtype=np.float64), settings) is not None
    )


def _next_change(values: NDArray[np.float64], found: Sequence[Change], settings: Settings) -> Change | None:
    start, seen = (found[-1].begin, found[-1].seen + 1) if found else (0, 0)
    for last in suspects(values, start, seen, settings):
        first = max(start, last + 1 - settings.runs_after_max - settings.baseline_max)
        change = _change_seen(values[first : last + 1], settings)
        if change is not None:
            z, place = change
            end = last + 1
            return Change(first, end - place.after, end - place.after_max, end - place.after_min, last, z)
    return None


def _change_seen(window: NDArray[np.float64], settings: Settings) -> tuple[float, Place] | None:
    """Return how strongly the last values of a window differ and since when; None: not enough."""
    longest = len(window) - settings.baseline_min
    looked_at = range(settings.runs_after_min, min(settings.runs_after_max, longest) + 1)
    if not looked_at:
        return None
    alarm = strongest(splits(window, looked_at))
    if abs(alarm.z) < settings.z_min:
        return None
    # The place may be further back than the look for an alarm goes, or a little nearer.
    places = range(max(1, settings.runs_after_min // 2), longest + 1)
    place = find_place(window, places, upwards=alarm.z > 0)
    return alarm.z, place or Place(alarm.after, alarm.after, alarm.after)
