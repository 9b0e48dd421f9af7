# SPDX-License-Identifier: Apache-2.0
"""One way of 100 B UDP on a veth pair, against sockperf's own one way on the same pair.

Same rate, CPUs and real-time priority; senders are busy until their next message is due. sockperf tells half
a round trip, which is no one way: its server has slept for a period, its client waits for the answer. So a
library that is loaded into both (`one_way.c`) stamps where bw-traffic does, before the call that sends and
behind the one that receives. bw-traffic serves many streams from one thread, sockperf does so with
`epoll` (`-F e`): the bar holds those two against each other, where no CPU may sleep (as with `send --awake`),
so that what is left is the software. Beside it:

recvfrom   sockperf's server waits in recvfrom, as by default: one socket a thread
busy       as `awake`, with CPUs that sleep, and sockperf likewise
sleep      ours sleeps between messages, as by default
stamps     as `busy`, with the kernel's receive and transmit stamps that a qualification asks for
"""

from __future__ import annotations

import signal
import statistics
import struct
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from bench.lab.compiler import compile_c
from bench.lab.namespaces import Program, receiver_cpu, sender_cpu
from bench.lab.options import Options, takes
from bench.lab.pair import CONSUMER, PRIORITY, Pair
from bench.lab.replay import Run, replay, udp_pattern
from bench.lab.report import RUNS_MIN, Bar, alternate, median_ratio, publish

SIZE_BYTES = 100
PORT = 11111
RATE_HZ = 1000
PERIOD_US = 1_000_000 // RATE_HZ
WARMUP_MS = 1000
BUSY_US = PERIOD_US * 9 // 10
WARMUP_MESSAGES = WARMUP_MS * RATE_HZ // 1000
ASLEEP = ("busy", "sleep", "stamps")
LIBRARY_SOURCE = Path(__file__).with_name("one_way.c")
SENT, RECEIVED = "ONE_WAY_SENT", "ONE_WAY_RECEIVED"
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


class Sockperf:
    """sockperf as it is measured: client and server in the namespaces of a pair, both stamped."""

    def __init__(self, pair: Pair, seconds: int) -> None:
        """Build the library that stamps.

        Raises:
            CapabilityError: There is no compiler.
        """
        self._pair = pair
        self._seconds = seconds
        self._library = compile_c(LIBRARY_SOURCE, pair.folder / "one_way.so", "-shared", "-fPIC", "-Werror")
        self._feed = pair.folder / "feed"
        self._feed.write_text("".join(f"U:{CONSUMER}:{PORT + number}\n" for number in range(2)))

    def run(self, *, epoll: bool = True) -> float:
        """Return the median one way in ns.

        Args:
            epoll: Its server waits for two sockets; else in recvfrom for one.
        """
        address = ["-i", CONSUMER, "-p", str(PORT)]
        listen = ["-f", str(self._feed), "-F", "e"] if epoll else address
        server = self._start(self._pair.receiver, RECEIVED, ["server", *listen], receiver_cpu())
        wait_bound(self._pair)
        options = ["-m", str(SIZE_BYTES), "-t", str(self._seconds), "--mps", str(RATE_HZ)]
        client = self._start(self._pair.sender, SENT, ["ping-pong", *address, *options], sender_cpu())
        client.wait(self._seconds + 30)
        server.stop(signal.SIGINT)
        sent, received = (
            np.fromfile(self._times(kind), np.int64)[WARMUP_MESSAGES:] for kind in (SENT, RECEIVED)
        )
        both = (sent > 0) & (received > 0)
        if np.count_nonzero(both) < (self._seconds * RATE_HZ - WARMUP_MESSAGES) // 2:
            raise RuntimeError(f"{np.count_nonzero(both)} messages of sockperf were stamped at both ends")
        return float(np.median((received - sent)[both]))

    def _start(self, namespace: str, kind: str, argv: list[str], cpu: int) -> Program:
        times = self._times(kind)
        times.write_bytes(bytes(8 * RATE_HZ * (self._seconds + 5)))
        loaded = ["env", f"{kind}={times}", f"LD_PRELOAD={self._library}"]
        return self._pair.start(namespace, [*loaded, "sockperf", *argv], cpu=cpu, priority=PRIORITY)

    def _times(self, kind: str) -> Path:
        return self._pair.folder / kind


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


@takes(seconds=(5, "counted time of each run"), runs=(RUNS_MIN, "runs of each configuration"))
def main(options: Options) -> int:
    """Run the benchmark."""
    with Pair() as pair:
        sockperf = Sockperf(pair, options.seconds)
        ours = partial(run_ours, pair, options.seconds)
        variants: dict[str, Callable[[], float]] = {
            "sockperf": sockperf.run,
            "busy": partial(ours, BUSY_US, False),
            "sleep": partial(ours, 0, False),
            "stamps": partial(ours, BUSY_US, True),
            "sockperf_recvfrom_awake": partial(with_awake_cpus, partial(sockperf.run, epoll=False)),
            "sockperf_awake": partial(with_awake_cpus, sockperf.run),
            "awake": partial(with_awake_cpus, partial(ours, BUSY_US, False)),
        }
        results = alternate(variants, options.runs)
    figures = {
        "overhead_ratio": median_ratio(results["awake"], results["sockperf_awake"]),
        "recvfrom_ratio": median_ratio(results["awake"], results["sockperf_recvfrom_awake"]),
        **{f"{name}_ratio": median_ratio(results[name], results["sockperf"]) for name in ASLEEP},
        **{f"{name}_ns": statistics.median(runs) for name, runs in results.items()},
    }
    return publish("overhead", figures, BARS, {"seconds": options.seconds, "runs_ns": results})
