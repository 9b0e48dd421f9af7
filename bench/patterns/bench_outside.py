# SPDX-License-Identifier: Apache-2.0
"""Was it the target, or the machine below? timerlat's split of late wake-ups against who made them. Live.

A guest's virtual processor is held up by a thread of the host that outranks it, and a thread of the guest
outranks its timerlat thread, for 2 to 50 ms each, in an order drawn from a seed. The plan is written first;
both say by their own clocks when they began and ended, at the end, so that they do nothing else meanwhile.
The emulator's own monitor could halt the guest, but then the guest's clock would stop, too.

right_percent        of all: the latest wake-up meanwhile is put down to the right side
length_percent       of all: that side has the length of what was done, within 1 ms and a tenth of it
charged_pauses       pauses of which the larger part is put down to the guest
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from hw.bench import SWITCH, TargetSpec
from hw.open_bench import OpenBench
from hw.protocols import Job
from hw.session import open_bench
from reports.rt_baseline.timerlat import FOLDER as TIMERLAT_FOLDER
from reports.rt_baseline.timerlat import Split, splits_of
from reports.rt_baseline.traced import WITNESS, load_meanwhile, whole_recording
from reports.units import NS_PER_MS, NS_PER_S
from resources.rt_baseline.traced_trial import AskedTraces, Traces, measure_traces

BENCH = REPOSITORY / "hw" / "benches" / "virtual.yaml"
FOLDER = RESULTS / "outside"
Side = Literal["inside", "outside"]
SIDES: tuple[Side, ...] = ("inside", "outside")
SHORTEST_MS, LONGEST_MS = 2.0, 50.0
APART_S, STARTING_S, BEHIND_S = 0.5, 8.0, 4.0
OF_ONE_RECORDING = 24
"""So that the kernel has room for its events."""
ABOVE_TIMERLAT, ABOVE_EMULATORS = 98, 70
OFF_MS, OFF_SHARE = 1.0, 0.1
HELD_UP = """
import os, sys, time
started, done = time.monotonic(), []
for word in sys.argv[1:]:
    at_s, length_ns = word.split(":")
    time.sleep(max(0.0, started + float(at_s) - time.monotonic()))
    begin = now = time.time_ns()
    while now < begin + int(length_ns):
        now = time.time_ns()
    done.append('{"begin_ns":%d,"end_ns":%d}' % (begin, now))
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
print(*done, sep="\\n")
"""
BARS = {
    "right_percent": Bar(95, at_least=True),
    "length_percent": Bar(95, at_least=True),
    "charged_pauses": Bar(0),
}


@dataclass(frozen=True, slots=True)
class Planned:
    """What is done at a moment from the start on."""

    side: Side
    at_s: float
    length_ms: float


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, by the clock of the guest, in ns; of a pause of the host's, widened by no more than U.

    Attributes:
        u_ns: What begin and end are unsure of.
    """

    side: Side
    begin_ns: int
    end_ns: int
    u_ns: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """How the latest wake-up meanwhile was split.

    Attributes:
        done_ns: How long it really was.
        says: Empty: no wake-up was late.
        part_ns: What the right side has of it.
        charged_ns: What threads, interrupts and softirqs of the guest have.
    """

    side: Side
    done_ns: int
    says: Side | Literal[""]
    part_ns: int
    charged_ns: int

    @property
    def is_long_enough(self) -> bool:
        """Say whether the right side has the true length."""
        return abs(self.part_ns - self.done_ns) <= OFF_MS * NS_PER_MS + OFF_SHARE * self.done_ns


def planned(each_side: int, seed: int) -> list[Planned]:
    """Draw what is done: so much of each side, lengths by their logarithms."""
    rng = random.Random(seed)
    order: list[Side] = [side for side in SIDES for _ in range(each_side)]
    rng.shuffle(order)
    low, high = math.log(SHORTEST_MS), math.log(LONGEST_MS)
    return [
        Planned(
            side,
            STARTING_S + (number % OF_ONE_RECORDING) * APART_S + rng.uniform(0, APART_S / 4),
            math.exp(rng.uniform(low, high)),
        )
        for number, side in enumerate(order)
    ]


def judge(done: Done, splits: Sequence[Split]) -> Judged:
    """Say how the wake-up is split that what was done kept waiting longest."""

    def common_ns(split: Split) -> int:
        begin_ns = max(done.begin_ns - done.u_ns, split.end_ns - split.late_ns)
        return min(done.end_ns + done.u_ns, split.end_ns) - begin_ns

    length_ns = done.end_ns - done.begin_ns
    split = max(splits, key=common_ns, default=None)
    if split is None or common_ns(split) <= 0:
        return Judged(done.side, length_ns, "", 0, 0)
    charged_ns = split.irq_ns + split.softirq_ns + split.thread_ns
    says = "outside" if split.outside_ns > charged_ns else "inside"
    part_ns = split.outside_ns if done.side == "outside" else split.thread_ns
    return Judged(done.side, length_ns, says, part_ns, charged_ns)


def _hold_up(bench: OpenBench, target: TargetSpec, side: Side, plan: Sequence[Planned], folder: Path) -> Job:
    """Start what keeps the target's processor from its timerlat thread, on one side."""
    words = [f"{each.at_s:.4f}:{round(each.length_ms * NS_PER_MS)}" for each in plan if each.side == side]
    if side == "inside":
        node, how = bench.node(target.node), ["chrt", "--fifo", str(ABOVE_TIMERLAT)]
    else:
        threads = bench.virtual.emulating_threads(target.node)
        cpu = min(os.sched_getaffinity(next(tid for name, tid in threads.items() if name.startswith("vcpu"))))
        node = bench.node(SWITCH)
        how = ["taskset", "--cpu-list", str(cpu), "chrt", "--fifo", str(ABOVE_EMULATORS)]
    return node.start([*how, "python3", "-c", HELD_UP, *words], folder / side)


def record(bench: OpenBench, target: TargetSpec, plan: Sequence[Planned], folder: Path) -> list[Judged]:
    """Record a part of the plan, and judge it; an entry that nobody came to counts as not found."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps([[each.side, each.at_s, each.length_ms] for each in plan]))
    lasts_s = math.ceil(plan[-1].at_s + BEHIND_S)
    with ExitStack() as running:
        jobs: dict[Side, Job] = {}
        for side in SIDES:
            jobs[side] = _hold_up(bench, target, side, plan, folder)
            running.callback(jobs[side].stop)
        traces: Traces = measure_traces(bench, target, AskedTraces(0, lasts_s), folder)
        said = {side: jobs[side].fetch().read_text().splitlines() for side in SIDES}
    if isinstance(traces.split, Exception):
        raise traces.split
    place = folder / TIMERLAT_FOLDER
    meanwhile = load_meanwhile(place, "guest")
    low, high = meanwhile.offsets_ns or (0, 0)
    tai_utc_ns = json.loads((place / WITNESS).read_text().splitlines()[0])["tai_utc_s"] * NS_PER_S
    splits = [each for ring in whole_recording(place).rings.values() for each in splits_of(ring, meanwhile)]
    judged: list[Judged] = []
    for side in SIDES:
        offset_ns, u_ns = ((low + high) // 2, (high - low) // 2) if side == "outside" else (0, 0)
        for line in map(json.loads, said[side]):
            begin_ns, end_ns = (line[name] + tai_utc_ns + offset_ns for name in ("begin_ns", "end_ns"))
            judged.append(judge(Done(side, begin_ns, end_ns, u_ns), splits))
    return judged


def figures_of(judged: Sequence[Judged], asked: int) -> dict[str, float]:
    """Return the figures; what was planned and not done counts as not found."""
    figures: dict[str, float] = {
        "right_percent": 100 * sum(each.says == each.side for each in judged) / asked,
        "length_percent": 100 * sum(each.is_long_enough for each in judged) / asked,
        "charged_pauses": sum(each.side == "outside" and each.says == "inside" for each in judged),
        "done": len(judged),
    }
    for side in SIDES:
        own = [each for each in judged if each.side == side]
        figures[f"{side}_right"] = sum(each.says == side for each in own)
        figures[f"{side}_length_right"] = sum(each.is_long_enough for each in own)
    return figures


@takes(
    each_side=(60, "of pauses, and of threads"),
    seed=(1, "of order and lengths"),
    bench=(BENCH, "file of the bench"),
    target=("linux-rt", "a guest"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    plan = planned(options.each_side, options.seed)
    judged: list[Judged] = []
    with open_bench(options.bench) as bench:
        target = bench.spec.targets[options.target]
        bench.power_on([target.node])
        for first in range(0, len(plan), OF_ONE_RECORDING):
            part = plan[first : first + OF_ONE_RECORDING]
            say(f"{first + len(part)} of {len(plan)}")
            found = record(bench, target, part, FOLDER / f"{first:03}")
            for each in found:
                length_ms, part_ms = each.done_ns / NS_PER_MS, each.part_ns / NS_PER_MS
                charged_ms = each.charged_ns / NS_PER_MS
                say(f"  {each.side}: {length_ms:.2f} ms; {each.says}: {part_ms:.2f}; guest {charged_ms:.2f}")
            judged += found
    detail = {"stolen_ms": steal_ms() - stolen_ms, "judged": [list(_row(each)) for each in judged]}
    return publish("outside", figures_of(judged, len(plan)), BARS, detail)


def _row(each: Judged) -> tuple[object, ...]:
    return each.side, each.done_ns, each.says, each.part_ns, each.charged_ns
