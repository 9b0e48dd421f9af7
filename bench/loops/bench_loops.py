# SPDX-License-Identifier: Apache-2.0
"""What is said of a ring of programs, against what stands apart from it: one counter, captures, a known hold.

The ring is that of `robot/control_loops/ring.robot`, on the native bench: machines are namespaces. The whole
is measured on the virtual bench, too: source and sink on a guest with PREEMPT_RT, a node on another guest.

beyond_u_percent    of all runs the largest share of messages whose whole by the timeline differs from what
                    the counter of source and sink says by more than U; outside: all beyond the bounds;
                    guest_beyond_u_percent, guest_outside: the same on the virtual bench
hold_error_us       largest distance of what a node's hold of 2 ms came to on any stretch, the node's own and
                    the whole included; median of the runs
order_violations    datagrams of the second hop that tcpdump saw at either end of it before they were written,
                    after they were read, or in another order, by more than U
many_unaccounted    of so many messages round ten nodes: whose way on any of eleven hops is not known
many_lost           that did not come round
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.report import REPOSITORY, RESULTS, Bar, publish, say, steal_ms
from hw.session import Bench, open_bench
from hw.virtual.bench_network import port_of
from reports.control_loops.ring import RUN_UP, load_ring
from reports.control_loops.ring_evidence import FIRST_PORT, KnownHold
from reports.control_loops.ring_verdict import found_hold
from reports.paths.datagrams import Datagrams, read_datagrams
from reports.timeline.clock_record import NS_PER_S
from resources.control_loops.ring_trial import RingMessages, measure_ring
from resources.tools.capture import capture_file
from resources.tools.path_capture import captured_path

BENCHES = REPOSITORY / "hw" / "benches"
FOLDER = RESULTS / "loops"
TARGET, GUEST = "linux", "linux-rt"
COUNT, INTERVAL_US, SIZE_BYTES = 1500, 5000, 10
HOLD = KnownHold(2, 2000, 2)
HOLD_COUNT, HOLD_INTERVAL_US = 300, 10_000
SECOND_HOP = 2
MANY_NODES = 10
BARS = {
    "beyond_u_percent": Bar(5),
    "outside": Bar(0),
    "guest_beyond_u_percent": Bar(5),
    "guest_outside": Bar(0),
    "hold_error_us": Bar(20),
    "order_violations": Bar(0),
    "many_unaccounted": Bar(0),
    "many_lost": Bar(0),
}


def whole(bench: Bench, place: Path, target: str = TARGET) -> Mapping[str, float]:
    """Return how the whole by the timeline differs from what one counter says."""
    messages = RingMessages(COUNT, INTERVAL_US, SIZE_BYTES, 2)
    measure_ring(bench, bench.spec.targets[target], messages, place)
    found = load_ring(place)
    off_ns = np.abs(found.whole.time_ns - found.whole_own_ns)
    bound_ns = found.whole.sent.bound_ns + found.whole.received.bound_ns
    return {
        "beyond_u_percent": 100 * float((off_ns > found.whole.u_ns).mean()),
        "outside": int((off_ns > bound_ns).sum()),
        "whole_us": float(np.median(found.whole_own_ns)) / 1000,
        "off_us": float(np.median(off_ns)) / 1000,
    }


def hold(bench: Bench, place: Path) -> Mapping[str, float]:
    """Return how far a known hold is off on the stretch that is worst."""
    messages = RingMessages(HOLD_COUNT, HOLD_INTERVAL_US, SIZE_BYTES, 2, hold=HOLD)
    measure_ring(bench, bench.spec.targets[TARGET], messages, place)
    found = found_hold(load_ring(place))
    for each in found:
        say(f"{each.stretch:8} put in {each.put_ns / 1000:8.1f} us, off by {each.error_ns / 1000:7.2f} us")
    return {"hold_error_us": max(abs(each.error_ns) for each in found) / 1000}


def order(bench: Bench, place: Path) -> Mapping[str, float]:
    """Return how many datagrams of a hop a capture contradicts."""
    nodes = sorted(bench.spec.producers)[SECOND_HOP - 2 : SECOND_HOP]
    sender, receiver = (bench.spec.producers[each] for each in nodes)
    ports = [port_of(bench.spec, each.node) for each in (sender, receiver)]
    with captured_path(bench, ports[0], ports[1], place / "captures"):
        facts = measure_ring(
            bench,
            bench.spec.targets[TARGET],
            RingMessages(COUNT, INTERVAL_US, SIZE_BYTES, 1, udp=True),
            place,
        )
    found = load_ring(place)
    hop = found.hops[SECOND_HOP - 1]
    seen: list[Datagrams] = [
        read_datagrams(capture_file(place / "captures", port)).chosen(
            source=sender.address,
            destination=receiver.address,
            destination_port=FIRST_PORT + SECOND_HOP,
        )
        for port in ports
    ]
    # Without a loss the n-th datagram is the n-th message; the end of all comes behind them.
    at_ns = [each.time_ns[RUN_UP:COUNT] + facts.tai_utc_s * NS_PER_S for each in seen]
    slack = [hop.sent.u_ns, np.zeros_like(hop.sent.u_ns), hop.received.u_ns]
    moments = [hop.sent.tai_ns, *at_ns, hop.received.tai_ns]
    later = [np.diff(np.stack(moments), axis=0)[step] + slack[step] for step in range(3)]
    say(f"on the wire: {[round(float(np.median(each)) / 1000, 2) for each in np.diff(moments, axis=0)]} us")
    return {
        "order_violations": int(sum((each < 0).sum() for each in later)),
        "captured": int(seen[0].time_ns.size),
    }


def many(bench: Bench, place: Path, count: int, interval_us: int) -> Mapping[str, float]:
    """Return what becomes of many messages round ten nodes."""
    messages = RingMessages(count, interval_us, SIZE_BYTES, 1, kernel_stamps=False, nodes=MANY_NODES)
    began_s = time.monotonic()
    measure_ring(bench, bench.spec.targets[TARGET], messages, place)
    took_s = time.monotonic() - began_s
    found = load_ring(place)
    say(f"{count} messages round {MANY_NODES} nodes in {took_s:.0f} s; read and placed")
    return {
        "many": count,
        "many_unaccounted": found.unaccounted,
        "many_lost": count - found.answers[-1].read,
        "many_lost_events": found.lost_events,
        "many_whole_us": float(np.median(found.whole_own_ns)) / 1000,
    }


@takes(
    runs=(10, "of the ring and of the hold"),
    many=(1_000_000, "messages round ten nodes"),
    many_interval_us=(100, "from one to the next"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    runs: list[Mapping[str, float]] = []
    guests: list[Mapping[str, float]] = []
    with open_bench(BENCHES / "native.yaml") as bench:
        bench.power_on([bench.spec.targets[TARGET].node])
        for number in range(options.runs):
            one = {**whole(bench, FOLDER / f"whole-{number}"), **hold(bench, FOLDER / f"hold-{number}")}
            say(f"run {number + 1} of {options.runs}: {one}")
            runs.append(one)
        figures = {
            "beyond_u_percent": max(each["beyond_u_percent"] for each in runs),
            "outside": sum(each["outside"] for each in runs),
            "hold_error_us": statistics.median(each["hold_error_us"] for each in runs),
            "hold_error_most_us": max(each["hold_error_us"] for each in runs),
            **order(bench, FOLDER / "order"),
            **many(bench, FOLDER / "many", options.many, options.many_interval_us),
        }
    with open_bench(BENCHES / "virtual.yaml") as bench:
        for number in range(options.runs):
            guests.append(whole(bench, FOLDER / f"guest-{number}", GUEST))
            say(f"{GUEST}, run {number + 1} of {options.runs}: {guests[-1]}")
    figures |= {
        "guest_beyond_u_percent": max(each["beyond_u_percent"] for each in guests),
        "guest_outside": sum(each["outside"] for each in guests),
    }
    return publish(
        "loops", figures, BARS, {"stolen_ms": steal_ms() - stolen_ms, "runs": runs, "guests": guests}
    )
