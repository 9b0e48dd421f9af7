# SPDX-License-Identifier: Apache-2.0
"""Does a poll by one clock of messages paced by another make the ramps that their rates say? Live.

The source of a ring is on the target and sends one message each 5 ms; the first node of the ring, a guest
with a clock of its own, looks for messages each 5 ms. Both clocks have rates that the bench gave them, so the
period of the ramps is known before the run: 5 ms by the difference of both. Then the node's clock is made
faster by 100 ppm, and the period has to follow.

as_given_period_off_percent    the period that is found is off by, the worst of all runs
changed_period_off_percent     likewise, with the changed rate
named_percent                  of all runs: the finding is a grid that drifts, and names both clocks
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from hw.open_bench import OpenBench
from hw.session import open_bench
from reports.control_loops.latencies import latencies_of
from reports.control_loops.ring_evidence import FOLDER, KnownPoll
from reports.latencies import Latencies
from reports.patterns.detect import detect
from reports.patterns.drift import known_rates, tested_for_drift
from reports.patterns.series import series_of
from reports.units import NS_PER_MS, NS_PER_S
from resources.control_loops.ring_trial import NODES, RingMessages, measure_ring, ring_nodes

BENCH = REPOSITORY / "hw" / "benches" / "virtual.yaml"
TARGET = "linux-rt"
RUNS_FOLDER = RESULTS / "drift"
POLLING, GRID_US, SIZE_BYTES = 1, 5000, 10
PERIODS = 4.6
"""Of which four at least are needed."""
FASTER_PPB = 100_000
BARS = {
    "as_given_period_off_percent": Bar(5),
    "changed_period_off_percent": Bar(5),
    "named_percent": Bar(100, at_least=True),
}


@contextmanager
def rate_set(bench: OpenBench, node: str, frequency_ppb: int, as_given_ppb: int) -> Generator[None]:
    """Have a guest's clock run at another rate while the context lasts."""
    tool = bench.tool(node, "bw-setclock")
    bench.node(node).run([tool, "--frequency-ppb", str(frequency_ppb)])
    try:
        yield
    finally:
        bench.node(node).run([tool, "--frequency-ppb", str(as_given_ppb)])


def given_ppb(bench: OpenBench, node: str) -> int:
    """Return the rate that the bench file gives a guest's clock."""
    for resource in bench.spec.labgrid_targets[node].get("resources", {}).values():
        if "clock_rate_ppb" in resource:
            return int(resource["clock_rate_ppb"])
    return 0


def one(bench: OpenBench, period_s: float, folder: Path) -> tuple[float | None, bool]:
    """Make a run and search it; return the period in s that was found, and whether both clocks are named."""
    count = round(PERIODS * period_s / (GRID_US / 1e6))
    messages = RingMessages(count, GRID_US, SIZE_BYTES, 1, poll=KnownPoll(POLLING, GRID_US))
    shutil.rmtree(folder, ignore_errors=True)
    target = bench.spec.targets[TARGET]
    measure_ring(bench, target, messages, folder / "evidence" / FOLDER / TARGET)
    series, problems = latencies_of(folder)
    for problem in problems:
        say(problem)
    hop = next(each for each in series if each.name == f"hop {POLLING}")
    return _searched(hop)


def _searched(hop: Latencies) -> tuple[float | None, bool]:
    assert hop.polled is not None
    rates = known_rates(hop.polled)
    at_s = (hop.at_ns - hop.at_ns[0]) / NS_PER_S
    found = detect(series_of(at_s, hop.value_ns / NS_PER_MS)).findings
    for each in (tested_for_drift(one, rates) for one in found):
        words = ", ".join(f"{name} {value.value:.5g}" for name, value in each.parameters.items())
        say(f"  {each.kind}: {words}; {each.says}")
        if each.kind in ("ramp", "drifting_grid"):
            names = hop.polled.source in each.says and hop.polled.poll in each.says
            return each.parameters["period"].value, names and each.kind == "drifting_grid"
    return None, False


@takes(runs=(5, "with the rates as given"), changed=(2, "with the changed rate"))
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    off_percent: dict[str, list[float]] = {"as_given": [], "changed": []}
    named: list[bool] = []
    with open_bench(BENCH) as bench:
        nodes = [node for node, _ in ring_nodes(bench.spec, bench.spec.targets[TARGET], NODES)]
        source, polling = nodes[0], nodes[POLLING]
        bench.power_on([source, polling])
        source_ppb, poll_ppb = given_ppb(bench, source), given_ppb(bench, polling)
        for kind, runs, extra_ppb in (
            ("as_given", options.runs, 0),
            ("changed", options.changed, FASTER_PPB),
        ):
            period_s = GRID_US * 1000 / abs(source_ppb - poll_ppb - extra_ppb)
            with rate_set(bench, polling, poll_ppb + extra_ppb, poll_ppb):
                for number in range(runs):
                    say(f"{kind}, run {number + 1} of {runs}: ramps of {period_s:.2f} s are due")
                    found_s, is_named = one(bench, period_s, RUNS_FOLDER / f"{kind}-{number}")
                    off = 100.0 if found_s is None else 100 * abs(found_s / period_s - 1)
                    off_percent[kind].append(off)
                    named.append(is_named)
    figures = {f"{kind}_period_off_percent": max(off, default=0.0) for kind, off in off_percent.items()}
    figures |= {"named_percent": 100 * sum(named) / len(named), "runs": len(named)}
    return publish("drift", figures, BARS, {"stolen_ms": steal_ms() - stolen_ms, "off_percent": off_percent})
