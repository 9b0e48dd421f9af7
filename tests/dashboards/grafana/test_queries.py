# SPDX-License-Identifier: Apache-2.0
"""Every query of the files, on a real InfluxDB 1.6.7 with two years of history."""

from __future__ import annotations

import copy
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from dashboards.delivery import deliver
from dashboards.delivery.deliver import SPOOL
from dashboards.points import EVENT, LATENCY, MEASUREMENTS
from dashboards.regressions.series_events import stored_event
from dashboards.store import Store
from tests.dashboards.grafana.queries import (
    TWO_YEARS,
    alert_rules,
    all_dashboards,
    all_queries,
    fault,
    queries_of,
    rule_query,
)
from tests.dashboards.grafana.server import fill
from tests.dashboards.influxd import InfluxServer
from tests.dashboards.two_years import END_NS, RUNS, SETUPS, an_event, runs, runs_of_two_benches, small_runs

# loading alone takes 10 s, on a very busy machine 80
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DAY_NS = 86_400_000_000_000
CHOICE = {
    "bench": ("lab-1", "lab-2"),
    "target": ("linux-rt", "windows"),
    "stack": ("kernel", "user"),
    "clock": ("two-way", "ptp-hardware", "chrony", "realtime"),
    "profile": ("ci", "nightly"),
    "branch": ("main", "release"),
    "stream": ("31", "21"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[InfluxServer]:
    """Return a server with the two years."""
    folder = tmp_path_factory.mktemp("two-years")
    with InfluxServer(folder / "influxdb") as started:
        fill(started, folder / "runs")
        yield started


def test_two_years_are_there(server: InfluxServer) -> None:
    assert server.value("SELECT count(outcome_code) FROM hil_run") == RUNS
    streams = server.query("SELECT count(value_ns) FROM hil_latency GROUP BY stream")
    assert [series["values"][0][1] for series in streams] == [RUNS] * 48
    kinds = server.query("SELECT count(title) FROM hil_event GROUP BY kind")
    assert {series["tags"]["kind"] for series in kinds} == {"regression", "improvement", "bench-change"}


def test_every_query_returns_data(server: InfluxServer) -> None:
    found = all_queries()
    faults = {(f.dashboard, f.place): why for f in found if (why := fault(server.query, f.query))}
    assert faults == {}
    assert len(found) > 100


def test_every_query_returns_data_for_chosen_values(server: InfluxServer) -> None:
    found = all_queries(choice=CHOICE)
    faults = {(f.dashboard, f.place): why for f in found if (why := fault(server.query, f.query))}
    assert faults == {}


def test_choice_narrows_what_is_found(server: InfluxServer) -> None:
    (query,) = [
        f for f in all_queries(choice={"bench": ("lab-2",)}) if "'Outcome of the last run'" in f.place
    ]
    (series,) = server.query(query.query)
    assert series["tags"] == {"bench": "lab-2"}
    (query,) = [f for f in all_queries(choice={"stream": ("31",)}) if "'Largest latency'" in f.place]
    assert [series["tags"]["stream"] for series in server.query(query.query)] == ["31"]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('"p50_ns"', '"p51_ns"', "no value in p50"),
        ('max("value_ns")', 'largest("value_ns")', "undefined function"),
        ('"hil_latency"', '"hil_latencies"', "no series"),
        ("fill(none)", "fill(none", "error parsing query"),
        ("'one_way_latency'", "'one_way'", "no series"),
    ],
)
def test_broken_query_is_found(server: InfluxServer, before: str, after: str, why: str) -> None:
    dashboard = copy.deepcopy(all_dashboards()["bw-latency"])
    broken: dict[str, Any] = json.loads(
        json.dumps(dashboard).replace(json.dumps(before)[1:-1], json.dumps(after)[1:-1])
    )
    assert broken != dashboard
    found = queries_of(broken, TWO_YEARS, {})
    (query,) = [f.query for f in found if "'Distribution'" in f.place]
    assert why in fault(server.query, query)


def rule_values(server: InfluxServer, uid: str, end_ns: int) -> dict[str, float]:
    """Return the last value of each series of a rule's query, by bench, as its expressions take it."""
    (rule,) = [rule for rule in alert_rules() if rule["uid"] == uid]
    series = server.query(rule_query(rule["data"][0], end_ns))
    return {"/".join(one["tags"].values()): one["values"][-1][1] for one in series}


def test_alert_on_margins_sees_the_last_run_of_each_kind(server: InfluxServer) -> None:
    values = rule_values(server, "bw-margin", END_NS)
    assert {name.split("/")[0] for name in values} == {"lab-1", "lab-2"}
    assert not any("/pr/" in f"/{name}/" or name.startswith("pr") for name in values)
    assert all(value > 0 for value in values.values())
    worst_ns = server.query("SELECT min(worst_margin_share) FROM hil_run WHERE branch = 'main'")[0]["values"][
        0
    ][0]
    assert min(rule_values(server, "bw-margin", worst_ns + 1_000_000).values()) < 0


def test_alert_on_missing_runs(server: InfluxServer) -> None:
    assert all(value > 0 for value in rule_values(server, "bw-no-run", END_NS).values())
    later = rule_values(server, "bw-no-run", END_NS + 9 * DAY_NS)
    assert later == {"lab-1": 0, "lab-2": 0}
    assert rule_values(server, "bw-no-run", END_NS + 200 * DAY_NS) == {}  # noDataState decides


def test_alert_on_refused_rows(server: InfluxServer) -> None:
    assert rule_values(server, "bw-set-aside", END_NS) == {"lab-host-1": 0}


def test_made_up_points_have_the_names_and_types_of_real_ones(server: InfluxServer, tmp_path: Path) -> None:
    """Names and types as a server has them that a real store was delivered to."""
    with InfluxServer(tmp_path / "influxdb") as real, Store(tmp_path / "store.sqlite") as store:
        streams, others = small_runs(tmp_path)
        for run in (streams, others, *runs_of_two_benches(runs())):
            store.add_run(run)
        tags = {**SETUPS[0].tags, **streams.points[1].tags}
        event = an_event("regression", runs()[:20])
        store.add_points(streams.run_id, [stored_event(event, LATENCY, tags)])
        deliver(store, real.endpoint())
        for measurement in (*MEASUREMENTS, SPOOL):
            fields, tags = (f"SHOW {kind} KEYS FROM {measurement}" for kind in ("FIELD", "TAG"))
            wanted = real.query(fields)[0]["values"]
            assert wanted
            assert server.query(fields)[0]["values"] == wanted, measurement
            assert {t[0] for t in server.query(tags)[0]["values"]} == {
                t[0] for t in real.query(tags)[0]["values"]
            }
    assert server.query(f"SHOW FIELD KEYS FROM {EVENT}")
