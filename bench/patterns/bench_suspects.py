# SPDX-License-Identifier: Apache-2.0
"""Is the cause of late messages named, and in its amount? Causes laid over what a real kernel recorded.

A guest with PREEMPT_RT is source and sink of a ring, and its kernel records who has its processor. Messages
are those that came: from the interrupt's thread to the end of the run of the thread that reads. A cause is
laid over these, at instants that are known, of 2 to 30 ms and of a period of 0.2 to 2 s, regular or not, and
beside it delays of which nobody has a record. What becomes of a message then is worked out by
bench/patterns/overlay.py, which shares no code with the suspects.

share_within_10_percent    traces in which what the cause explains is within 10 points of the truth
named_percent              of traces in which the cause made more than 75 % of the excess: it alone is named
half_named_percent         of traces in which it made less than 40 %: something is named
stranger_named_percent     of traces in which something else of the same period, at another phase, was active,
                           and no cause was recorded: something is named
trace_s                    median time to judge one
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from bench.patterns.overlay import Overlaid, Scene, Spans, lay_over
from hw.session import open_bench
from reports.patterns.kernel_activity import kernel_activities
from reports.patterns.suspects import Activity, Finding, Stay, suspects
from reports.timeline.kernel_recording import Recording, load_recording
from resources.control_loops.ring_trial import RingMessages, measure_ring
from resources.tools.kernel_recorder import SCHEDULING, KernelEvents, kernel_recorded

FOLDER = RESULTS / "suspects"
BENCH = REPOSITORY / "hw" / "benches" / "virtual.yaml"
TARGET = "linux-rt"
READER = "thread roundtrip"
COUNT, INTERVAL_US = 8000, 2500
NAME, STRANGER = "thread nobody-knows", "thread stranger"
NS_PER_MS = 1_000_000
BARS = {
    "share_within_10_percent": Bar(95, at_least=True),
    "named_percent": Bar(95, at_least=True),
    "half_named_percent": Bar(1),
    "stranger_named_percent": Bar(1),
}


def record(place: Path) -> Path:
    """Record a ring's target; return the file."""
    place.mkdir(parents=True, exist_ok=True)
    file = place / "kernel-ring.gz"
    with open_bench(BENCH) as bench:
        target = bench.spec.targets[TARGET]
        bench.power_on([target.node])
        with kernel_recorded(bench.node(target.node), KernelEvents(SCHEDULING, 32_768)) as recorder:
            measure_ring(bench, target, RingMessages(COUNT, INTERVAL_US, 10, 2), place / "ring")
            dropped = recorder.end(file)
        say(f"recorded {TARGET}: {file.stat().st_size >> 10} KiB, dropped {dropped}")
    return file


def scene_of(recording: Recording, reader: str) -> Scene:
    """Return the messages that a thread read, and what was active; the first second is left out."""
    activities, _ = kernel_activities("t", recording)
    active = {
        each.name: list(zip(each.begin_ns.tolist(), each.end_ns.tolist(), strict=True)) for each in activities
    }
    came = np.array(
        sorted(begin for name in active if name.startswith("thread irq/") for begin, _ in active[name])
    )
    read = np.array(active[reader], np.int64)[:, 1]
    before = np.searchsorted(came, read) - 1
    whole = before >= 0
    came, read = came[before[whole]], read[whole]
    late = read - came < 20 * np.median(read - came)
    first = int(came[0])
    return Scene(
        came[late] - first,
        read[late] - first,
        {n: [(a - first, b - first) for a, b in s] for n, s in active.items()},
    )


def drawn(rng: np.random.Generator, end_ns: int, long_ns: int, period_ns: int, jitter: float) -> Spans:
    """Return spans of a cause, each within its own period."""
    found: Spans = []
    for at in range(int(rng.integers(0, period_ns)), end_ns - 2 * period_ns, period_ns):
        begin = at + int(rng.uniform(0, jitter) * (period_ns - 2 * long_ns))
        found.append((begin, begin + long_ns))
    return found


def judge(found: Overlaid) -> tuple[Finding, float]:
    """Judge a trace as a user's would be, late is what is far above the middle; return the true share, too.

    Some of the recorded messages are late by themselves: their excess is of none that was laid over.
    """
    scene = found.scene
    took = (scene.read_ns - scene.came_ns).astype(np.float64)
    level = float(np.median(took))
    late = took - level > max(NS_PER_MS, 10 * float(np.median(np.abs(took - level))))
    activities = [
        Activity(name, "t", *(np.array(each, np.int64) for each in zip(*spans, strict=True)))
        for name, spans in scene.active.items()
        if spans
    ]
    truth = float(found.due_ns[late].sum() / (took - level)[late].sum())
    return suspects(took - level, late, [Stay("t", scene.came_ns, scene.read_ns)], activities), truth


def one(base: Scene, rng: np.random.Generator) -> tuple[Overlaid, bool]:
    """Return a trace, and whether it has a cause or a stranger alone."""
    long_ns = int(rng.uniform(2, 30) * NS_PER_MS)
    period_ns = int(max(rng.uniform(200, 2000) * NS_PER_MS, 8 * long_ns))
    jitter = float(rng.choice([0.0, 0.0, 0.5]))
    cause = drawn(rng, base.end_ns, long_ns, period_ns, jitter)
    if rng.random() < 0.5:
        hidden_ns = int(long_ns * rng.uniform(0, 1.2))
        hidden = (
            [(a + period_ns // 2, a + period_ns // 2 + hidden_ns) for a, _ in cause]
            if hidden_ns > NS_PER_MS
            else []
        )
        return lay_over(base, NAME, cause, hidden), True
    off_ns = int(rng.uniform(long_ns * 1.5, period_ns - long_ns * 1.5))
    away = [(a + off_ns, b + off_ns) for a, b in cause]
    laid = lay_over(base, STRANGER, away)
    return lay_over(laid.scene, NAME, [], cause), False


@takes(
    traces=(500, "that are judged"),
    seed=(1, "of what is drawn"),
    recording=("", "a kernel's recording of an earlier run, instead of a new one"),
    reader=(READER, "thread that reads, as it is named there"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    file = Path(options.recording) if options.recording else record(FOLDER)
    base = scene_of(load_recording(file), options.reader)
    say(f"{len(base.came_ns)} messages in {base.end_ns / 1e9:.0f} s; {len(base.active)} activities")
    rng = np.random.default_rng(options.seed)
    within: list[bool] = []
    named: list[bool] = []
    half: list[bool] = []
    strangers: list[bool] = []
    times: list[float] = []
    for number in range(options.traces):
        laid, has_cause = one(base, rng)
        began_s = time.perf_counter()
        found, truth = judge(laid)
        times.append(time.perf_counter() - began_s)
        if not has_cause:
            strangers.append(bool(found.named))
            if found.named:
                say(f"trace {number}: named {found.named}")
            continue
        share = next((each.share for each in found.seen if each.name == NAME), 0.0)
        within.append(abs(share - truth) <= 0.1)
        if not within[-1]:
            say(f"trace {number}: {share:.2f} of {truth:.2f}, {found.groups} groups")
        if truth > 0.75:
            named.append([each.name for each in found.named] == [NAME])
            if not named[-1]:
                say(f"trace {number}: {truth:.2f} in truth, named {found.named}; first {found.seen[:1]}")
        elif truth < 0.4:
            half.append(bool(found.named))
    figures = {
        "share_within_10_percent": 100 * statistics.mean(within),
        "named_percent": 100 * statistics.mean(named),
        "half_named_percent": 100 * statistics.mean(half) if half else 0.0,
        "stranger_named_percent": 100 * statistics.mean(strangers),
        "traces": options.traces,
        "trace_s": statistics.median(times),
    }
    return publish("suspects", figures, BARS, {"stolen_ms": steal_ms() - stolen_ms})
