# SPDX-License-Identifier: Apache-2.0
"""Stores for tests of the page: a small one, made as runs make it, and one full of `two_years`."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import cast

from dashboards.line_protocol import Field, Point
from dashboards.points import EVENT, LATENCY, OUTCOME_CODE, RUN, VERDICT, RunPoints, event_point
from dashboards.store import Store
from dashboards.store.store import Waiting
from reports.record.measurement import Outcome
from tests.dashboards import two_years

_FIELD = re.compile(r'([A-Za-z]\w*)=("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)')
_TAGS = re.compile(r"(?<!\\),")
_SPACE = re.compile(r"(?<!\\) ")
_ESCAPED = re.compile(r"\\([,= ])")

FIRST_NS = 1_790_000_000_123_456_000  # 2026-09-21
DAY_NS = 86_400_000_000_000
STREAM_OVER, OVER_RUN = "31", 17
"""Stream that is over its limit in one run of `fill_small`."""
SLOWER_FROM = 20
EVENT_TEXT = 'slower <b>"since"</b> & </script><script>alert(1)</script>'


def fill_small(path: Path, folder: Path, count: int = 30) -> None:
    """Write runs of 48 streams, clocks, edges and checks, a day apart, through the store's own door.

    The bench changes in the middle, one stream becomes slower from SLOWER_FROM on (an event says so, in text
    that would break a careless page), and is over its limit in OVER_RUN. Every fifth run is a nightly one.
    """
    streams, others = two_years.small_runs(folder)
    with Store(path) as store:
        store.connection.execute("PRAGMA synchronous = OFF")
        for number in range(count):
            run = _small_run(streams, others, number, key=f"key-{2 * number // count}")
            store.add_run(run)
            if number == SLOWER_FROM:
                about = next(p for p in run.points if _is_slower(p) and p.measurement == LATENCY)
                commits = ("a" * 40, "b" * 40)
                event = event_point("regression", about, "regression: 12 ms", EVENT_TEXT, {"z": 4.5}, commits)
                store.add_points(run.run_id, [event])


def _small_run(streams: RunPoints, others: RunPoints, number: int, key: str) -> RunPoints:
    time_ns = FIRST_NS + number * DAY_NS
    run_id, profile = f"2026R{number:04d}", "nightly" if number % 5 == 4 else "ci"
    told = {"run_id": run_id, "commit": f"{number:040x}", "bench_key": key, "simulated": number % 2 == 0}
    points = [p for p in others.points if p.measurement != RUN] + list(streams.points)
    failed = number == OVER_RUN
    changed: list[Point] = []
    for point in points:
        fields = {**point.fields, **told}
        over = failed and point.tags.get("stream") == STREAM_OVER
        factor = 1 + 0.01 * (number * 7 % 10) + (0.5 if number >= SLOWER_FROM and _is_slower(point) else 0)
        for name in ("value_ns", "value"):
            if name in fields:
                fields[name] = float(fields[name]) * (50 if over else factor)
        if over or (failed and point.measurement == RUN):
            fields |= {"outcome": "fail", "outcome_code": OUTCOME_CODE["fail"]}
        tags = {**point.tags, "profile": profile}
        changed.append(Point(point.measurement, tags, fields, time_ns))
    return dataclasses.replace(
        streams,
        run_id=run_id,
        time_ns=time_ns,
        profile=profile,
        commit=told["commit"],
        simulated=number % 2 == 0,
        outcome="fail" if failed else "pass",
        points=tuple(changed),
        facts={"host.kernel": key},
    )


def _is_slower(point: Point) -> bool:
    return point.tags.get("stream") == STREAM_OVER and point.tags.get("quantity") == "one_way_latency"


def fill_store(path: Path, folder: Path, count: int, *, simulated: bool = True) -> None:
    """Write a history of so many runs into a new store; `folder` takes the small runs it is made of."""
    folder.mkdir(parents=True, exist_ok=True)
    history = {run.run_id: run for run in two_years.runs(count)}
    points: dict[str, dict[str, Point]] = {}
    outcomes: dict[str, Outcome] = {}
    for line in two_years.lines(folder, count):
        measurement, tags, fields, time_ns = parse(line)
        run_id = str(fields.get("run_id", ""))
        if run_id not in history or measurement not in _KEPT:
            continue  # the spool's own points, which the store does not have
        if measurement == RUN:
            outcomes[run_id] = cast("Outcome", fields["outcome"])
        if not simulated and "simulated" in fields:
            fields["simulated"] = False
        point = Point(measurement, tags, fields, time_ns)
        points.setdefault(run_id, {}).setdefault(f"{point.series} {time_ns}", point)
    with Store(path) as store:
        store.connection.execute("PRAGMA synchronous = OFF")
        for run in history.values():
            tags, mine = run.setup.tags, points.get(run.run_id, {}).values()
            store.add_run(
                RunPoints(
                    run_id=run.run_id,
                    time_ns=run.time_ns,
                    bench=tags["bench"],
                    profile=tags["profile"],
                    branch=tags["branch"],
                    commit=run.commit,
                    simulated=simulated,
                    outcome=outcomes[run.run_id],
                    points=tuple(mine),
                    facts={"host.kernel": f"6.{int(run.key, 16) + 1}"},
                )
            )
        count = store.status().waiting
        store.settle([Waiting(n, 1, "") for n in range(1, int(0.97 * count))])


_KEPT = frozenset({"hil_latency", "hil_sync", "hil_edges", VERDICT, RUN, EVENT})


def parse(line: str) -> tuple[str, dict[str, str], dict[str, Field], int]:
    """Return measurement, tags, fields and time of a line."""
    series, fields_text, time_ns = _parts(line)
    name, *tags = _TAGS.split(series)
    pairs = (re.split(r"(?<!\\)=", tag, maxsplit=1) for tag in tags)
    found = {_ESCAPED.sub(r"\1", key): _ESCAPED.sub(r"\1", value) for key, value in pairs}
    return name, found, {key: _value(text) for key, text in _FIELD.findall(fields_text)}, time_ns


def _parts(line: str) -> tuple[str, str, int]:
    series, rest = _SPACE.split(line, maxsplit=1)
    fields, _, time_ns = rest.rpartition(" ")
    return series, fields, int(time_ns)


def _value(text: str) -> Field:
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in ("true", "false"):
        return text == "true"
    return int(text[:-1]) if text.endswith("i") else float(text)
