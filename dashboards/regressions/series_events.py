# SPDX-License-Identifier: Apache-2.0
"""A change of a series as an event, for the report, and as a point of `hil_event`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dashboards.line_protocol import Point
from dashboards.points import SUBJECT_TAGS, event_point
from dashboards.regressions.changes import Change
from dashboards.regressions.event import Event, Kind, Level, RunValue
from reports.capability import Worse
from reports.quantities import axis_words

TITLE_TAGS = (*SUBJECT_TAGS[1:], "quantity", "statistic", "condition")


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


def stored_event(event: Event, measurement: str, tags: Mapping[str, str]) -> Point:
    """Return an event of a series as a point of `hil_event`, at the time of the first run after the change.

    Args:
        event: The event.
        measurement: Of the series, one of `points.MEASUREMENTS`.
        tags: Of the series.
    """
    first_after = event.first_after
    about = Point(measurement, dict(tags), {"run_id": first_after.run_id}, first_after.time_ns)
    return event_point(event.kind, about, event.title, event.text, event.figures, event.commits)


def series_title(tags: Mapping[str, str]) -> str:
    """Return a name of a series for a reader: its subject, quantity and condition."""
    named = ((tag, tags[tag]) for tag in TITLE_TAGS if tag in tags)
    return " ".join(axis_words(tag, value) for tag, value in named)


def _kind(before: Level, after: Level, change: Change, worse: Worse) -> Kind:
    if worse == "farther from zero":
        regressed = abs(after.median) > abs(before.median)
    else:
        regressed = (change.z > 0) == (worse == "higher")
    return "regression" if regressed else "improvement"
