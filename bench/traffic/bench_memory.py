# SPDX-License-Identifier: Apache-2.0
"""Peak resident memory of the consumer: a run ten times longer may need 1 MiB more at most."""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import time
from functools import partial
from pathlib import Path

from bench.lab.pair import Pair
from bench.lab.replay import LEAD_S, Run, answer, daq_pattern, start_recv, start_send, write_plan
from bench.lab.report import RUNS_MIN, Bar, alternate, publish

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


def peak_resident_bytes(pid: int) -> int:
    """Return the high-water mark of a process's resident memory; 0 when it has ended."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) * 1024 if found else 0


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=int, default=3, help="counted time of the short run (default 3)")
    parser.add_argument("--runs", type=int, default=RUNS_MIN, help="runs of each length")
    options = parser.parse_args()
    with Pair(PRODUCERS * SCALE) as pair:
        variants = {
            "short": partial(run_recv, pair, options.seconds),
            "long": partial(run_recv, pair, options.seconds * LONGER),
        }
        results = alternate(variants, options.runs)
    medians = {
        name: {key: statistics.median(run[key] for run in runs) for key in ("peak_bytes", "messages")}
        for name, runs in results.items()
    }
    growth_bytes = medians["long"]["peak_bytes"] - medians["short"]["peak_bytes"]
    figures = {
        "memory_growth_mib": growth_bytes / BYTES_PER_MIB,
        "short_run_mib": medians["short"]["peak_bytes"] / BYTES_PER_MIB,
        "long_run_messages": medians["long"]["messages"],
    }
    return publish("memory", figures, BARS, results)


if __name__ == "__main__":
    sys.exit(main())
