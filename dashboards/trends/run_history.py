# SPDX-License-Identifier: Apache-2.0
"""How many runs the adviser has of a series: before it has enough, no event is no statement."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from dashboards.line_protocol import Point
from dashboards.points import EVENT
from dashboards.regressions.run_history import RUNS_MAX
from dashboards.regressions.watched import COMPARED_WITH, watched
from dashboards.trends.stored_points import StoredPoint

Keys = Mapping[str, Sequence[tuple[int, str]]]
"""Name of a series to time in ns since 1970 and bench key of each of its points, the last one first."""
Changes = Mapping[str, int]
"""Tags of a series as JSON, in order, to the time of its last change in ns since 1970."""


def last_changes(points: Iterable[StoredPoint]) -> Changes:
    """Return when each series that has changed did so last."""
    found: dict[str, int] = {}
    for event in points:
        if event.measurement == EVENT and event.tags["kind"] != "bench-change":
            tags = {name: text for name, text in event.tags.items() if name != "kind"}
            name = json.dumps(tags, sort_keys=True)
            found[name] = max(event.time_ns, found.get(name, event.time_ns))
    return found


def bench_keys(points: Iterable[StoredPoint]) -> Keys:
    """Return what each series was measured with, and when."""
    found: dict[str, list[tuple[int, str]]] = {}
    for point in points:
        found.setdefault(point.name, []).append((point.time_ns, str(point.fields.get("bench_key", ""))))
    return {name: sorted(keys, reverse=True) for name, keys in found.items()}


def earlier_runs(known: Keys, measurement: str, tags: dict[str, str], changes: Changes) -> int | None:
    """Return the runs before the last one of a series, on its bench and since its last change.

    Args:
        known: What `bench_keys` has found.
        measurement: Of the series.
        tags: Of the series.
        changes: What `last_changes` has found.

    Returns:
        None: changes are not looked for in it.
    """
    followed = watched(measurement, tags)
    branch = tags.get("branch", "")
    if not followed or COMPARED_WITH.get(branch) != branch:
        return None
    series = Point(measurement, tags, {"n": 0}, 0).series
    since_ns = changes.get(json.dumps({**followed[0].tags, "measurement": measurement}, sort_keys=True), 0)
    keys = [key for time_ns, key in known.get(series, ()) if time_ns >= since_ns][: RUNS_MAX + 1]
    return keys.count(keys[0]) - 1 if keys else 0
