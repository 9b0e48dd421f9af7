# SPDX-License-Identifier: Apache-2.0
"""Is the verdict between network stacks right, live? One stack under two names, and one that was made late.

The native bench, as `robot/stacks` in profile `ci` has it: twelve rounds, idle. The second stack is the first
once more, or the first whose reader wakes up later by a known time: a library for LD_PRELOAD makes it so.

claimed_runs    of runs of one stack those in which any comparison claims a difference
late_missed     of runs of the late one those in which the median of its small messages (type 3) is not
                claimed as the slower
late_outside    the same of whose interval does not hold the time that was put in
late_error_us   largest distance from it
ranking_changes of claims of one pair, condition, type and statistic in the late runs, those on the other side
inconclusive    comparisons of all runs without a verdict
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bench.lab.compiler import compile_c
from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from hw.session import Bench, open_bench
from reports.stacks.compare import Compared
from reports.stacks.verdict import load_comparison
from resources.daq_replay.pattern import load_pattern
from resources.daq_replay.plan import ReplaySettings
from resources.network_stack import NetworkStack, network_stack_of
from resources.profiles import times_of
from resources.stacks.settings import TIMES, stack_times
from resources.stacks.turns import AskedTurns, TurnMaker

BENCH = REPOSITORY / "hw" / "benches" / "native.yaml"
PATTERN = REPOSITORY / "traffic-gen" / "patterns" / "daq12.toml"
FOLDER = RESULTS / "stacks_live"
TARGET, PHASE, PROFILE = "linux", "aligned-12", "ci"
LATE_US, LATE_TYPE = 50, "type 3"
BARS = {
    "claimed_runs": Bar(0),
    "late_missed": Bar(0),
    "late_outside": Bar(0),
    "ranking_changes": Bar(0),
}


def compared(bench: Bench, stacks: tuple[NetworkStack, ...], seed: int, place: Path) -> list[Compared]:
    """Let stacks carry the pattern by turns, and compare them."""
    times = times_of(PROFILE, TIMES, stack_times)
    settings = ReplaySettings(
        PATTERN, PHASE, warmup_ms=times.warmup_ms, duration_ms=times.duration_ms, grace_ms=times.grace_ms
    )
    maker = TurnMaker(bench, bench.spec.targets[TARGET], place, lambda _line: None)
    maker.run(AskedTurns(stacks, load_pattern(PATTERN, PHASE), settings, times, seed))
    return list(load_comparison(place).compared)


def told(found: list[Compared]) -> None:
    """Say the verdicts on medians."""
    for each in found:
        if each.statistic == "median":
            say(f"  {each.pair}, {each.stream_type}: {each.words}")


def late_of(found: list[Compared]) -> Compared:
    """Return the comparison by which the late stack is judged."""
    return next(each for each in found if (each.stream_type, each.statistic) == (LATE_TYPE, "median"))


def changes(runs: list[list[Compared]]) -> int:
    """Return how many claims of the same comparison stand on the other side than most."""
    sides: dict[tuple[str, str, str, str], list[bool]] = {}
    for each in (one for run in runs for one in run if one.is_claimed and one.difference is not None):
        key = each.pair, each.condition, each.stream_type, each.statistic
        sides.setdefault(key, []).append((each.difference or 0) > 0)
    return sum(min(side.count(True), side.count(False)) for side in sides.values())


def figures_of(same: list[list[Compared]], late: list[list[Compared]]) -> Mapping[str, float]:
    """Return the figures of both kinds of runs."""
    own = [late_of(run) for run in late]
    off_us = [abs(each.difference / 1000 - LATE_US) for each in own if each.difference is not None]
    outside = [
        each
        for each in own
        if each.difference is None or abs(each.difference - 1000 * LATE_US) > each.expanded
    ]
    return {
        "claimed_runs": sum(any(each.is_claimed for each in run) for run in same),
        "late_missed": sum(not each.is_claimed or (each.difference or 0) <= 0 for each in own),
        "late_outside": len(outside),
        "late_error_us": max(off_us, default=float("nan")),
        "late_u_us": statistics.median(each.expanded / 1000 for each in own) if own else float("nan"),
        "ranking_changes": changes(late),
        "inconclusive": sum(bool(each.doubt) for run in (*same, *late) for each in run),
    }


@takes(
    runs=(10, "of one stack under two names, and as many of the late one"),
    first_seed=(1, "of the order of turns"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    library = compile_c(Path(__file__).with_name("late.c"), FOLDER / "late.so", "-shared", "-fPIC")
    runs: dict[str, list[list[Compared]]] = {"again": [], "late": []}
    before_ms = steal_ms()
    with open_bench(BENCH) as bench:
        kernel = network_stack_of(bench.spec.targets[TARGET], "kernel")
        other = {
            "again": replace(kernel, name="again"),
            "late": replace(
                kernel, name="late", preload=(str(library),), environment={"LATE_US": str(LATE_US)}
            ),
        }
        bench.power_on({TARGET, *(each.node for each in bench.spec.producers.values())})
        for number in range(options.runs):
            for name, stack in other.items():
                began_s = time.monotonic()
                place = FOLDER / f"{name}-{number}"
                found = compared(bench, (kernel, stack), options.first_seed + number, place)
                runs[name].append(found)
                say(f"{name} {number + 1} of {options.runs}: {time.monotonic() - began_s:.0f} s")
                told(found)
    figures = {**figures_of(runs["again"], runs["late"]), "stolen_ms": steal_ms() - before_ms}
    for name, value in figures.items():
        say(f"{name:20} {value:.3g}")
    return publish("stacks_live", figures, BARS, {**vars(options), "late_us": LATE_US})
