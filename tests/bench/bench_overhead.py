# SPDX-License-Identifier: Apache-2.0
"""One-way median of 100 B UDP on a veth pair, against sockperf's half round trip on the same pair.

Same rate, CPUs and real-time priority; senders are busy until their next message is due. Half a round trip is
one way only where both ways are alike: a receiver that has slept for a period wakes more slowly than a client
that waits for its answer. So the bar is on `awake`, where no CPU may sleep (as with `send --awake`), for
sockperf too: what is left is the software alone. Beside it, with CPUs that sleep:

busy    as `awake`
sleep   ours sleeps between messages, as by default
stamps  as `busy`, with the kernel's receive and transmit stamps that a qualification asks for
"""

from __future__ import annotations

import argparse
import re
import signal
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.bench.pair import CONSUMER, PRIORITY, Pair, receiver_cpu, sender_cpu
from tests.bench.replay import Run, replay, udp_pattern
from tests.bench.report import RUNS_MIN, Bar, alternate, median_ratio, publish

SIZE_BYTES = 100
PORT = 11111
RATE_HZ = 1000
PERIOD_US = 1_000_000 // RATE_HZ
WARMUP_MS = 1000
BUSY_US = PERIOD_US * 9 // 10
BARS = {"overhead_ratio": Bar(1.03)}


def run_ours(pair: Pair, seconds: int, spin_us: int, stamps: bool) -> float:
    """Return the median of received - sent in ns."""
    pattern = udp_pattern(1, 1, SIZE_BYTES, PERIOD_US)
    run = Run(pattern, 1, WARMUP_MS, seconds * 1000, spin_us=spin_us, capture_stamps=stamps)
    received, _ = replay(pair, run)
    stream = received["streams"][0]
    if stream["lost"]:
        raise RuntimeError(f"{stream['lost']} datagrams were lost on the way")
    return float(stream["received_minus_sent"]["p50_ns"])


def run_sockperf(pair: Pair, seconds: int) -> float:
    """Return the median of sockperf's half round trip in ns."""
    address = ["-i", CONSUMER, "-p", str(PORT)]
    server = pair.start(
        pair.receiver, ["sockperf", "server", *address], cpu=receiver_cpu(), priority=PRIORITY
    )
    wait_bound(pair)
    options = ["-m", str(SIZE_BYTES), "-t", str(seconds), "--mps", str(RATE_HZ)]
    client = pair.start(
        pair.sender, ["sockperf", "ping-pong", *address, *options], cpu=sender_cpu(), priority=PRIORITY
    )
    output = client.wait(seconds + 30)
    server.stop(signal.SIGINT)
    found = re.search(r"percentile 50\.0+ = +([0-9.]+)", output)
    if not found:
        raise RuntimeError(f"sockperf printed no median: {output[-400:]}")
    return float(found[1]) * 1000


def wait_bound(pair: Pair) -> None:
    """Wait until the server's socket is there; what it prints stays in its buffer."""
    deadline = time.monotonic() + 10.0
    query = ["ip", "netns", "exec", pair.receiver, "ss", "-Hlun", "sport", "=", f":{PORT}"]
    while not subprocess.run(query, check=True, capture_output=True).stdout:
        if time.monotonic() > deadline:
            raise TimeoutError("sockperf opens no socket")
        time.sleep(0.02)


@contextmanager
def awake_cpus() -> Generator[None]:
    """Keep all CPUs of the machine from sleeping."""
    with Path("/dev/cpu_dma_latency").open("wb", buffering=0) as request:
        request.write(struct.pack("=i", 0))
        yield


def with_awake_cpus(measure: Callable[[], float]) -> float:
    """Measure while no CPU may sleep."""
    with awake_cpus():
        return measure()


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=int, default=5, help="counted time of each run (default 5)")
    parser.add_argument("--runs", type=int, default=RUNS_MIN, help="runs of each configuration (default 5)")
    options = parser.parse_args()
    with Pair() as pair:
        theirs = partial(run_sockperf, pair, options.seconds)
        ours = partial(run_ours, pair, options.seconds)
        variants: dict[str, Callable[[], float]] = {
            "sockperf": theirs,
            "busy": partial(ours, BUSY_US, False),
            "sleep": partial(ours, 0, False),
            "stamps": partial(ours, BUSY_US, True),
            "sockperf-awake": partial(with_awake_cpus, theirs),
            "awake": partial(with_awake_cpus, partial(ours, BUSY_US, False)),
        }
        results = alternate(variants, options.runs)
    figures = {
        "overhead_ratio": median_ratio(results["awake"], results["sockperf-awake"]),
        "busy_ratio": median_ratio(results["busy"], results["sockperf"]),
        "sleep_ratio": median_ratio(results["sleep"], results["sockperf"]),
        "stamps_ratio": median_ratio(results["stamps"], results["sockperf"]),
        **{f"{name.replace('-', '_')}_ns": statistics.median(runs) for name, runs in results.items()},
    }
    return publish("overhead", figures, BARS, {"seconds": options.seconds, "runs_ns": results})


if __name__ == "__main__":
    sys.exit(main())
