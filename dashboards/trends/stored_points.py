# SPDX-License-Identifier: Apache-2.0
"""The points of a store, each read once for all that the page shows."""

from __future__ import annotations

from typing import Any, NamedTuple

from dashboards.store import Store
from dashboards.store.connection import stored_object
from dashboards.store.content import unpack


class StoredPoint(NamedTuple):
    """A point of the store, its tags sorted."""

    run_id: str
    measurement: str
    name: str
    tags: dict[str, str]
    time_ns: int
    fields: dict[str, Any]


def stored_points(store: Store) -> list[StoredPoint]:
    """Return every point, in the order of the runs; raises StoreError where they are damaged."""
    series = {
        place: (measurement, name, dict(sorted(stored_object(store.path, tags).items())))
        for place, measurement, name, tags in store.connection.execute(
            "SELECT id, measurement, name, tags FROM series"
        )
    }
    return [
        StoredPoint(run_id, *series[place], time_ns, fields)
        for run_id, content in store.connection.execute("SELECT run_id, content FROM run ORDER BY number")
        for (place, time_ns), fields in unpack(store.path, content).points().items()
    ]
