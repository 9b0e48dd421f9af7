# SPDX-License-Identifier: Apache-2.0
"""What do a run, `status` and a history cost in a store that has become large?

    make bench-store

status_s    `python -m dashboards status` with 2,000 runs, its start included; median of 5
history_s   the history of every followed field of one of them, which `advise` starts with; median of 5
run_mb      what a run takes in the file
run_500_ms  storing a run with 500 before it: the median of 100
run_last_ms likewise with `--runs` before it (5,000), by turns with the other
run_ratio   the second by the first

The runs are made-up ones of 48 streams, as in `make bench-reporting`, with twice as many points beside them,
so that a run has the 200 and more points of the main job's.
"""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench.dashboards.bench_reporting import HOUR_NS, made_up, noisy
from bench.lab.options import Options, takes
from bench.lab.report import RUNS_MIN, Bar, publish, say
from dashboards.branch import MAIN
from dashboards.points import RUN, RunPoints
from dashboards.regressions.run_history import run_histories, stored_run
from dashboards.run_import import read_run
from dashboards.store import Store
from hw.scratch import scratch_folder
from resources.keep_run import STORE

RUNS, RUNS_ASKED, RUNS_FIRST, AROUND = 5000, 2000, 500, 100
BARS = {"status_s": Bar(0.5), "history_s": Bar(0.5), "run_ratio": Bar(1.2)}


@takes(runs=(RUNS, "runs in the store in the end, 2,000 or more"))
def main(options: Options) -> int:
    """Run the benchmark."""
    with scratch_folder() as folder:
        path, small_path = Path(folder) / STORE, Path(folder) / "small.sqlite"
        like = _doubled(read_run(made_up(Path(folder)), MAIN))
        with Store(path) as store, Store(small_path) as small:
            _fill(small, like, 0, RUNS_FIRST)
            _fill(store, like, 0, RUNS_ASKED)
            run = stored_run(store, _run_id(RUNS_ASKED - 1))
            history_s = _median(lambda: run_histories(store, run))
            status_s = _median(lambda: _status(path))
            _fill(store, like, RUNS_ASKED, options.runs)
            size_mb = path.stat().st_size / 1e6
            first_s: list[float] = []
            last_s: list[float] = []
            for number in range(AROUND):  # by turns: what else the machine does slows both
                first_s += _fill(small, like, RUNS_FIRST + number, RUNS_FIRST + number + 1)
                last_s += _fill(store, like, options.runs + number, options.runs + number + 1)
    first, last = statistics.median(first_s), statistics.median(last_s)
    figures = {"status_s": status_s, "history_s": history_s, "run_mb": size_mb / options.runs}
    figures |= {"run_500_ms": first * 1e3, "run_last_ms": last * 1e3, "run_ratio": last / first}
    return publish("store", figures, BARS, {"runs": options.runs, "points_per_run": len(like.points)})


def _doubled(run: RunPoints) -> RunPoints:
    """Return a run with each of its points for a second target, too."""
    others = [
        dataclasses.replace(point, tags={**point.tags, "target": "second"})
        for point in run.points
        if point.measurement != RUN
    ]
    return dataclasses.replace(run, points=(*run.points, *others))


def _fill(store: Store, like: RunPoints, begin: int, end: int) -> list[float]:
    """Store the runs of some numbers, each like one; return what each took, in s."""
    rng = np.random.default_rng(begin)
    times_s: list[float] = []
    for number in range(begin, end):
        run_id, time_ns = _run_id(number), like.time_ns + number * HOUR_NS
        points = tuple(noisy(point, run_id, time_ns, rng, slower=False) for point in like.points)
        run = dataclasses.replace(like, run_id=run_id, time_ns=time_ns, points=points)
        begin_s = time.perf_counter()
        store.add_run(run)
        times_s.append(time.perf_counter() - begin_s)
        if number % 500 == 499:
            say(f"{number + 1} runs")
    return times_s


def _run_id(number: int) -> str:
    return f"history-{number:05}"


def _status(path: Path) -> None:
    command = [sys.executable, "-m", "dashboards", "status", "--store", str(path)]
    subprocess.run(command, check=True, capture_output=True)


def _median(action: Callable[[], object]) -> float:
    """Return the median time of an action, in s."""
    times_s: list[float] = []
    for _ in range(RUNS_MIN):
        begin_s = time.perf_counter()
        action()
        times_s.append(time.perf_counter() - begin_s)
    return statistics.median(times_s)
