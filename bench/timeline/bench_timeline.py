# SPDX-License-Identifier: Apache-2.0
"""Is a place on the timeline where it says? Clocks that are known exactly, in scenes that were drawn.

Scenes are those of bench/timeline/scenes.py, each from its seed. Every event of every node is placed by the
readings of its clock alone, and held against the truth. What is counted:

inside_u_share          events whose error is no more than U
outside_bound           events beyond the hard interval
median_error_by_u       median of |error| / U, of each node; the median of the nodes: a padded U is seen here
steps_named_share       steps and stopped counters that lie inside a break, at most an exchange wider
false_breaks            breaks of nodes to which nothing happened
unplaced_share          events without a place
clean_certain           scenes with messages between all nodes, all clocks right, that contradict for certain
clean_likely_share      the same, likely so
shift_found_share       scenes in which one node's readings are wrong by more than the bounds of both ends and
                        the way allow, that are called contradictory for certain
shift_named_share       of those with three nodes and more: that node, and no other one, is named
small_shift_certain     scenes with a shift below the least way alone that are called so
place_1e7_s             median time in which 10^7 events of four nodes are placed and brought into one order,
                        and the messages between them looked through for contradictions; from arrays in memory
babeltrace2_s           median time in which babeltrace2 reads the same events from a trace of ours, in CTF,
                        merges them and throws them away (its own start and the decoding are in it)
babeltrace2_ratio       the former by the latter, by turns
peak_memory_bytes       largest resident memory of a process that does the former, and has made its events
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.processes import answer_of
from bench.lab.report import RUNS_MIN, Bar, alternate, median_ratio, publish, say
from bench.timeline.many_events import EVENTS
from bench.timeline.scenes import LEAST_WAY_NS, SimulatedNode, messages, scene
from reports.timeline.contradictions import Messages, causality
from reports.timeline.global_time import GlobalTime

SCENES = 500
BARS = {
    "inside_u_share": Bar(0.95, at_least=True),
    "outside_bound": Bar(0),
    "median_error_by_u": Bar(1 / 20, at_least=True),
    "steps_named_share": Bar(1.0, at_least=True),
    "false_breaks": Bar(0),
    "clean_certain": Bar(0),
    "clean_likely_share": Bar(0.02),
    "shift_found_share": Bar(1.0, at_least=True),
    "shift_named_share": Bar(0.99, at_least=True),
    "small_shift_certain": Bar(0),
    "babeltrace2_ratio": Bar(0.5),
    "peak_memory_bytes": Bar(2e9),
}


class Tally:
    """What the nodes of all scenes come to."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.events = self.placed = self.inside = self.outside = 0
        self.steps = self.named = self.false_breaks = 0
        self.error_by_u: list[float] = []

    def add(self, node: SimulatedNode) -> None:
        """Place the events of a node, and hold them against the truth."""
        clock = GlobalTime(node.record)
        places = clock.place(node.events_local_ns)
        known, truth = places.known, node.events_tai_ns
        error = np.abs(places.tai_ns - truth)
        self.events += known.size
        self.placed += int(known.sum())
        self.inside += int((known & (error <= places.u_ns)).sum())
        self.outside += int((known & ((truth < places.earliest_ns) | (truth > places.latest_ns))).sum())
        if known.any():
            self.error_by_u.append(float(np.median(error[known] / np.maximum(places.u_ns[known], 1))))
        if node.step is None:
            self.false_breaks += len(clock.breaks)
            return
        self.steps += 1
        at_ns, size_ns = node.step
        until_ns = at_ns + (-size_ns if node.record.is_counter else 0)
        [*found] = clock.breaks
        self.named += len(found) == 1 and found[0].from_tai_ns <= at_ns and until_ns <= found[0].to_tai_ns

    def figures(self) -> dict[str, float]:
        """Return the figures."""
        return {
            "inside_u_share": self.inside / self.placed,
            "outside_bound": float(self.outside),
            "median_error_by_u": float(np.median(self.error_by_u)),
            "steps_named_share": self.named / self.steps if self.steps else 1.0,
            "false_breaks": float(self.false_breaks),
            "unplaced_share": 1 - self.placed / self.events,
        }


class Contradictions:
    """What messages between the nodes of all scenes come to, with the clocks right, and with one wrong."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.scenes = self.clean_certain = self.clean_likely = self.small_certain = 0
        self.found = self.named = self.of_three = 0

    def add(self, nodes: Sequence[SimulatedNode], seed: int) -> None:
        """Send messages between the nodes of a scene to which nothing has happened."""
        nodes = [node for node in nodes if node.step is None]
        if len(nodes) < 2:
            return
        rng = np.random.default_rng(seed)
        wrong, sign = nodes[rng.integers(len(nodes))].record.node, 1 if rng.random() < 0.5 else -1
        right = messages(nodes, seed, {})
        clean = causality(right)
        small = causality(messages(nodes, seed, {wrong: sign * (LEAST_WAY_NS - 1)}))
        far_ns = max(_most_ns(each) for each in right if wrong in (each.sender, each.receiver))
        shifted = causality(messages(nodes, seed, {wrong: sign * (far_ns + 1)}))
        self.scenes += 1
        self.clean_certain += clean.is_certain
        self.clean_likely += bool(clean.contradictions) and not clean.is_certain
        self.small_certain += small.is_certain
        self.found += shifted.is_certain
        self.of_three += len(nodes) > 2
        self.named += len(nodes) > 2 and shifted.suspects == (wrong,)

    def figures(self) -> dict[str, float]:
        """Return the figures."""
        return {
            "clean_certain": float(self.clean_certain),
            "clean_likely_share": self.clean_likely / self.scenes,
            "shift_found_share": self.found / self.scenes,
            "shift_named_share": self.named / self.of_three,
            "small_shift_certain": float(self.small_certain),
        }


def _most_ns(each: Messages) -> int:
    """Return the largest sum of both bounds and the way of a direction's messages."""
    sum_ns = each.sent.bound_ns + each.received.bound_ns + each.received.tai_ns - each.sent.tai_ns
    return int(sum_ns[each.sent.known & each.received.known].max())


def place_many(runs: int) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Return the figures of 10^7 events, ours and babeltrace2's by turns, and the seconds of each run."""
    argv = [sys.executable, "-m", "bench.timeline.many_events"]
    peaks: list[float] = []

    def ours() -> float:
        answer = answer_of(argv)
        assert answer["events"] == EVENTS
        peaks.append(answer["peak_bytes"])
        return answer["took_s"]

    def theirs(trace: Path) -> float:
        begin = time.perf_counter()
        subprocess.run(["babeltrace2", "--output-format=dummy", str(trace)], check=True)
        return time.perf_counter() - begin

    with TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        answer_of([*argv, str(trace)])
        took_s = alternate({"ours": ours, "babeltrace2": lambda: theirs(trace)}, runs)
    figures = {
        "place_1e7_s": statistics.median(took_s["ours"]),
        "babeltrace2_s": statistics.median(took_s["babeltrace2"]),
        "babeltrace2_ratio": median_ratio(took_s["ours"], took_s["babeltrace2"]),
        "peak_memory_bytes": max(peaks),
    }
    return figures, took_s


@takes(scenes=(SCENES, "scenes"), seed=(0, "of the first one"), runs=(RUNS_MIN, "turns with 10^7 events"))
def main(options: Options) -> int:
    """Run the benchmark."""
    tally, contradictions = Tally(), Contradictions()
    for seed in range(options.seed, options.seed + options.scenes):
        nodes = scene(seed)
        for node in nodes:
            tally.add(node)
        contradictions.add(nodes, seed)
    many, took_s = place_many(options.runs)
    figures = tally.figures() | contradictions.figures() | many
    say(f"{tally.events} events of {len(tally.error_by_u)} nodes, {tally.steps} of them with a step")
    detail = {"scenes": options.scenes, "seed": options.seed, "runs_s": took_s}
    return publish("timeline", figures, BARS, detail)
