# SPDX-License-Identifier: Apache-2.0
"""Delivery while server and deliverer are killed over and over, and rows among the points are rejected.

Kills come at random places of the delivery's progress, not at times: they all fall into it, however fast the
machine is.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dashboards.delivery import deliver
from dashboards.line_protocol import Field, Point
from dashboards.points import LATENCY, RunPoints
from dashboards.store import Store
from dashboards.store.content import Identity
from reports.units import NS_PER_S
from tests.dashboards.influxd import InfluxServer
from tests.dashboards.stored import put_content

STREAMS = 48
_DAY_NS = 86_400 * NS_PER_S
T0_NS = (time.time_ns() // _DAY_NS - 3) * _DAY_NS
"""Not a fixed day: delivery reads back what is at most some weeks old."""
BETWEEN_RUNS_NS = 60_000_000_000
RUNS_SOUND_FIRST = 3
"""Runs at the start without malformed rows: they settle the types of the fields at the server."""
LIMIT_S = 1800.0
_SENT_AGAIN = re.compile(r"(\d+) that it had lost")


@dataclass(frozen=True)
class Storm:
    """How much is delivered, and how often who is killed meanwhile."""

    points: int
    malformed: int
    server_kills: int
    deliverer_kills: int
    lines: int
    seed: int = 5


@dataclass(frozen=True)
class Outcome:
    """What came of it, counted by query.

    Attributes:
        lost: Points that the server does not have when delivery has ended.
        lost_by_restart: Points that it has no more after one further kill: acknowledged, and lost by it.
        lost_in_the_end: Points that it does not have after one further delivery.
        lost_and_sent_again: Points that deliverers that came to their end found missing at the server.
        wrongly_rejected: Sound points that were set aside; wrongly_delivered: malformed ones that were not.
    """

    lost: int
    lost_by_restart: int
    lost_in_the_end: int
    lost_and_sent_again: int
    doubled: int
    rejected: int
    wrongly_rejected: int
    wrongly_delivered: int
    server_kills: int
    deliverer_kills: int
    wall_s: float


def latency_point(stream: int, time_ns: int, serial: int, run_id: str) -> Point:
    """Return a point of one stream in one run; serial is unique over all points."""
    tags = {"bench": "virtual", "target": "linux-rt", "stream": str(stream), "quantity": "one_way_latency"}
    fields = {"value_ns": 1e6 + serial, "margin_ns": 9e6 - serial, "serial": serial, "run_id": run_id}
    return Point(LATENCY, {**tags, "statistic": "max", "profile": "ci", "branch": "main"}, fields, time_ns)


def fill(store: Store, points: int) -> None:
    """Store runs of 48 streams until there are so many points."""
    serial = 0
    for number in range(-(-points // STREAMS)):
        run_id, time_ns = f"run-{number:06}", T0_NS + number * BETWEEN_RUNS_NS
        mine: list[Point] = []
        for stream in range(min(STREAMS, points - serial)):
            mine.append(latency_point(stream, time_ns, serial, run_id))
            serial += 1
        store.add_run(
            RunPoints(run_id, time_ns, "virtual", "ci", "main", "c0ffee", True, "pass", tuple(mine))
        )


def add_malformed(store: Store, count: int, rng: random.Random) -> None:
    """Put rows that a server rejects between the others: no line protocol, or a field of another type."""
    listed = [row[0] for row in store.connection.execute("SELECT id FROM point ORDER BY id").fetchall()]
    places = rng.sample(listed[RUNS_SOUND_FIRST * STREAMS :], count)
    store.connection.execute("BEGIN")
    # Every id is doubled, so that there is an odd one to put between each two.
    store.connection.execute("UPDATE point SET id = -2 * id")
    store.connection.execute("UPDATE point SET id = -id")
    sound = "hil_latency,stream=1,bench=x"
    bad: list[tuple[str, dict[str, Field]]] = [
        (sound, {"value_ns=nope,other": 1.0}),
        (sound, {"value_ns": "text"}),
        ("hil_latency,stream=", {"value_ns": 1.0}),
        (sound, {"value_ns": 1}),
        ("garbage", {}),
        (sound, {f"value_ns=1 {T0_NS}999999999999,other": 1.0}),
    ]
    put = "INSERT OR IGNORE INTO series (name, measurement, tags) VALUES (?, 'malformed', '{}')"
    store.connection.executemany(put, [(name,) for name, _ in bad])
    ids = dict(store.connection.execute("SELECT name, id FROM series").fetchall())
    found: dict[Identity, dict[str, Field]] = {}
    for number, place in enumerate(places):
        name, fields = bad[number % len(bad)]
        found[ids[name], T0_NS + number] = fields
        store.connection.execute(
            "INSERT INTO point (id, run, series, time_ns) VALUES (?, 1, ?, ?)",
            (2 * place + 1, ids[name], T0_NS + number),
        )
    put_content(store, 1, found)
    store.connection.execute("COMMIT")


def run_storm(
    storm: Storm, folder: Path, make_server: Callable[[Path], InfluxServer] = InfluxServer
) -> Outcome:
    """Fill a store, deliver it in the storm to a server of the kind, and count there what came of it."""
    rng = random.Random(storm.seed)
    path = folder / "store.sqlite"
    with Store(path) as store:
        fill(store, storm.points)
        add_malformed(store, storm.malformed, rng)
        total = store.status().waiting
    assert total == storm.points + storm.malformed
    start_s = time.monotonic()
    with make_server(folder / "influxdb") as server:
        victims = ["server"] * storm.server_kills + ["deliverer"] * storm.deliverer_kills
        rng.shuffle(victims)
        places = sorted(rng.uniform(0.005, 0.97) for _ in victims)
        endpoint = server.endpoint_file(folder / "endpoint.toml")
        _deliver_in_storm(path, endpoint, server, list(zip(places, victims, strict=True)), total, storm, rng)
        wall_s = time.monotonic() - start_s
        return _count(path, server, storm, wall_s)


def _deliver_in_storm(
    path: Path,
    endpoint: Path,
    server: InfluxServer,
    kills: list[tuple[float, str]],
    total: int,
    storm: Storm,
    rng: random.Random,
) -> None:
    command = [
        sys.executable,
        "-m",
        "dashboards",
        "deliver",
        "--store",
        str(path),
        "--endpoint",
        str(endpoint),
    ]
    command += ["--lines", str(storm.lines), "--give-up-s", "300"]
    deadline = time.monotonic() + LIMIT_S

    def start() -> subprocess.Popen[bytes]:
        with (path.parent / "deliver.log").open("ab") as log:
            environment = {**os.environ, **server.environment()}
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    deliverer = start()
    try:
        with Store(path) as store:
            for place, victim in kills:
                while total - waiting(store) < place * total:
                    assert deliverer.poll() is None, (path.parent / "deliver.log").read_text()[-2000:]
                    assert time.monotonic() < deadline, "the storm does not come to its end"
                    time.sleep(0.005)
                time.sleep(rng.uniform(0, 0.1))
                if victim == "server":
                    server.kill()
                    time.sleep(rng.uniform(0, 0.2))
                    server.start()
                else:
                    deliverer.kill()
                    deliverer.wait()
                    deliverer = start()
        assert deliverer.wait(max(1.0, deadline - time.monotonic())) in (0, 1)
    finally:
        deliverer.kill()
        deliverer.wait()


def waiting(store: Store) -> int:
    """Return how many points wait."""
    row = store.connection.execute("SELECT count(*) FROM point WHERE state = 'waiting'").fetchone()
    return int(row[0])


def _count(path: Path, server: InfluxServer, storm: Storm, wall_s: float) -> Outcome:
    after_delivery = _serials(server)
    said = (path.parent / "deliver.log").read_text()
    server.kill()
    server.start()
    after_restart = _serials(server)
    with Store(path) as store:
        again = deliver(store, server.endpoint()).lost
        in_the_end = _serials(server)
        status = store.status()
        wrongly = store.connection.execute(
            "SELECT count(*) FROM point JOIN series ON series.id = series"
            " WHERE state = 'rejected' AND measurement <> 'malformed'"
        ).fetchone()[0]
    strangers = server.value("SELECT count(value_ns) FROM hil_latency WHERE bench <> 'virtual'") or 0
    assert status.waiting == 0
    return Outcome(
        lost=storm.points - len(set(after_delivery)),
        lost_by_restart=storm.points - len(set(after_restart)),
        lost_in_the_end=storm.points - len(set(in_the_end)),
        lost_and_sent_again=again + sum(map(int, _SENT_AGAIN.findall(said))),
        doubled=len(in_the_end) - len(set(in_the_end)),
        rejected=status.rejected,
        wrongly_rejected=wrongly,
        wrongly_delivered=int(strangers),
        server_kills=storm.server_kills,
        deliverer_kills=storm.deliverer_kills,
        wall_s=wall_s,
    )


def _serials(server: InfluxServer) -> list[int]:
    """Return the serial number of every point that the server has."""
    rows = server.query("SELECT serial FROM hil_latency WHERE bench = 'virtual' GROUP BY stream")
    return [int(row[1]) for series in rows for row in series["values"]]
