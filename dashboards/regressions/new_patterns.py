# SPDX-License-Identifier: Apache-2.0
"""Patterns of a run's series that the run before did not have: same bench as it is now, series, profile.

Where the run before was too short to show one, or its series was not searched, nothing is said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from dashboards.line_protocol import Field, Point
from dashboards.pattern_points import PATTERN, SeenPattern, patterns_in
from dashboards.regressions.run_history import StoredRun
from dashboards.store import Store
from dashboards.store.connection import guarded, stored_object
from dashboards.store.run_content import read_content
from reports.history.advice import NewPattern
from reports.patterns.series import PERIODS_MIN

WARM_UP_SHARE = 0.5
"""Of a series: a warm-up is not looked for beyond."""
RUNS_LOOKED_AT = 20
"""Runs before, the newest first: a series is not in each of them."""


class _Searched(NamedTuple):
    """A series of a run as it was searched."""

    run_id: str
    length_s: float
    patterns: list[SeenPattern]


class PatternChanges(NamedTuple):
    """What of the patterns of a run is new.

    Attributes:
        new: Those that the run before did not have.
        untold: How many others are in no run before, as that was too short to show them.
    """

    new: tuple[NewPattern, ...]
    untold: int


def new_patterns(store: Store, run: StoredRun) -> PatternChanges:
    """Compare the patterns of a stored run with those of the last run before that has the same series.

    Raises:
        StoreError: The store cannot be read.
    """
    new: list[NewPattern] = []
    untold = 0
    with guarded(store.path):
        own = _points_of(store, _number(store, run.run_id))
        wanted: dict[str, tuple[Mapping[str, str], Mapping[str, Field]]] = {}
        for tags, fields in own:
            compared = Point(PATTERN, {**tags, "branch": run.compared_with}, {"n": 0}, 0).series
            wanted[compared] = (tags, fields)
        before = _before(store, run, wanted) if any(_searched(each).patterns for _, each in own) else {}
    for name, (tags, fields) in wanted.items():
        earlier = before.get(name)
        for pattern in _searched(fields).patterns if earlier else ():
            if earlier is None or any(pattern.is_like(each) for each in earlier.patterns):
                continue
            if could_be_seen(pattern, earlier.length_s):
                title = f"{tags.get('place', '')}: {tags.get('series', '')}"
                new.append(NewPattern(title, pattern.words, earlier.run_id))
            else:
                untold += 1
    return PatternChanges(tuple(new), untold)


def could_be_seen(pattern: SeenPattern, length_s: float) -> bool:
    """Tell whether a series of a length could have shown a pattern."""
    if pattern.period_s is not None:
        return pattern.period_s <= length_s / PERIODS_MIN
    if pattern.end_s is None:
        return True
    return pattern.end_s <= (WARM_UP_SHARE * length_s if pattern.kind == "warm_up" else length_s)


def _number(store: Store, run_id: str) -> int:
    return store.connection.execute("SELECT number FROM run WHERE run_id = ?", (run_id,)).fetchone()[0]


def _points_of(store: Store, number: int) -> list[tuple[dict[str, str], dict[str, Field]]]:
    """Return tags and fields of a run's points of patterns, in their order."""
    rows = store.connection.execute(
        "SELECT series, time_ns, tags FROM point JOIN series ON series.id = series"
        " WHERE run = ? AND measurement = ? ORDER BY point.id",
        (number, PATTERN),
    ).fetchall()
    if not rows:
        return []
    content = read_content(store.connection, store.path, number).points()
    return [
        (stored_object(store.path, tags), content.get((series, time_ns), {}))
        for series, time_ns, tags in rows
    ]


def _before(
    store: Store, run: StoredRun, wanted: Mapping[str, tuple[Mapping[str, str], Mapping[str, Field]]]
) -> dict[str, _Searched]:
    """Return the last search of each series, by its name, in runs before on the same bench as it is now."""
    rows = store.connection.execute(
        "SELECT number, run_id FROM run WHERE bench = ? AND branch = ? AND time_ns < ?"
        " AND EXISTS (SELECT 1 FROM point JOIN series ON series.id = series"
        " WHERE run = number AND measurement = ?) ORDER BY time_ns DESC LIMIT ?",
        (run.bench, run.compared_with, run.time_ns, PATTERN, RUNS_LOOKED_AT),
    ).fetchall()
    found: dict[str, _Searched] = {}
    for number, _run_id in rows:
        for tags, fields in _points_of(store, number):
            name = Point(PATTERN, tags, {"n": 0}, 0).series
            if name not in wanted or name in found:
                continue
            if fields.get("bench_key") == wanted[name][1].get("bench_key"):
                found[name] = _searched(fields)
        if len(found) == len(wanted):
            break
    return found


def _searched(fields: Mapping[str, Field]) -> _Searched:
    """Return what a point says; one that was changed by hand says nothing."""
    length_s = fields.get("length_s")
    try:
        patterns = patterns_in(str(fields.get("patterns", "[]")))
    except (json.JSONDecodeError, TypeError):
        patterns = []
    return _Searched(
        str(fields.get("run_id", "")), float(length_s) if isinstance(length_s, float) else 0.0, patterns
    )
