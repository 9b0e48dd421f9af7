# SPDX-License-Identifier: Apache-2.0
"""Delivery to InfluxDB 3 by its documented contract (`fake_influxdb3.py` cites it)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashboards.delivery import DeliveryResult, Endpoint, Pace, deliver, load_endpoint
from dashboards.delivery.endpoint import TOKEN
from dashboards.errors import DeliveryError
from dashboards.store import Store
from tests.dashboards.chaos import fill
from tests.dashboards.fake_influxdb3 import FakeInflux3
from tests.dashboards.fake_server import FakeServer
from tests.dashboards.stored import fields_of, put_fields

POINTS = 480
SECRET = "apiv3_secret"  # noqa: S105
PATIENT = Pace(wait_s=0.01, wait_max_s=0.05)


@pytest.fixture
def store(store: Store) -> Store:
    """Return a store in which 480 points wait."""
    fill(store, POINTS)
    return store


def endpoint(server: FakeServer, folder: Path, token: str = SECRET) -> Endpoint:
    """Return the write interface as an endpoint file gives it."""
    file = folder / "endpoint.toml"
    file.write_text(f'[influxdb]\napi = 3\nurl = "http://127.0.0.1:{server.port}"\ndatabase = "hil"\n')
    return load_endpoint(file, {TOKEN: token})


def spoil(store: Store, *places: int) -> None:
    """Give a field of some points another type."""
    for place in places:
        put_fields(store, place, {**fields_of(store, place), "value_ns": "x"})


@pytest.mark.parametrize("early", [False, True])
def test_everything_is_delivered_once_and_read_back(store: Store, tmp_path: Path, early: bool) -> None:
    influx = FakeInflux3(SECRET, tags_as_columns=early)
    with FakeServer(influx) as server:
        assert deliver(store, endpoint(server, tmp_path), PATIENT) == DeliveryResult(POINTS, 0)
    wanted = (
        b"POST /api/v3/write_lp?db=hil&precision=nanosecond&accept_partial=true&no_sync=false HTTP/1.1\r\n"
    )
    assert server.requests[0].startswith(wanted)
    assert sum(key[0] == "hil_latency" for key in influx.points) == POINTS


@pytest.mark.parametrize("early", [False, True])
def test_what_the_server_has_lost_is_sent_again(store: Store, tmp_path: Path, early: bool) -> None:
    influx = FakeInflux3(SECRET, tags_as_columns=early)
    with FakeServer(influx) as server:
        deliver(store, endpoint(server, tmp_path), PATIENT)
        gone = sorted(influx.points, key=lambda key: (key[2], sorted(key[1])))[5:8]
        for key in gone:
            del influx.points[key]
        assert deliver(store, endpoint(server, tmp_path), PATIENT) == DeliveryResult(3, 0, lost=3)
    assert all(key in influx.points for key in gone)


def test_refused_lines_are_set_aside_with_their_own_reasons(store: Store, tmp_path: Path) -> None:
    spoil(store, 70, 71, 300)
    influx = FakeInflux3(SECRET)
    with FakeServer(influx) as server:
        assert deliver(store, endpoint(server, tmp_path), PATIENT) == DeliveryResult(POINTS - 3, 3)
    ((reason, number),) = store.status().reasons
    assert number == 3
    assert reason.startswith("400 partial write of line protocol occurred: invalid column type for column")
    assert sum(key[0] == "hil_latency" for key in influx.points) == POINTS - 3


def test_server_that_does_not_accept_parts_gives_its_reason_too(store: Store, tmp_path: Path) -> None:
    """Its body has one object where the other has a list."""
    spoil(store, 70)
    with FakeServer(FakeInflux3(SECRET)) as server:
        strict = endpoint(server, tmp_path)
        strict = replace(strict, path=strict.path.replace("accept_partial=true", "accept_partial=false"))
        assert deliver(store, strict, PATIENT) == DeliveryResult(POINTS - 1, 1)
    ((reason, _),) = store.status().reasons
    assert reason.startswith("400 parsing failed for write_lp endpoint: invalid column type")


def test_question_that_the_server_cannot_answer_leaves_it_unproven(store: Store, tmp_path: Path) -> None:
    with FakeServer(FakeInflux3(SECRET, file_limit=True)) as server:
        done = deliver(store, endpoint(server, tmp_path), PATIENT)
    assert (done.delivered, done.rejected, done.lost) == (POINTS, 0, 0)
    assert "file limit of 432" in done.unproven


def test_wrong_token_ends_delivery(store: Store, tmp_path: Path) -> None:
    with FakeServer(FakeInflux3(SECRET)) as server, pytest.raises(DeliveryError, match=r"401 .*credentials"):
        deliver(store, endpoint(server, tmp_path, "another"), PATIENT)
    assert store.status().waiting == POINTS
