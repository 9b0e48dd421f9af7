# SPDX-License-Identifier: Apache-2.0
"""What the page shows, read from the store in one moment: runs, series, events, and how the spool stands.

A series is what `hil_verdict` and one of `points.PHYSICAL` say of one subject: they have the same tags. What
both say is kept once, in ns.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from dashboards.errors import StoreError
from dashboards.points import EVENT, PHYSICAL, RUN, VERDICT
from dashboards.store import Store
from dashboards.store.connection import guarded, stored_object
from dashboards.trends.columns import Scalar, column, spans
from dashboards.trends.run_history import earlier_runs, last_changes
from dashboards.trends.selection import OF_RUN, Selection
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
    tables: dict[str, _Table] = {}
    for measurement in (*PHYSICAL.values(), VERDICT):
        _read_series(store, measurement, places, tables)
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
    changes = last_changes(store)
    for table in tables.values():
        table.earlier_runs = earlier_runs(store, table.measurement, table.tags, changes)
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
        **_run_columns(store, runs, places),
        "series": [tables[name].series() for name in sorted(tables)],
        "events": _events(store, runs, places, selection),
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


def _read_series(store: Store, measurement: str, places: dict[str, int], tables: dict[str, _Table]) -> None:
    rows = store.connection.execute(
        "SELECT tags, fields, run_id FROM point WHERE measurement = ?", (measurement,)
    )
    names: dict[str, str] = {}  # tags as they are stored: in order
    for tags_json, fields_json, run_id in rows:
        place = places.get(run_id)
        if place is None:
            continue
        name = names.get(tags_json)
        if name is None:
            tags = dict(sorted(stored_object(store.path, tags_json).items()))
            name = names[tags_json] = json.dumps(tags)
            tables.setdefault(name, _Table(tags))
        tables[name].put(measurement, place, stored_object(store.path, fields_json))


def _run_columns(store: Store, runs: list[dict[str, Any]], places: dict[str, int]) -> dict[str, Any]:
    """Return the runs as columns, and what their benches were made of, each once."""
    facts: dict[str, int] = {}
    for run in runs:
        run["facts"] = facts.setdefault(run["facts"], len(facts))
        run["time_us"] = run.pop("time_ns") // 1000  # a browser has no integers of 64 bits
        run["simulated"] = bool(run["simulated"])
    query = "SELECT fields, run_id FROM point WHERE measurement = ?"
    for fields_json, run_id in store.connection.execute(query, (RUN,)):
        if run_id in places:
            fields = stored_object(store.path, fields_json)
            runs[places[run_id]].update((k, v) for k, v in fields.items() if k not in OF_THE_RUN)
    query = "SELECT run_id, state, count(*) FROM point GROUP BY run_id, state"
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
    store: Store, runs: list[dict[str, Any]], places: dict[str, int], selection: Selection
) -> list[dict[str, Any]]:
    query = "SELECT tags, fields, run_id, time_ns FROM point WHERE measurement = ? ORDER BY time_ns, series"
    found: list[dict[str, Any]] = []
    for tags_json, fields_json, run_id, time_ns in store.connection.execute(query, (EVENT,)):
        tags = dict(sorted(stored_object(store.path, tags_json).items()))
        other = selection.target is not None and tags.get("target", selection.target) != selection.target
        place = places.get(run_id)
        if place is None and tags["kind"] == "bench-change":
            place = _after_change(runs, tags["bench"], time_ns // 1000)
        if place is not None and not other:
            found.append({"run": place, "tags": tags, "fields": stored_object(store.path, fields_json)})
    return found


def _after_change(runs: list[dict[str, Any]], bench: str, time_us: int) -> int | None:
    """Return the first run behind a change of its bench; None: there is none, or none before the change."""
    mine = [place for place, run in enumerate(runs) if run["bench"] == bench]
    behind = [place for place in mine if runs[place]["time_us"] > time_us]
    return behind[0] if behind and len(behind) < len(mine) else None
