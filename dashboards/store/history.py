# SPDX-License-Identifier: Apache-2.0
"""Reading the store as series: a value a run, in order of time, for trends and change points."""

from __future__ import annotations

from dataclasses import dataclass

from dashboards.line_protocol import Field
from dashboards.store.connection import guarded, stored_object
from dashboards.store.store import Store


@dataclass(frozen=True, slots=True)
class SeriesValue:
    """One value of a series."""

    run_id: str
    time_ns: int
    value: Field
    bench_key: str
    commit: str


@dataclass(frozen=True, slots=True)
class Series:
    """The history of one field of one series, oldest first."""

    name: str
    measurement: str
    tags: dict[str, str]
    field: str
    values: tuple[SeriesValue, ...]


def read_series(
    store: Store, measurement: str, field: str, where: dict[str, str] | None = None
) -> list[Series]:
    """Return the series of a measurement that have a field.

    Args:
        store: The store.
        measurement: One of `points.MEASUREMENTS`.
        field: Name of the field; points without it are left out.
        where: Values that tags must have.

    Raises:
        StoreError: The store cannot be read.
    """
    query = (
        "SELECT point.series, point.tags, point.fields, point.time_ns, point.run_id FROM point"
        " WHERE point.measurement = ? ORDER BY point.series, point.time_ns"
    )
    with guarded(store.path):
        rows = store.connection.execute(query, (measurement,)).fetchall()
    found: dict[str, list[SeriesValue]] = {}
    tags_of: dict[str, dict[str, str]] = {}
    for series, tags_json, fields_json, time_ns, run_id in rows:
        if series not in tags_of:
            tags_of[series] = stored_object(store.path, tags_json)
        fields: dict[str, Field] = stored_object(store.path, fields_json)
        if field not in fields or any(tags_of[series].get(k) != v for k, v in (where or {}).items()):
            continue
        value = SeriesValue(
            run_id, time_ns, fields[field], str(fields.get("bench_key", "")), str(fields.get("commit", ""))
        )
        found.setdefault(series, []).append(value)
    return [Series(name, measurement, tags_of[name], field, tuple(v)) for name, v in found.items()]
