# SPDX-License-Identifier: Apache-2.0
"""What bw-clock adds to a reading that it records, and the memory that 32 million samples take.

cost    one recorded sample (clock_gettime between two readings of the processor's counter, its duration in
        the histogram) against the three bare readings. The tool lets blocks of both take turns.
memory  `compare` with 32 million samples and no pause: its memory at the end.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bench.lab.options import Options, takes
from bench.lab.processes import answer_of
from bench.lab.report import RUNS_MIN, Bar, alternate, medians, publish, say_runs
from hw.tools import local_tool

CLOCKS = ("realtime", "realtime-coarse")
"""The first one has the bar: the paper's program reads it."""
READS = 2_000_000
SAMPLES = 32_000_000
MIB = 2**20
BARS = {"recorded_ratio": Bar(1.4), "memory_mib": Bar(32)}

Figures = dict[str, float]


def run_tool(*arguments: str) -> dict[str, Any]:
    """Run bw-clock and return its result."""
    return answer_of([str(local_tool("bw-clock")), *arguments])


def measure_cost(clock: str, reads: int) -> Figures:
    """Return what a bare and a recorded reading cost."""
    result = run_tool("latency", "--clock", clock, "--cost", "--reads", str(reads))
    return {key: float(result[key]) for key in ("bare_ns", "recorded_ns", "ratio")}


def measure_memory(samples: int) -> Figures:
    """Return the memory of a comparison at its end, and what one sample of it took."""
    result = run_tool(
        *("compare", "--device", "realtime", "--reference", "tai", "--iterations", str(samples)),
        *("--pause-max-us", "0", "--series-interval-ms", "1"),
    )
    memory = result["memory"]
    return {
        "memory_mib": float(memory["rss_end_bytes"]) / MIB,
        "sample_ns": float(result["elapsed_ns"]) / samples,
    }


@takes(
    reads=(READS, "of each kind and run"),
    samples=(SAMPLES, "of the long run"),
    runs=(RUNS_MIN, "runs of each clock"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    results = alternate(
        {clock: partial(measure_cost, clock, options.reads) for clock in CLOCKS}, options.runs
    )
    memory = measure_memory(options.samples)
    figures: Figures = dict(memory)
    for clock, runs in results.items():
        prefix = "" if clock == CLOCKS[0] else "coarse_"
        for key, value in medians(runs).items():
            figures[prefix + key.replace("ratio", "recorded_ratio")] = value
    say_runs(results, ".2f")
    return publish("clock", figures, BARS, {"samples": options.samples, "runs": results})
