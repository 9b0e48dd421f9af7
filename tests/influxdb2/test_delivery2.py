# SPDX-License-Identifier: Apache-2.0
"""Delivery to a real InfluxDB 2.7 on loopback, and what it really does with what it gets."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dashboards.delivery import DeliveryResult, Endpoint, Pace, deliver, load_endpoint
from dashboards.delivery.endpoint import TOKEN
from dashboards.delivery.http import post
from dashboards.errors import DeliveryError
from dashboards.line_protocol import Point
from dashboards.points import RunPoints, run_points
from dashboards.store import Store
from tests.dashboards.chaos import STREAMS, fill
from tests.dashboards.influxd2 import InfluxServer2
from tests.dashboards.runs import make_run, record
from tests.dashboards.stored import fields_of, put_fields, stored_points

pytestmark = pytest.mark.influxdb2

POINTS = 480
HASTY = Pace(give_up_s=0.6, wait_s=0.05, wait_max_s=0.1)


@pytest.fixture
def server(tmp_path: Path) -> Generator[InfluxServer2]:
    """Return a server of its own with an empty bucket."""
    with InfluxServer2(tmp_path / "influxdb") as started:
        yield started


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    """Return a store in which 480 points wait."""
    with Store(tmp_path / "s.sqlite") as opened:
        fill(opened, POINTS)
        yield opened


def count(server: InfluxServer2) -> int:
    """Return how many points of the store's kind the server has."""
    return int(server.value("SELECT count(serial) FROM hil_latency") or 0)


def endpoint_with(server: InfluxServer2, token: str, organisation: str = "") -> Endpoint:
    """Return the server's write interface for another token, or in another organisation."""
    file = server.endpoint_file(server.folder / "other.toml")
    if organisation:
        text = file.read_text()
        file.write_text(text.replace('organisation = "lab & co"', f'organisation = "{organisation}"'))
    return load_endpoint(file, {TOKEN: token})


def test_points_arrive_once_however_often_they_are_sent(store: Store, server: InfluxServer2) -> None:
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS, 0)
    assert store.wait_again(delivered=True) == POINTS
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS, 0)
    assert count(server) == POINTS
    assert server.value("SELECT sum(serial) FROM hil_latency") == POINTS * (POINTS - 1) // 2
    assert server.value("SELECT last(waiting) FROM hil_spool") == 0


def test_an_accepted_write_is_answered_with_204(server: InfluxServer2) -> None:
    answer = post(server.endpoint(), f"m,t=a v=1.5 {time.time_ns()}\n".encode(), 10)
    assert (answer.status, answer.reason) == (204, "")


def test_run_reads_as_it_was_written(tmp_path: Path, server: InfluxServer2) -> None:
    """Texts with every delimiter, nanoseconds in full, and the margin come back from the server unchanged."""
    odd = 'a "quoted\\" text, with = and é'
    fields = {"s": odd, "v": 0.1, "n": -3, "ok": False, "run_id": "r"}
    other = RunPoints(
        "r", 1, "b", "ci", "main", None, True, "pass", (Point("hil_odd", {"t": "a b,c=d é"}, fields, 1),)
    )
    run = run_points(make_run(tmp_path, [record()]), "main")
    with Store(tmp_path / "s.sqlite") as store:
        store.add_run(run)
        store.add_run(other)
        assert deliver(store, server.endpoint()) == DeliveryResult(len(run.points) + 1, 0)
    (series,) = server.query("SELECT s, v, n, ok FROM hil_odd GROUP BY t")
    assert series["tags"] == {"t": "a b,c=d é"}
    assert series["values"] == [[1, odd, 0.1, -3, False]]
    assert server.query("SELECT margin_ns FROM hil_latency")[0]["values"] == [[run.time_ns, 8_999_900]]


def test_malformed_row_is_set_aside_with_the_reason(store: Store, server: InfluxServer2) -> None:
    """A line that cannot be parsed makes 2.7 refuse the whole request (400); nothing of it is stored."""
    fields = fields_of(store, 100)
    put_fields(store, 100, {"value_ns=nope,other": fields.pop("value_ns"), **fields})
    lines = [point.line for point in stored_points(store)]
    answer = post(server.endpoint(), "".join(f"{line}\n" for line in lines).encode(), 10)
    assert answer.status == 400
    assert count(server) == 0
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS - 1, 1)
    assert store.status().reasons == (("400 unable to parse '…': invalid number", 1),)
    assert count(server) == POINTS - 1


def test_field_of_another_type_is_set_aside(store: Store, server: InfluxServer2) -> None:
    """A conflict of types makes 2.7 keep the rest of the request (422, partial write)."""
    put_fields(store, 100, {**fields_of(store, 100), "value_ns": "text"})
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS - 1, 1)
    ((reason, number),) = store.status().reasons
    assert number == 1
    assert reason.startswith("422 ")
    assert "field type conflict" in reason
    assert count(server) == POINTS - 1


def test_point_older_than_the_bucket_keeps_is_set_aside(store: Store, server: InfluxServer2) -> None:
    server.new_bucket("short", retention_s=int(timedelta(days=30).total_seconds()))
    ((time_ns,),) = store.connection.execute("SELECT time_ns FROM point WHERE id = 7").fetchall()
    put_fields(store, 7, fields_of(store, 7), time_ns - 60 * 86_400 * 10**9)
    assert deliver(store, server.endpoint("short")) == DeliveryResult(POINTS - 1, 1)
    ((reason, _),) = store.status().reasons
    assert "outside retention policy" in reason


@pytest.mark.parametrize(
    ("bucket", "organisation", "message"),
    [("nobody", "", '404 bucket "nobody" not found'), ("", "nobody", '404 organization name "nobody"')],
)
def test_bucket_or_organisation_that_is_not_there(
    store: Store, server: InfluxServer2, bucket: str, organisation: str, message: str
) -> None:
    endpoint = server.endpoint(bucket) if bucket else endpoint_with(server, server.token, organisation)
    with pytest.raises(DeliveryError, match=message):
        deliver(store, endpoint)
    assert (store.status().waiting, store.status().rejected) == (POINTS, 0)


@pytest.mark.parametrize(("whose", "status"), [("", 401), ("nobody", 401), ("reader", 403)])
def test_credentials_that_are_refused(store: Store, server: InfluxServer2, whose: str, status: int) -> None:
    token = {"": "", "nobody": "no-token-of-it", "reader": server.new_token("read")}[whose]
    with pytest.raises(DeliveryError, match=rf": {status} .*credentials") as caught:
        deliver(store, endpoint_with(server, token))
    assert not token or token not in str(caught.value)
    assert (store.status().waiting, store.status().rejected) == (POINTS, 0)


def test_token_for_reading_and_writing_buckets_is_enough(store: Store, server: InfluxServer2) -> None:
    """That a database of InfluxQL stands for the bucket is read with the right to read the bucket."""
    token = server.new_token("read", "write")
    assert deliver(store, endpoint_with(server, token)) == DeliveryResult(POINTS, 0)


def test_token_that_may_only_write_leaves_it_unproven(store: Store, server: InfluxServer2) -> None:
    done = deliver(store, endpoint_with(server, server.new_token("write")))
    assert (done.delivered, done.rejected, done.lost) == (POINTS, 0, 0)
    assert "database not found" in done.unproven
    assert count(server) == POINTS


def test_bucket_without_a_mapping_is_read_back_by_its_name(store: Store, server: InfluxServer2) -> None:
    server.new_bucket("plain")
    server.token = server.new_token("read", "write")
    assert deliver(store, server.endpoint("plain")) == DeliveryResult(POINTS, 0)


def test_server_that_is_down_gets_the_points_when_it_is_up(store: Store, server: InfluxServer2) -> None:
    server.kill()
    with pytest.raises(DeliveryError, match=r"refused.*given up"):
        deliver(store, server.endpoint(), HASTY)
    assert store.status().waiting == POINTS
    server.start()
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS, 0)


def test_acknowledged_points_survive_a_kill(store: Store, server: InfluxServer2) -> None:
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS, 0)
    server.kill()
    server.start()
    assert count(server) == POINTS
    assert deliver(store, server.endpoint()) == DeliveryResult(0, 0)


def test_acknowledged_points_that_a_torn_log_loses(tmp_path: Path, server: InfluxServer2) -> None:
    """2.7.12 has the defect of 1.6.7 that makes reading back necessary; without it, this test says so."""
    with Store(tmp_path / "s.sqlite") as store:
        fill(store, STREAMS)
        deliver(store, server.endpoint())
        server.kill()
        logs = [path for path in server.folder.rglob("*.wal") if server.bucket_id in path.parts]
        with max(logs, key=lambda path: path.stat().st_size).open("ab") as file:
            file.write(b"\x01\x00\x00\x00\x28torn")
        server.start()
        fill(store, POINTS)
        deliver(store, server.endpoint())
        assert count(server) == POINTS
        server.kill()
        server.start()
        assert count(server) == STREAMS
        assert deliver(store, server.endpoint()).lost == POINTS - STREAMS
    assert count(server) == POINTS


def test_what_the_server_has_lost_is_sent_again(store: Store, server: InfluxServer2) -> None:
    """The server loses data after it has acknowledged them: the next delivery finds it."""
    deliver(store, server.endpoint())
    span = {"start": "1970-01-01T00:00:00Z", "stop": (datetime.now(UTC) + timedelta(days=9)).isoformat()}
    path = f"/api/v2/delete?bucketID={server.bucket_id}&orgID={server.organisation_id}"
    server.request("POST", path, span | {"predicate": 'stream="7"'})
    assert count(server) == POINTS - POINTS // STREAMS
    assert deliver(store, server.endpoint()) == DeliveryResult(POINTS // STREAMS, 0, lost=POINTS // STREAMS)
    assert count(server) == POINTS


def test_command_line_takes_the_token_from_a_file(store: Store, server: InfluxServer2) -> None:
    secret = server.folder / "token.toml"
    secret.touch(0o600)
    secret.write_text(f'token = "{server.token}"\n')
    file = server.endpoint_file(server.folder / "endpoint.toml")
    file.write_text(file.read_text() + 'credentials = "token.toml"\n')
    command = [
        sys.executable,
        "-m",
        "dashboards",
        "deliver",
        "--store",
        str(store.path),
        "--endpoint",
        str(file),
    ]
    environment = {key: value for key, value in os.environ.items() if key != TOKEN}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert server.token not in done.stdout + done.stderr
    assert count(server) == POINTS
