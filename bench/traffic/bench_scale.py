# SPDX-License-Identifier: Apache-2.0
"""How many times the 12-producer pattern two CPUs can play and receive between two namespaces.

A scale is held when the 99th percentile of sent - scheduled over all messages is at most 1 ms and every
message arrives. The search doubles the scale until it is not held, then halves the gap; two of three runs
decide. The largest one that was held and its neighbour are then run by turns, and the medians decide.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from bench.lab.namespaces import Json, Program, receiver_cpu, sender_cpu
from bench.lab.options import Options, takes
from bench.lab.pair import Pair
from bench.lab.processes import last_object
from bench.lab.replay import LEAD_S, Run, daq_pattern, start_recv, start_send, write_plan
from bench.lab.report import RUNS_MIN, Bar, alternate, bucket_quantile, publish, say

PRODUCERS = 12
SCALE_MAX = 54
"""Ids of streams end at 6559."""
LATENESS_P99_MAX_NS = 1_000_000
WARMUP_MS = 2000
BARS = {"scale": Bar(8, at_least=True)}


@dataclass(frozen=True)
class Trial:
    """One run of a scale; `*_busy` is the share of its counted time that a CPU was not idle."""

    scale: int
    streams: int
    lateness_p99_ns: float
    expected: int
    missing: int
    offered_mbit_per_s: float
    sender_cpu_busy: float
    receiver_cpu_busy: float
    fault: str

    @property
    def held(self) -> bool:
        """Say whether the generator was on time and nothing was lost."""
        return self.lateness_p99_ns <= LATENESS_P99_MAX_NS and self.missing == 0 and not self.fault


def try_scale(pair: Pair, seconds: int, phase: str, scale: int) -> Trial:
    """Play the pattern at a scale."""
    run = Run(daq_pattern(), PRODUCERS, WARMUP_MS, seconds * 1000, phase=phase, scale=scale, grace_ms=2000)
    plan = write_plan(pair, run, lead_s=LEAD_S + 0.1 * scale)
    recv = start_recv(pair, plan)
    send = start_send(pair, plan)
    recv.wait_text('"counting"', LEAD_S + 0.1 * scale + WARMUP_MS / 1000 + 30)
    before = busy_ticks()
    recv.wait_text('"grace"', seconds + 30)
    after = busy_ticks()
    recv.process.wait(60.0)
    send.process.wait(30.0)
    received, sent = last_line(recv), last_line(send)
    streams: list[Json] = received["streams"]
    busy = {cpu: busy_share(before[cpu], after[cpu]) for cpu in after}
    lateness = [stream["sent_minus_scheduled"]["buckets"] for stream in streams]
    payload_bits = sum(stream["expected"] * stream["size_bytes"] * 8 for stream in streams)
    return Trial(
        scale=scale,
        streams=len(streams),
        lateness_p99_ns=merged_percentile(lateness, 0.99),
        expected=sum(stream["expected"] for stream in streams),
        missing=sum(stream["expected"] - stream["received"] for stream in streams),
        offered_mbit_per_s=payload_bits / seconds / 1e6,
        sender_cpu_busy=busy[sender_cpu()],
        receiver_cpu_busy=busy[receiver_cpu()],
        fault="; ".join([*received["invalid_reasons"], *sent["invalid_reasons"]]),
    )


def last_line(program: Program) -> Json:
    """Return the result of a tool, valid or not."""
    text = program.log.read_text()
    if not text or (result := last_object(text))["type"] != "result":
        raise RuntimeError(f"no result; stderr: {program.errors()}")
    return result


def merged_percentile(histograms: Sequence[Sequence[Sequence[float]]], share: float) -> float:
    """Return a percentile over several histograms: the upper end of the bucket that holds its rank.

    Args:
        histograms: Lists of [lowest value, width, count].
        share: 0.99 for the 99th percentile.
    """
    buckets = ((low + width, count) for histogram in histograms for low, width, count in histogram)
    return bucket_quantile(buckets, share)


def busy_ticks() -> dict[int, tuple[int, int]]:
    """Return for each CPU the ticks that it was busy, and all of them, since boot."""
    ticks: dict[int, tuple[int, int]] = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            values = [int(field) for field in fields[:8]]
            ticks[int(name[3:])] = (sum(values) - values[3] - values[4], sum(values))
    return ticks


def busy_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the busy share between two readings."""
    total = after[1] - before[1]
    return (after[0] - before[0]) / total if total else 0.0


def majority_holds(attempt: Callable[[int], Trial], scale: int) -> bool:
    """Run a scale until two runs agree."""
    held = [0, 0]
    while max(held) < 2:
        trial = attempt(scale)
        held[trial.held] += 1
        say(f"scale {scale}: {'held' if trial.held else 'not held'}: {trial}")
    return held[True] > held[False]


def search(attempt: Callable[[int], Trial]) -> int:
    """Return the largest scale that was held; 0: none."""
    held, not_held = 0, SCALE_MAX + 1
    scale = 1
    while not_held - held > 1:
        if majority_holds(attempt, scale):
            held = scale
        else:
            not_held = scale
        scale = min(2 * held, SCALE_MAX) if not_held > SCALE_MAX else (held + not_held) // 2
    return held


def median_of(trials: Sequence[Trial]) -> Trial:
    """Return the trial of the medians."""
    columns = [asdict(trial) for trial in trials]
    return Trial(**{key: statistics.median_low([column[key] for column in columns]) for key in columns[0]})


def explain(largest: Trial, beyond: Trial | None) -> str:
    """Say in words what limits the scale."""
    if beyond is None:
        return f"the ids of streams, which end at scale {SCALE_MAX}"
    reasons = [beyond.fault] if beyond.fault else []
    if beyond.missing:
        reasons.append(f"{beyond.missing} of {beyond.expected} messages do not arrive in time")
    if beyond.lateness_p99_ns > LATENESS_P99_MAX_NS:
        reasons.append(f"sent - scheduled p99 is {beyond.lateness_p99_ns / 1e6:.2f} ms")
    return (
        f"at scale {beyond.scale} ({beyond.offered_mbit_per_s:.0f} Mbit/s) "
        f"{' and '.join(reasons) or 'some runs fail'}; "
        f"CPU of the producers {beyond.sender_cpu_busy:.0%} busy, "
        f"of the consumer {beyond.receiver_cpu_busy:.0%}; "
        f"at scale {largest.scale} {largest.sender_cpu_busy:.0%} and {largest.receiver_cpu_busy:.0%}"
    )


@takes(
    seconds=(5, "counted time of each run"),
    runs=(RUNS_MIN, "runs of each scale that decides"),
    phase=("staggered", "phase of the pattern"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    with Pair(PRODUCERS * SCALE_MAX) as pair:
        attempt = partial(try_scale, pair, options.seconds, options.phase)
        held = search(attempt)
        trials: dict[int, list[Trial]] = {}
        while held > 0:
            scales = [scale for scale in (held, held + 1) if scale <= SCALE_MAX and scale not in trials]
            found = alternate({str(scale): partial(attempt, scale) for scale in scales}, options.runs)
            trials |= {int(name): runs for name, runs in found.items()}
            if median_of(trials[held]).held:
                break
            held -= 1
    detail: dict[str, object] = {"phase": options.phase}
    figures: dict[str, float] = {"scale": held}
    if held:
        largest = median_of(trials[held])
        limit = explain(largest, median_of(trials[held + 1]) if held + 1 in trials else None)
        say(f"limit: {limit}")
        kept = {scale: [asdict(trial) for trial in runs] for scale, runs in trials.items()}
        detail |= {"limit": limit, "trials": kept}
        figures |= {
            "streams": largest.streams,
            "offered_mbit_per_s": largest.offered_mbit_per_s,
            "lateness_p99_ns": largest.lateness_p99_ns,
            "sender_cpu_busy": largest.sender_cpu_busy,
            "receiver_cpu_busy": largest.receiver_cpu_busy,
        }
    return publish("scale", figures, BARS, detail)
