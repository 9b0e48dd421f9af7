# SPDX-License-Identifier: Apache-2.0
"""Peak resident memory of the consumer: a run ten times longer may need 1 MiB more at most."""

from __future__ import annotations

import time
from functools import partial

from bench.lab.options import Options, takes
from bench.lab.pair import Pair
from bench.lab.processes import peak_resident_bytes
from bench.lab.replay import LEAD_S, Run, answer, daq_pattern, start_recv, start_send, write_plan
from bench.lab.report import RUNS_MIN, Bar, alternate, medians, publish

PRODUCERS, SCALE = 12, 4
WARMUP_MS = 2000
LONGER = 10
BARS = {"memory_growth_mib": Bar(1.0)}
BYTES_PER_MIB = 1 << 20


def run_recv(pair: Pair, seconds: int) -> dict[str, float]:
    """Return the peak resident memory of a run's consumer, in bytes, and how many messages it took."""
    run = Run(daq_pattern(), PRODUCERS, WARMUP_MS, seconds * 1000, scale=SCALE)
    plan = write_plan(pair, run, lead_s=LEAD_S + 1)
    recv = start_recv(pair, plan)
    send = start_send(pair, plan)
    peak_bytes = 0
    while recv.process.poll() is None:
        peak_bytes = peak_resident_bytes(recv.process.pid) or peak_bytes
        time.sleep(0.05)
    result = answer(recv.wait(1.0))
    answer(send.wait(30.0))
    return {"peak_bytes": peak_bytes, "messages": sum(stream["received"] for stream in result["streams"])}


@takes(seconds=(3, "counted time of the short run"), runs=(RUNS_MIN, "runs of each length"))
def main(options: Options) -> int:
    """Run the benchmark."""
    with Pair(PRODUCERS * SCALE) as pair:
        variants = {
            "short": partial(run_recv, pair, options.seconds),
            "long": partial(run_recv, pair, options.seconds * LONGER),
        }
        results = alternate(variants, options.runs)
    short, long = medians(results["short"]), medians(results["long"])
    figures = {
        "memory_growth_mib": (long["peak_bytes"] - short["peak_bytes"]) / BYTES_PER_MIB,
        "short_run_mib": short["peak_bytes"] / BYTES_PER_MIB,
        "long_run_messages": long["messages"],
    }
    return publish("memory", figures, BARS, results)
