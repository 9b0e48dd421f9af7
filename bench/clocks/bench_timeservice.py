# SPDX-License-Identifier: Apache-2.0
"""What a reading of the time service costs against the system's clock, and whether one is torn or goes back.

cost     blocks of 4,000 readings by turns in one process: clock_gettime(CLOCK_REALTIME) on Linux, under Wine
         GetSystemTimePreciseAsFileTime, against the library: relaxed (a bare reading of the counter), ordered
         (after all loads that precede, as the system's), and with interval and U. Each ratio is the median
         over the turns of a run, each figure the median over the runs.
beside   the client of ClockBound in a process of its own, by turns with the others: clockbound_ratio is ours
         by theirs, each with its interval and after all loads that precede. Its crate is built by name from
         its registry, of one version; here the reader writes the segment of shared memory itself, in its
         layout: that compares the cost of a reading alone, without a bar.
truth    its daemon and ours against one server whose time is known exactly (clockbound_truth.py): error,
         width of the bound, how often that missed, seconds of processor a minute. Its daemon steers the
         system's clock, and ends where it may not: it runs without that right, and is told that it was done
         (clockbound.py). Both are left out where the crate cannot be had.
stress   two readers in processes of their own, while a third publishes, by turns as fast as it can and in
         short bursts. All lines tell the same time by figures that are far apart: a mixture of two is off by
         a tenth of a second or more, or has figures that do not belong together. A reader that does not look
         at the sequence runs beside them, and has to be caught.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from bench.clocks.clockbound import build_clockbound, build_daemon
from bench.clocks.clockbound_truth import ClockBoundPrograms, measure_beside
from bench.lab.options import Options, takes
from bench.lab.processes import answer_of, last_object
from bench.lab.report import REPOSITORY, RUNS_MIN, Bar, alternate, medians, publish, say, say_runs
from hw.errors import CapabilityError
from hw.virtual.windows_prefix import WINE_FOLDER, wine_environment

BUILD = REPOSITORY / ".build"
PROGRAM = Path("tests", "traffic_gen", "timeservice", "timeservice-load")
BLOCKS = 1001
READS = 1_000_000_000
READERS = 2
UNCHECKED_SHARE = 100
"""The reader that does not look at the sequence makes so many times fewer readings."""
BARS = {
    "ordered_ratio": Bar(0.95),
    "relaxed_ratio": Bar(0.6),
    "bound_ratio": Bar(1.05),
    "wine_relaxed_ratio": Bar(0.7),
    "wine_bound_ratio": Bar(1.05),
    "unchecked_torn": Bar(1, at_least=True),
    "torn": Bar(0),
    "backwards": Bar(0),
    "failed": Bar(0),
}

Figures = dict[str, float]


def _program(system: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of the program on a system."""
    if system == "linux":
        return [str(BUILD / "linux" / PROGRAM)], dict(os.environ)
    environment = wine_environment(BUILD / "wine")
    environment["WINEPATH"] = f"Z:{BUILD / 'win' / 'traffic-gen' / 'timeservice'}"
    return [str(WINE_FOLDER / "wine64"), str(BUILD / "win" / PROGRAM.with_suffix(".exe"))], environment


def measure_cost(system: str, page: Path, blocks: int) -> Figures:
    """Return medians of a reading in ns and medians of the ratios turn by turn."""
    command, environment = _program(system)
    found: dict[str, list[float]] = answer_of([*command, "cost", str(page), str(blocks)], environment)

    def ratio(ours: str, theirs: str) -> float:
        return statistics.median(a / b for a, b in zip(found[ours], found[theirs], strict=True))

    figures = {name: statistics.median(values) for name, values in found.items()}
    figures["relaxed_ratio"] = ratio("now_ns", "system_ns")
    figures["bound_ratio"] = ratio("stamp_ns", "now_ns")
    figures["ntp_ratio"] = ratio("ntp_ns", "system_ns")
    figures["ordered_ratio"] = ratio("ordered_ns", "system_ns")
    return figures


def measure_clockbound(program: Path, segment: Path, blocks: int) -> Figures:
    """Return the median of a reading of ClockBound's client in ns."""
    found: dict[str, list[float]] = answer_of([str(program), str(segment), str(blocks)])
    return {name: statistics.median(values) for name, values in found.items()}


def clockbound_runs(folder: Path, blocks: int) -> dict[str, partial[Figures]]:
    """Return how ClockBound is measured; nothing where its crate cannot be had."""
    try:
        program = build_clockbound(BUILD / "clockbound")
    except CapabilityError as error:
        say(f"clockbound is left out: {error}")
        return {}
    return {"clockbound": partial(measure_clockbound, program, folder / "clockbound", blocks)}


def clockbound_truth(folder: Path, settle_minutes: float, minutes: float) -> Figures:
    """Return the figures of both daemons; none where the crate cannot be had, or not run."""
    try:
        reader = build_clockbound(BUILD / "clockbound").with_name("clockbound-read")
        programs = ClockBoundPrograms(build_daemon(BUILD / "clockbound-daemon"), reader)
        return measure_beside(programs, folder, round(60 * settle_minutes), round(60 * minutes))
    except CapabilityError as error:
        say(f"clockbound's daemon is left out: {error}")
        return {}


def measure_stress(page: Path, reads: int) -> Figures:
    """Return what two readers have found in so many readings under constant updates."""
    program = str(BUILD / "linux" / PROGRAM)
    writer = subprocess.Popen(
        [program, "write", page], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout
    if writer.stdout.readline() != "ready\n":
        raise RuntimeError("the writer did not begin")
    command = [program, "read", str(page), str(reads // READERS)]
    readers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(READERS)]
    unchecked = answer_of([program, "unchecked", str(page), str(max(1, reads // UNCHECKED_SHARE))])
    answers = [last_object(reader.communicate()[0]) for reader in readers]
    written = last_object(writer.communicate("")[0])
    names = ("reads", "torn", "backwards", "failed", "changes_seen")
    sums = {name: float(sum(answer[name] for answer in answers)) for name in names}
    torn, publications = float(unchecked["torn"]), float(written["publications"])
    return {**sums, "unchecked_torn": torn, "publications": publications}


@takes(
    blocks=(BLOCKS, "turns of a run"),
    reads=(READS, "of the stress"),
    runs=(RUNS_MIN, "runs on each system"),
    minutes=(4.0, "of readings of truth"),
    settle_minutes=(3.0, "before that"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        runs = alternate(
            {
                system: partial(measure_cost, system, Path(folder, system), options.blocks)
                for system in ("linux", "wine")
            }
            | clockbound_runs(Path(folder), options.blocks),
            options.runs,
        )
        stress = measure_stress(Path(folder, "stress"), options.reads)
        beside = clockbound_truth(Path(folder), options.settle_minutes, options.minutes)
    figures: Figures = stress | beside
    for system, results in runs.items():
        prefix = "wine_" if system == "wine" else ""
        figures |= {f"{prefix}{name}": value for name, value in medians(results).items()}
    say_runs(runs, ".2f")
    if "clockbound_ns" in figures:
        figures["clockbound_ratio"] = figures["ordered_stamp_ns"] / figures["clockbound_ns"]
    return publish("timeservice", figures, BARS, {"runs": runs, "stress": stress, "truth": beside})
