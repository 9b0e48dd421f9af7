# SPDX-License-Identifier: Apache-2.0
"""How many runs the adviser has of a series: before it has enough, no event is no statement."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dashboards.line_protocol import Point
from dashboards.points import EVENT
from dashboards.regressions.run_history import RUNS_MAX
from dashboards.regressions.watched import COMPARED_WITH, watched
from dashboards.store import Store
from dashboards.store.connection import stored_object

Changes = Mapping[str, int]
"""Tags of a series as JSON, in order, to the time of its last change in ns since 1970."""


def last_changes(store: Store) -> Changes:
    """Return when each series that has changed did so last."""
    found: dict[str, int] = {}
    query = "SELECT tags, time_ns FROM point WHERE measurement = ? ORDER BY time_ns"
    for tags_json, time_ns in store.connection.execute(query, (EVENT,)):
        tags = stored_object(store.path, tags_json)
        if tags.pop("kind") != "bench-change":
            found[json.dumps(tags, sort_keys=True)] = time_ns
    return found


def earlier_runs(store: Store, measurement: str, tags: dict[str, str], changes: Changes) -> int | None:
    """Return the runs before the last one of a series, on its bench and since its last change.

    Args:
        store: The store.
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
    rows = store.connection.execute(
        "SELECT fields FROM point WHERE series = ? AND time_ns >= ? ORDER BY time_ns DESC LIMIT ?",
        (series, since_ns, RUNS_MAX + 1),
    )
    keys = [stored_object(store.path, fields_json).get("bench_key", "") for (fields_json,) in rows]
    return keys.count(keys[0]) - 1 if keys else 0
