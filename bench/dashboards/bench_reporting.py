# SPDX-License-Identifier: Apache-2.0
"""What do storing, advice, delivery and reporting add to a `ci` run?

    make bench-reporting

A run of 48 streams ends, its folder is finalised, and the store holds 2,000 runs before it: two years. Each
step is a process of its own, as at the end of `make qualify`, but for the page, which Robot Framework's
listener renders in its own process: here, too, without the start of Python. CPU time is measured beside: on a
machine that others use, it tells what the wall clock would without them. Delivery goes to a real InfluxDB
1.6.7 that has the runs of the last 30 days, which delivery reads back. The steps are repeated by turns, each
time for another run; what counts is the sum of a repetition. `--run FOLDER` takes copies of a real run.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.report import RUNS_MIN, Bar, publish, say
from dashboards.branch import MAIN, VARIABLE
from dashboards.delivery.endpoint import ENDPOINT_VARIABLE
from dashboards.line_protocol import Field, Point
from dashboards.points import RunPoints
from dashboards.run_import import read_run
from dashboards.store import Store
from hw.scratch import scratch_folder
from reports.page.render import PAGE, render, write_page
from reports.run.folder import MANIFEST, MEASUREMENTS
from reports.run.integrity import SUMS, changed_files, write_sums
from reports.run.manifest import Manifest
from resources.keep_run import STORE
from tests.dashboards.influxd import InfluxServer
from tests.reports.sample_run import make_run

BARS = {"added_s": Bar(10.0)}
HISTORY_RUNS = 2000
READ_BACK_RUNS = 82
"""Runs of 30 days, where 2,000 are two years."""
HOUR_NS = 3_600_000_000_000
DELIVERED_LONG_AGO = (
    "UPDATE point SET state = 'delivered', acknowledged_ns = 0 WHERE run_id IN"
    " (SELECT run_id FROM run ORDER BY time_ns LIMIT ?)"
)
CHANGED_FROM = 3
"""So many runs before the end some streams become slower: the repetitions see changes, not only silence."""


@takes(
    run={"type": Path, "help": "a finalised run folder instead of a made-up one"},
    runs=(HISTORY_RUNS, "runs of history"),
    repetitions=(RUNS_MIN, "of the steps"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    with scratch_folder() as folder, InfluxServer(Path(folder)) as server:
        results = Path(folder) / "results"
        original = options.run or made_up(results)
        fill(results / STORE, read_run(original, MAIN), options.runs)
        environment = {**os.environ, VARIABLE: MAIN}
        environment[ENDPOINT_VARIABLE] = str(server.endpoint_file(Path(folder) / "endpoint.toml"))
        _dashboards(["deliver"], results, environment)
        rounds = [
            measure(copy_of(original, results, number), results, environment)
            for number in range(max(RUNS_MIN, options.repetitions))
        ]
    steps = {name: [one[name].wall_s for one in rounds] for name in rounds[0]}
    figures = {f"{name}_s": statistics.median(values) for name, values in steps.items()}
    sums = [sum(step.wall_s for step in one.values()) for one in rounds]
    cpu = [sum(step.cpu_s for step in one.values()) for one in rounds]
    figures |= {"added_s": statistics.median(sums), "added_least_s": min(sums), "added_most_s": max(sums)}
    figures |= {"cpu_s": statistics.median(cpu), "cpu_least_s": min(cpu), "cpu_most_s": max(cpu)}
    return publish("reporting", figures, BARS, {"steps_s": steps, "history_runs": options.runs})


class Cost(NamedTuple):
    """What a step takes."""

    wall_s: float
    cpu_s: float


def fill(store: Path, like: RunPoints, runs: int) -> None:
    """Store runs like one, before it, with noise; all but the last ones count as delivered."""
    rng = np.random.default_rng(9)
    with Store(store) as opened:
        for number in range(runs):
            run_id, back = f"history-{number:05}", runs - number
            time_ns = like.time_ns - back * HOUR_NS
            points = [
                noisy(point, run_id, time_ns, rng, slower=back <= CHANGED_FROM and place % 9 == 0)
                for place, point in enumerate(like.points)
            ]
            opened.add_run(
                dataclasses.replace(like, run_id=run_id, time_ns=time_ns, points=tuple(points), branch=MAIN)
            )
        with opened.connection:
            opened.connection.execute(DELIVERED_LONG_AGO, (max(0, runs - READ_BACK_RUNS),))


def noisy(point: Point, run_id: str, time_ns: int, rng: np.random.Generator, *, slower: bool) -> Point:
    """Return a point of another run: times by chance a little longer or shorter."""
    factor = float(rng.lognormal(0, 0.1)) * (1.5 if slower else 1)
    fields: dict[str, Field] = {
        name: value * factor if isinstance(value, float) else value for name, value in point.fields.items()
    }
    return dataclasses.replace(point, fields={**fields, "run_id": run_id}, time_ns=time_ns)


def made_up(results: Path) -> Path:
    """Write a finalised run of 48 streams and return its folder."""
    run = make_run(results)
    write_page(run.path)
    run.finalise()
    return run.path


def copy_of(original: Path, results: Path, number: int) -> Path:
    """Return a finalised copy of a run folder as a run of its own, some minutes later."""
    copy = results / f"copy-{number}"
    shutil.copytree(original, copy)
    old = Manifest.from_text((copy / MANIFEST).read_text())
    day, rest = old.start_utc.split("T")
    new = dataclasses.replace(
        old, run_id=f"{old.run_id[:-2]}{number:02}", start_utc=f"{day}T{rest[:6]}{number:02}Z"
    )
    (copy / MANIFEST).write_text(new.to_text())
    records = (copy / MEASUREMENTS).read_text().replace(old.run_id, new.run_id)
    (copy / MEASUREMENTS).write_text(records)
    (copy / SUMS).unlink()
    (copy / PAGE).unlink()
    return copy


def measure(run: Path, results: Path, environment: dict[str, str]) -> dict[str, Cost]:
    """Return what each step takes, for a run that has just been closed."""
    render(run)  # what is loaded once is loaded by now
    found = {"page": timed(lambda: write_page(run)), "sums": timed(lambda: write_sums(run))}
    for name, arguments in (
        ("store", ["import", str(run), "--branch-of-job"]),
        ("advice", ["advise", str(run)]),
        ("delivery", ["deliver", "--give-up-s", "4"]),
    ):
        found[name] = timed(lambda arguments=arguments: _dashboards(arguments, results, environment))
    if changed := changed_files(run):
        raise RuntimeError(f"{run}: {changed}")
    say(f"{run.name}: {found}")
    return found


def timed(action: Callable[[], object]) -> Cost:
    """Return what an action takes, its processes among it."""
    begin_s, cpu_s = time.perf_counter(), _cpu_s()
    action()
    return Cost(time.perf_counter() - begin_s, _cpu_s() - cpu_s)


def _cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _dashboards(arguments: list[str], results: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "dashboards", *arguments, "--store", str(results / STORE)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stdout}{done.stderr}")
    say(f"{arguments[0]}: {done.stdout.strip()}")
