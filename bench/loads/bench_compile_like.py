# SPDX-License-Identifier: Apache-2.0
"""The load `compile-like` beside a real build: this project's native tools and their tests, without a cache.

Both run by turns, as many processes at once as there are processors, and are measured alike (ruler.py): what
they themselves take, whatever else the machine does. Each figure is how often one has the other's, whichever
has more, of medians.

cpu_factor                CPU time a second
forks_factor              processes and threads that are made a second
context_switches_factor   of its processes, a second; those by preemption depend on what else runs
written_factor            bytes that are written to files a second
…_per_cpu_factor          the same of each second of CPU time: without what neighbours take of that
"""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RUNS_MIN, Bar, alternate, publish, say_runs, steal_ms
from bench.loads.ruler import measure

TOOL = REPOSITORY / ".build" / "linux" / "traffic-gen" / "bw-traffic"
FACTORS = {
    "cpu_factor": "cpu",
    "forks_factor": "forks",
    "context_switches_factor": "context_switches",
    "written_factor": "written_bytes",
}
BARS = {name: Bar(2) for name in FACTORS}
UNCACHED = {**os.environ, "CCACHE_DISABLE": "1"}
LOAD_S = 30


def configure(build: Path) -> None:
    """Prepare a build of the native tools, as hw/host/native.sh does, but by the compiler itself."""
    argv = ["meson", "setup", "--buildtype=debugoptimized", "-Dtests=true", str(build), str(REPOSITORY)]
    subprocess.run(argv, env={**UNCACHED, "CC": "gcc"}, check=True, stdout=subprocess.DEVNULL)


def real(build: Path, jobs: int) -> dict[str, float]:
    """Build everything."""
    subprocess.run(["ninja", "-C", str(build), "-t", "clean"], check=True, stdout=subprocess.DEVNULL)
    return _measured(["ninja", "-C", str(build), "-j", str(jobs)])


def load(folder: Path, seconds: int) -> dict[str, float]:
    """Run the load, with the defaults of its program."""
    return _measured([str(TOOL), "work", "--folder", str(folder), "--duration-ms", str(1000 * seconds)])


def factor(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return how often one median has the other; infinity where one is 0."""
    low, high = sorted((statistics.median(ours), statistics.median(theirs)))
    return high / low if low else math.inf


def each(runs: Sequence[dict[str, float]], key: str, of: str = "") -> list[float]:
    """Return a figure of all runs; of each second, or of each unit of another figure."""
    return [run[key] / (run[of] if of else 1) for run in runs]


def _measured(argv: list[str]) -> dict[str, float]:
    stolen_ms = steal_ms()
    found = measure(argv, UNCACHED)
    return {**found, "stolen_ms": steal_ms() - stolen_ms}


@takes(runs=(RUNS_MIN, "builds, and as many loads"), seconds=(LOAD_S, "of each load"))
def main(options: Options) -> int:
    """Run the benchmark."""
    jobs = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:  # on a disk, where the machine has one
        build = Path(name) / "build"
        configure(build)
        variants = {
            "real": partial(real, build, jobs),
            "load": partial(load, Path(name) / "load", options.seconds),
        }
        runs = alternate(variants, options.runs)
    say_runs(runs, ".2f")
    figures = {
        name: factor(*(each(runs[of], key) for of in ("load", "real"))) for name, key in FACTORS.items()
    }
    for key in ("forks", "context_switches", "written_bytes"):
        name = f"{key.removesuffix('_bytes')}_per_cpu_factor"
        figures[name] = factor(*(each(runs[of], key, "cpu") for of in ("load", "real")))
    return publish("compile-like", figures, BARS, {"runs": runs})


if __name__ == "__main__":
    raise SystemExit(main())
