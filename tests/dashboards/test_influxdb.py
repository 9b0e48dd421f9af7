# SPDX-License-Identifier: Apache-2.0
"""Delivery to a real InfluxDB 1.6.7 on loopback, and what it really does with what it gets."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from dashboards.delivery import DeliveryResult, deliver
from dashboards.errors import DeliveryError
from dashboards.line_protocol import Point
from dashboards.points import RunPoints, run_points
from dashboards.store import Store
from tests.dashboards.chaos import Storm, fill, run_storm
from tests.dashboards.influxd import InfluxServer
from tests.dashboards.runs import make_run, record
from tests.dashboards.stored import fields_of, put_fields

POINTS = 480


@pytest.fixture
def server(tmp_path: Path) -> Generator[InfluxServer]:
    """Return a server of its own with an empty database."""
    with InfluxServer(tmp_path / "influxdb") as started:
        yield started


def count(server: InfluxServer) -> int:
    """Return how many points of the store's kind the server has."""
    return int(server.value("SELECT count(serial) FROM hil_latency") or 0)


def test_points_arrive_once_however_often_they_are_sent(store: Store, server: InfluxServer) -> None:
    fill(store, POINTS)
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS, 0)
    assert store.wait_again(delivered=True) == POINTS
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS, 0)
    assert count(server) == POINTS
    assert server.value("SELECT sum(serial) FROM hil_latency") == POINTS * (POINTS - 1) // 2
    assert server.value("SELECT last(waiting) FROM hil_spool") == 0


def test_run_reads_as_it_was_written(store: Store, tmp_path: Path, server: InfluxServer) -> None:
    """Texts with every delimiter, nanoseconds in full, and the margin come back from the server unchanged."""
    odd = 'a "quoted\\" text, with = and é'
    point = Point("hil_odd", {"t": "a b,c=d é"}, {"s": odd, "v": 0.1, "n": -3, "ok": False, "run_id": "r"}, 1)
    run = run_points(make_run(tmp_path, [record()]), "main")
    other = RunPoints("r", 1, "b", "ci", "main", None, True, "pass", (point,))
    store.add_run(run)
    store.add_run(other)
    assert deliver(store, server.endpoint()) == DeliveryResult(len(run.points) + 1, 0)
    (series,) = server.query("SELECT s, v, n, ok FROM hil_odd GROUP BY t")
    assert series["tags"] == {"t": "a b,c=d é"}
    assert series["values"] == [[1, odd, 0.1, -3, False]]
    assert server.query("SELECT margin_ns FROM hil_latency")[0]["values"] == [[run.time_ns, 8_999_900]]


def test_field_of_another_type_is_set_aside(store: Store, server: InfluxServer) -> None:
    fill(store, POINTS)
    put_fields(store, 100, {**fields_of(store, 100), "value_ns": "text"})
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS - 1, 1)
    ((reason, number),) = store.status().reasons
    assert number == 1
    assert "field type conflict" in reason
    assert count(server) == POINTS - 1


def test_database_that_is_not_there(store: Store, server: InfluxServer) -> None:
    fill(store, POINTS)
    with pytest.raises(DeliveryError, match="404 database not found"):
        deliver(store, server.endpoint("nobody"))
    assert (store.status().waiting, store.status().rejected) == (POINTS, 0)


def test_what_the_server_has_lost_is_sent_again(store: Store, server: InfluxServer) -> None:
    """The server loses all of its data after it has acknowledged them: the next delivery finds it."""
    fill(store, POINTS)
    deliver(store, server.endpoint())
    server.query("DELETE FROM hil_latency WHERE stream = '7'", method="POST")
    assert count(server) == POINTS - POINTS // 48
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS // 48, 0, lost=POINTS // 48)
    assert count(server) == POINTS


def test_acknowledged_points_that_a_torn_log_loses(store: Store, server: InfluxServer) -> None:
    """The defect of 1.6.7 that makes reading back necessary; without it, this test says so."""
    fill(store, 48)
    deliver(store, server.endpoint())
    server.kill()
    # The state of the spool is of today, and has a log of its own where the runs are of another week.
    log = max((server.folder / "wal").rglob("*.wal"), key=lambda path: path.stat().st_size)
    with log.open("ab") as file:
        file.write(b"\x01\x00\x00\x00\x28torn")
    server.start()
    fill(store, POINTS)
    deliver(store, server.endpoint())
    assert count(server) == POINTS
    server.kill()
    server.start()
    assert count(server) == 48
    assert deliver(store, server.endpoint()).lost == POINTS - 48
    assert count(server) == POINTS


def test_small_storm(tmp_path: Path) -> None:
    """Server and deliverer killed among malformed rows; `make bench-delivery` does it in full."""
    if shutil.which("influxd") is None:
        pytest.skip("needs Debian's influxdb (hw/host/setup.sh --dev)")
    storm = Storm(points=2400, malformed=24, server_kills=4, deliverer_kills=2, lines=300)
    outcome = run_storm(storm, tmp_path)
    assert (outcome.lost, outcome.lost_in_the_end, outcome.doubled) == (0, 0, 0)
    assert (outcome.rejected, outcome.wrongly_rejected, outcome.wrongly_delivered) == (24, 0, 0)
