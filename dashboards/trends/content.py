# SPDX-License-Identifier: Apache-2.0
"""What the page shows, read from the store in one moment: runs, series, events, and how the spool stands.

A series is what `hil_verdict` and one of `points.PHYSICAL` say of one subject: they have the same tags. What
both say is kept once, in ns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from dashboards.errors import StoreError
from dashboards.points import EVENT, PHYSICAL, RUN, VERDICT
from dashboards.store import Store
from dashboards.store.connection import guarded, stored_object
from dashboards.trends.columns import Scalar, column, spans
from dashboards.trends.run_history import bench_keys, earlier_runs, last_changes
from dashboards.trends.selection import OF_RUN, Selection
from dashboards.trends.stored_points import StoredPoint, stored_points
from reports.quantities import AXES

SCHEMA = "benchwright.trends/1"
_RUN_COLUMNS: tuple[str, ...] = (
    "run_id",
    "time_ns",
    *OF_RUN,
    "commit",
    "simulated",
    "outcome",
    "facts",
    "source",
)
OF_THE_RUN = frozenset({"run_id", "commit", "outcome"})
"""Fields that every point repeats: the run has them, or a column of codes."""
SAID_IN_NS = {"value": "value_ns", "margin": "margin_ns", "u": "u_ns"}
"""Fields of a verdict that a physical point of the same run has in ns."""
DERIVED = "margin_share"
"""Field that follows from margin and limit; kept where there is no limit in ns beside it."""
_SHOWN = frozenset({*PHYSICAL.values(), VERDICT})
DERIVED_FROM = frozenset({"limit_upper_ns", "limit_lower_ns"})


def content(store: Store, selection: Selection) -> dict[str, Any]:
    """Return what the page shows, ready for JSON.

    Raises:
        StoreError: The store cannot be read, or what is in it is damaged.
        ConfigError: A filter names what no run has.
    """
    with guarded(store.path):
        store.connection.execute("BEGIN")  # everything below is read of one moment
    try:
        with guarded(store.path):
            return _content(store, selection)
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{store.path}: damaged: {error}") from error
    finally:
        with guarded(store.path):
            store.connection.execute("ROLLBACK")


def _content(store: Store, selection: Selection) -> dict[str, Any]:
    from dashboards.regressions.changes import change_needs  # numpy is nothing for the other commands

    runs = _runs(store, selection)
    places = {str(run["run_id"]): place for place, run in enumerate(runs)}
    points = stored_points(store)
    tables = _tables(points, places)
    targets = {table.tags["target"] for table in tables.values() if "target" in table.tags}
    selection.check("target", targets)
    if selection.target is not None:
        tables = {name: t for name, t in tables.items() if t.tags.get("target") == selection.target}
        kept = sorted({place for table in tables.values() for place in table.rows})
        moved = {place: new for new, place in enumerate(kept)}
        runs = [runs[place] for place in kept]
        places = {str(run["run_id"]): place for place, run in enumerate(runs)}
        for table in tables.values():
            table.rows = {moved[place]: row for place, row in table.rows.items()}
    status = store.status()
    changes, keys = last_changes(points), bench_keys(points)
    for table in tables.values():
        table.earlier_runs = earlier_runs(keys, table.measurement, table.tags, changes)
    return {
        "schema": SCHEMA,
        "axes": list(AXES),
        "change_needs": change_needs(),
        "selection": {name: value for name, value in asdict(selection).items() if value is not None},
        "spool": {
            "runs": status.runs,
            "waiting": status.waiting,
            "delivered": status.delivered,
            "rejected": status.rejected,
            "reasons": [list(reason) for reason in status.reasons],
        },
        **_run_columns(store, runs, places, points),
        "series": [tables[name].series() for name in sorted(tables)],
        "events": _events(points, runs, places, selection),
    }


def _runs(store: Store, selection: Selection) -> list[dict[str, Any]]:
    names = ", ".join(f'"{name}"' for name in _RUN_COLUMNS)
    rows = store.connection.execute(f"SELECT {names} FROM run ORDER BY time_ns, run_id")  # noqa: S608
    runs = [dict(zip(_RUN_COLUMNS, row, strict=True)) for row in rows]
    for name in OF_RUN:
        selection.check(name, (str(run[name]) for run in runs))
    return [run for run in runs if selection.has_run(run)]


class _Table:
    """Rows of one series: a run's place to its fields."""

    def __init__(self, tags: dict[str, str]) -> None:
        self.tags = tags
        self.measurement = VERDICT
        self.earlier_runs: int | None = None
        self.rows: dict[int, dict[str, Scalar]] = {}

    def put(self, measurement: str, place: int, fields: dict[str, Scalar]) -> None:
        """Add what a point says of a run; the physical point comes before its verdict."""
        row = self.rows.setdefault(place, {})
        if measurement != VERDICT:
            self.measurement = measurement
        for name, value in fields.items():
            said = SAID_IN_NS.get(name) in row or (name == DERIVED and DERIVED_FROM & row.keys())
            if name not in OF_THE_RUN and not said:
                row[name] = value
        if DERIVED_FROM & row.keys():
            row.pop(DERIVED, None)

    def series(self) -> dict[str, Any]:
        """Return tags, the places of the runs, and a column a field."""
        places = sorted(self.rows)
        rows = [self.rows[place] for place in places]
        names = sorted({name for row in rows for name in row})
        return {
            "measurement": self.measurement,
            "tags": self.tags,
            "earlier_runs": self.earlier_runs,
            "runs": spans(places),
            "columns": {name: column([row.get(name) for row in rows]) for name in names},
        }


def _tables(points: Iterable[StoredPoint], places: dict[str, int]) -> dict[str, _Table]:
    """Return the rows of each series by its tags: every physical point before the verdicts."""
    tables: dict[str, _Table] = {}
    mine = [point for point in points if point.run_id in places]
    for of_verdict in (False, True):
        for point in mine:
            if point.measurement in _SHOWN and (point.measurement == VERDICT) == of_verdict:
                table = tables.setdefault(json.dumps(point.tags), _Table(point.tags))
                table.put(point.measurement, places[point.run_id], point.fields)
    return tables


def _run_columns(
    store: Store, runs: list[dict[str, Any]], places: dict[str, int], points: Iterable[StoredPoint]
) -> dict[str, Any]:
    """Return the runs as columns, and what their benches were made of, each once."""
    facts: dict[str, int] = {}
    for run in runs:
        run["facts"] = facts.setdefault(run["facts"], len(facts))
        run["time_us"] = run.pop("time_ns") // 1000  # a browser has no integers of 64 bits
        run["simulated"] = bool(run["simulated"])
    for point in points:
        if point.measurement == RUN and point.run_id in places:
            told = ((k, v) for k, v in point.fields.items() if k not in OF_THE_RUN)
            runs[places[point.run_id]].update(told)
    query = "SELECT run_id, state, count(*) FROM point JOIN run ON number = run GROUP BY run, state"
    for run_id, state, count in store.connection.execute(query):
        if run_id in places:
            runs[places[run_id]][f"points_{state}"] = count
    names = sorted({name for run in runs for name in run})
    return {
        "number_of_runs": len(runs),
        "runs": {name: column([run.get(name) for run in runs]) for name in names} if runs else {},
        "facts": [stored_object(store.path, text) for text in facts],
    }


def _events(
    points: Iterable[StoredPoint], runs: list[dict[str, Any]], places: dict[str, int], selection: Selection
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    events = (point for point in points if point.measurement == EVENT)
    for event in sorted(events, key=lambda point: (point.time_ns, point.name)):
        tags = event.tags
        other = selection.target is not None and tags.get("target", selection.target) != selection.target
        place = places.get(event.run_id)
        if place is None and tags["kind"] == "bench-change":
            place = _after_change(runs, tags["bench"], event.time_ns // 1000)
        if place is not None and not other:
            found.append({"run": place, "tags": tags, "fields": event.fields})
    return found


def _after_change(runs: list[dict[str, Any]], bench: str, time_us: int) -> int | None:
    """Return the first run behind a change of its bench; None: there is none, or none before the change."""
    mine = [place for place, run in enumerate(runs) if run["bench"] == bench]
    behind = [place for place in mine if runs[place]["time_us"] > time_us]
    return behind[0] if behind and len(behind) < len(mine) else None
