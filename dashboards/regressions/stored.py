# SPDX-License-Identifier: Apache-2.0
"""Events of the series in the store, put back into it as points of `hil_event`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dashboards.line_protocol import Point
from dashboards.points import SUBJECT_TAGS, event_point
from dashboards.regressions.adviser import advise
from dashboards.regressions.changes import DEFAULTS, Settings
from dashboards.regressions.commits import add_commits
from dashboards.regressions.event import Event, RunValue
from dashboards.store import Series, Store, read_series
from reports.quantities import Worse, axis_words

TITLE_TAGS = (*SUBJECT_TAGS[1:], "quantity", "statistic", "condition")


def keep_events(
    store: Store,
    measurement: str,
    field: str,
    unit: str,
    repository: Path,
    *,
    worse: Worse = "higher",
    seen_in: str | None = None,
    where: dict[str, str] | None = None,
    settings: Settings = DEFAULTS,
) -> list[Event]:
    """Look for changes in every series of a measurement, store them, and return them.

    To do so again stores nothing twice: an event of the same runs is the same point.

    Args:
        store: The store.
        measurement: One of `points.MEASUREMENTS`, such as `hil_latency`.
        field: Field with the values, such as `value_ns`; points without it are left out.
        unit: Unit of the field.
        repository: Repository that the runs' commits are of.
        worse: Where these series get worse to.
        seen_in: Keep only what became visible with this run; None: everything in the history.
        where: Values that tags must have, such as the class of the branch.
        settings: How to look for changes.

    Raises:
        StoreError: The store cannot be read or written.
        ValueError: A stored value is not finite.
    """
    kept: list[Event] = []
    for series in read_series(store, measurement, field, where):
        for event in advise(series_title(series.tags), unit, _runs(series), worse=worse, settings=settings):
            if seen_in in (None, event.seen.run_id):
                told = add_commits(event, repository)
                store.add_points(told.first_after.run_id, [stored_event(told, series)])
                kept.append(told)
    return kept


def stored_event(event: Event, series: Series) -> Point:
    """Return an event as a point of `hil_event`, at the time of the first run after the change."""
    first_after = event.first_after
    about = Point(series.measurement, series.tags, {"run_id": first_after.run_id}, first_after.time_ns)
    return event_point(event.kind, about, event.title, event.text, event.figures, event.commits)


def series_title(tags: Mapping[str, str]) -> str:
    """Return a name of a series for a reader: its subject, quantity and condition."""
    named = ((tag, tags[tag]) for tag in TITLE_TAGS if tag in tags)
    return " ".join(axis_words(tag, value) for tag, value in named)


def _runs(series: Series) -> list[RunValue]:
    return [
        RunValue(v.run_id, v.time_ns, float(v.value), v.bench_key, v.commit)
        for v in series.values
        if isinstance(v.value, int | float) and not isinstance(v.value, bool)
    ]
