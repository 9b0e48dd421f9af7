# SPDX-License-Identifier: Apache-2.0
"""Is the cause of late messages found that was put in, and none where nobody can know? Live, on PREEMPT_RT.

A ring goes round from a guest whose kernel is recorded, while one of bench/patterns/injectors.py makes its
messages late; what it did is read once a run is judged, and it is judged a second time without the guilty
part of its evidence.

right_first_percent       of runs with late messages that were put in: the guilty one is named first
wrong_percent             of all runs: something is named that did nothing
without_percent           of the same runs without the guilty evidence: nothing is named
nothing_named_percent     of runs in which nothing was done: something is named
"""

from __future__ import annotations

import random
import shutil
import statistics
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from bench.patterns.injectors import INJECTORS, Injected, injected
from hw.bench import TargetSpec
from hw.open_bench import OpenBench
from hw.session import open_bench
from reports.causes.suspects import Finding
from reports.control_loops.ring import load_ring
from reports.control_loops.ring_suspects import ring_suspects
from resources.control_loops.ring_trial import RingMessages, measure_ring

FOLDER = RESULTS / "causes"
BENCH = REPOSITORY / "hw" / "benches" / "virtual.yaml"
TARGET = "linux-rt"
INTERVAL_US, SIZE_BYTES = 5000, 10
STARTING_S = 20.0
BARS = {
    "right_first_percent": Bar(90, at_least=True),
    "wrong_percent": Bar(2),
    "without_percent": Bar(95, at_least=True),
}


def one(
    bench: OpenBench, target: TargetSpec, kind: str, seed: int, count: int, folder: Path
) -> dict[str, float | str]:
    """Make a run, and judge it; return what is so, 0 or 1, with its kind."""
    lasts_s = count * INTERVAL_US / 1e6 + STARTING_S
    messages = RingMessages(count, INTERVAL_US, SIZE_BYTES, 2, kernel_events=True)
    shutil.rmtree(folder, ignore_errors=True)
    with injected(kind, bench, target, random.Random(seed), folder, lasts_s) as done:
        measure_ring(bench, target, messages, folder)
    found = ring_suspects(load_ring(folder), folder)
    return {"kind": kind, **_outcome(done, found, folder)}


def _outcome(done: Injected, found: Finding | None, folder: Path) -> dict[str, float]:
    named = [each.name for each in found.named] if found else []
    shown = [f"{each.name} {each.share:.2f} ({each.chance:.4f})" for each in found.seen[:4]] if found else []
    say(f"{done.kind}: late in {found.groups if found else 0} groups; named {named}; seen {shown}")
    if not done.guilty:
        return {"named": float(bool(named))}
    if found is None:
        say(f"{done.kind}: no message was late")
        return {}
    wrong = [each for each in named if not each.startswith(done.guilty)]
    innocent = ring_suspects(load_ring(folder), folder, done.guilty)
    say(f"  guilty: {done.guilty}; without: {[each.name for each in innocent.named] if innocent else []}")
    return {
        "right": float(bool(named) and named[0].startswith(done.guilty)),
        "wrong": float(bool(wrong)),
        "without": float(not (innocent and innocent.named)),
    }


@takes(
    runs=(10, "of each cause"),
    count=(3000, "messages of a run"),
    causes=(",".join(INJECTORS), "which, in this form"),
    seed=(1, "of order and causes"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    rng = random.Random(options.seed)
    order = [kind for kind in options.causes.split(",") for _ in range(options.runs)]
    rng.shuffle(order)
    results: list[dict[str, float | str]] = []
    with open_bench(BENCH) as bench:
        target = bench.spec.targets[TARGET]
        bench.power_on([target.node])
        for number, kind in enumerate(order):
            say(f"run {number + 1} of {len(order)}")
            folder = FOLDER / f"{number:03}"
            results.append(one(bench, target, kind, rng.randrange(1 << 30), options.count, folder))

    def percent(key: str) -> float:
        found = [float(each[key]) for each in results if key in each]
        return 100 * statistics.mean(found) if found else 0.0

    figures = {
        "right_first_percent": percent("right"),
        "wrong_percent": percent("wrong"),
        "without_percent": percent("without"),
        "nothing_named_percent": percent("named"),
        "runs": len(results),
        "judged": sum("right" in each for each in results),
    }
    return publish("causes", figures, BARS, {"stolen_ms": steal_ms() - stolen_ms, "runs": results})
