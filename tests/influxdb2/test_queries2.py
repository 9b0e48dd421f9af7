# SPDX-License-Identifier: Apache-2.0
"""Every query of the dashboards and their alerts, on a real InfluxDB 2.7 with two years of history."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.dashboards.grafana.queries import Query, all_queries, fault
from tests.dashboards.grafana.server import fill
from tests.dashboards.influxd2 import InfluxServer2

pytestmark = pytest.mark.influxdb2

QUERIES = all_queries()
LOAD_S = 600.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[InfluxServer2]:
    """Return a server that holds two years."""
    folder = tmp_path_factory.mktemp("two-years")
    with InfluxServer2(folder / "influxdb") as started:
        fill(started, folder / "runs")
        yield started


@pytest.mark.timeout(LOAD_S)
@pytest.mark.parametrize("found", QUERIES, ids=lambda found: f"{found.dashboard}: {found.place}")
def test_query_returns_data(server: InfluxServer2, found: Query) -> None:
    assert fault(server.query, found.query) == ""


def test_query_without_data_is_found(server: InfluxServer2) -> None:
    assert (
        fault(server.query, "SELECT value_ns AS value FROM hil_latency WHERE bench = 'nobody'") == "no series"
    )
