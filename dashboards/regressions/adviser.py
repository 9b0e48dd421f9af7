# SPDX-License-Identifier: Apache-2.0
"""From the runs of a series to its events. Runs are compared with runs of the same bench only.

A bench key (kernel, cable, calibration, instrument) that was never there before begins a baseline of its own
instead of an alarm. A key that comes back continues the baseline that it had: a kernel that was tried for a
night does not make the adviser forget the year before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dashboards.regressions.changes import DEFAULTS, Change, Settings, find_changes
from dashboards.regressions.event import Event, Kind, Level, RunValue
from reports.quantities import Worse


def advise(
    series: str,
    unit: str,
    runs: Iterable[RunValue],
    *,
    worse: Worse = "higher",
    settings: Settings = DEFAULTS,
) -> tuple[Event, ...]:
    """Return the events of a series in the order in which they became visible.

    What was returned for some runs is returned again, the same, when later runs join them.

    Args:
        series: Name of the series, for the reader.
        unit: Unit of its values.
        runs: Its runs in any order. A run without a value is left out by the caller: nothing is filled in.
        worse: Which changes are regressions; the others are improvements.
        settings: How to look for changes.

    Raises:
        ValueError: A value is not finite, or a run is there twice.
    """
    events: list[Event] = []
    for baseline in baselines(runs):
        values = np.array([run.value for run in baseline])
        changes = find_changes(values, settings)
        events.extend(event_of(series, unit, baseline, values, change, worse) for change in changes)
    return tuple(sorted(events, key=lambda event: (event.seen.time_ns, event.seen.run_id)))


def baselines(runs: Iterable[RunValue]) -> list[tuple[RunValue, ...]]:
    """Return the runs by bench key, in order of time, the key that was used first first.

    Raises:
        ValueError: A value is not finite, or a run is there twice; the text names the run.
    """
    found: dict[str, list[RunValue]] = {}
    seen: set[str] = set()
    for run in sorted(runs, key=lambda run: (run.time_ns, run.run_id)):
        if not math.isfinite(run.value):
            raise ValueError(f"run {run.run_id}: value {run.value} is not finite")
        if run.run_id in seen:
            raise ValueError(f"run {run.run_id} is there twice")
        seen.add(run.run_id)
        found.setdefault(run.bench_key, []).append(run)
    return [tuple(group) for group in found.values()]


def event_of(
    series: str,
    unit: str,
    runs: Sequence[RunValue],
    values: NDArray[np.float64],
    change: Change,
    worse: Worse,
) -> Event:
    """Return a change of a series as an event.

    Args:
        series: Name of the series, for the reader.
        unit: Unit of its values.
        runs: The runs that were looked at, all of the same bench key, in order of time.
        values: Their values.
        change: What was found in them.
        worse: Which changes are regressions.
    """
    before = Level.of(values[change.baseline : change.begin])
    after = Level.of(values[change.begin : change.seen + 1])
    return Event(
        kind=_kind(before, after, change, worse),
        series=series,
        unit=unit,
        last_before=runs[change.begin - 1],
        first_after=runs[change.begin],
        range_before=runs[change.begin_earliest - 1],
        range_after=runs[change.begin_latest],
        seen=runs[change.seen],
        before=before,
        after=after,
        z=change.z,
    )


def _kind(before: Level, after: Level, change: Change, worse: Worse) -> Kind:
    if worse == "farther from zero":
        regressed = abs(after.median) > abs(before.median)
    else:
        regressed = (change.z > 0) == (worse == "higher")
    return "regression" if regressed else "improvement"
