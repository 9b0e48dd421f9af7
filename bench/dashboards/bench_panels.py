# SPDX-License-Identifier: Apache-2.0
"""How long do the dashboards' queries take over two years of history, 2,000 runs of 48 streams?

    make bench-panels                      InfluxDB 1.6.7, as Debian has it
    make bench-panels-influxdb2            InfluxDB 2.7, built where it is not there
    .build/venv/bin/python -m bench panels --shards 1w

Every query of dashboards and alerts (panels, variables, annotations; all values chosen) is asked of a real
InfluxDB 1.6.7 by turns, at least five times. The slowest median is judged. What the server's CPU time was per
question is told besides: it does not depend on what else this machine does.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import RUNS_MIN, Bar, alternate, publish, say
from hw.scratch import scratch_folder
from tests.dashboards.grafana.queries import Query, all_queries, fault
from tests.dashboards.grafana.server import fill
from tests.dashboards.influxd import InfluxServer
from tests.dashboards.two_years import SHARDS

BARS = {"slowest_median_s": Bar(1.0), "faults": Bar(0)}
_SLOWEST_SHOWN = 8


@dataclass(frozen=True)
class Question:
    """One question: how long the answer took, the server's CPU time, and what is wrong with the answer."""

    wall_s: float
    cpu_s: float
    fault: str


@takes(repetitions=(RUNS_MIN, "questions of each kind"), shards=(SHARDS, "duration of a shard"))
def main(
    options: Options, bench: str = "panels", make_server: Callable[[Path], InfluxServer] = InfluxServer
) -> int:
    """Run the benchmark with a kind of server and publish it under a name."""
    with (
        scratch_folder() as folder,
        make_server(Path(folder, "i")) as server,
    ):
        start = time.monotonic()
        points = fill(server, Path(folder, "runs"), options.shards)
        load_s = time.monotonic() - start
        say(f"{points} points loaded in {load_s:.1f} s")
        questions = {f"{f.dashboard} {f.place}": _question(server, f) for f in all_queries()}
        results = alternate(questions, options.repetitions)
    return _publish(bench, results, {"points": float(points), "load_s": load_s}, options.shards)


def _question(server: InfluxServer, found: Query) -> Callable[[], Question]:
    def ask() -> Question:
        cpu_s, start = _cpu_s(server), time.monotonic()
        wrong = fault(server.query, found.query)
        return Question(time.monotonic() - start, _cpu_s(server) - cpu_s, wrong)

    return ask


def _publish(bench: str, results: dict[str, list[Question]], figures: dict[str, float], shards: str) -> int:
    medians = {name: statistics.median(one.wall_s for one in asked) for name, asked in results.items()}
    slowest = sorted(medians, key=lambda name: medians[name], reverse=True)
    for name in slowest[:_SLOWEST_SHOWN]:
        times = sorted(one.wall_s for one in results[name])
        cpu_s = statistics.median(one.cpu_s for one in results[name])
        spread = f"{times[0]:.2f} .. {times[-1]:.2f}"
        say(f"{medians[name]:.3f} s ({spread}), CPU {cpu_s:.2f} s  {name}")
    faults = {name: asked[0].fault for name, asked in results.items() if any(one.fault for one in asked)}
    figures |= {
        "queries": float(len(results)),
        "slowest_median_s": medians[slowest[0]],
        "slowest_cpu_median_s": max(
            statistics.median(one.cpu_s for one in asked) for asked in results.values()
        ),
        "median_of_medians_s": statistics.median(medians.values()),
        "over_1_s": float(sum(median > BARS["slowest_median_s"].value for median in medians.values())),
        "faults": float(len(faults)),
    }
    runs = {name: [[one.wall_s, one.cpu_s] for one in asked] for name, asked in results.items()}
    detail = {"shards": shards, "faults": faults, "wall_s, cpu_s": runs, "load": os.getloadavg()}
    return publish(bench, figures, BARS, detail)


def _cpu_s(server: InfluxServer) -> float:
    """Return the CPU time that the server has used."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
