# SPDX-License-Identifier: Apache-2.0
"""How exactly datagrams leave on schedule, against MGEN: 48 UDP flows of 100 B at 100 Hz.

Captured at the receiver with the kernel's stamps. Four configurations take turns, all on the same CPU:

exact         bw-traffic with spin_us and --awake, as docs/native-tools.md recommends for exact departures
sleep         bw-traffic as it is by default
mgen          MGEN as it is by default, at the same real-time priority
mgen-precise  MGEN with `precise on`, which polls without a pause: at ordinary priority, because the kernel
              holds a real-time program that never sleeps back for 50 ms in every second
"""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from bench.lab.namespaces import Program, receiver_cpu, sender_cpu
from bench.lab.options import Options, takes
from bench.lab.pair import CONSUMER, PRIORITY, RECEIVER_INTERFACE, Pair
from bench.lab.replay import LEAD_S, Run, answer, start_send, udp_pattern, write_plan
from bench.lab.report import RUNS_MIN, Bar, alternate, median_ratio, publish, say_runs
from bench.traffic.capture import absolute_percentiles_ns, read_capture, schedule_errors_ns
from resources.daq_replay.plan_file import BASE_PORT
from tests.traffic_gen.lab import SocketMaker

PRODUCERS, STREAMS = 12, 4
FLOWS = PRODUCERS * STREAMS
SIZE_BYTES = 100
RATE_HZ = 100
PERIOD_NS = 1_000_000_000 // RATE_HZ
WARMUP_S = 1
SPIN_US = 120
CAPTURE_FLUSH_S = 1.5
"""The kernel hands a block of the capture over when it is full, or after a second."""
BARS = {"schedule_p99_ratio": Bar(0.2), "schedule_p50_ratio": Bar(0.1)}

# Where the sequence number stands in a datagram: bw-traffic's header begins with it (docs/native-tools.md);
# in MGEN's it follows message size (u16), version, flags (u8 each) and flow id (u32).
OUR_SEQUENCE, MGEN_SEQUENCE = 0, 8

Percentiles = dict[str, float]


def ports() -> list[int]:
    """Return the destination ports of the flows."""
    return [
        BASE_PORT + producer * 10 + kind for producer in range(1, PRODUCERS + 1) for kind in range(STREAMS)
    ]


@contextmanager
def captured(pair: Pair, file: Path) -> Generator[Program]:
    """Capture all datagrams that reach the receiver; complain when the capture lost any."""
    argv = ["tcpdump", "-i", RECEIVER_INTERFACE, "-Z", "root", "-n", "-s", "64", "-B", "65536"]
    argv += ["--time-stamp-precision=nano", "-w", str(file), "udp"]
    program = pair.start(pair.receiver, argv, cpu=receiver_cpu())
    program.wait_text("listening on")
    yield program
    time.sleep(CAPTURE_FLUSH_S)
    program.stop(signal.SIGINT)
    if "0 packets dropped by kernel" not in program.errors():
        raise RuntimeError(f"the capture is incomplete: {program.errors()}")


def judge(file: Path, sequence_offset: int, seconds: int) -> Percentiles:
    """Return the percentiles of the absolute schedule error in a capture of all flows."""
    errors = schedule_errors_ns(
        read_capture(file, sequence_offset), PERIOD_NS, WARMUP_S * RATE_HZ, seconds * RATE_HZ
    )
    file.unlink()
    short = {port: len(errors.get(port, [])) for port in ports()}
    if min(short.values()) != seconds * RATE_HZ or len(errors) != FLOWS:
        raise RuntimeError(f"not all datagrams were captured: {short}")
    return absolute_percentiles_ns(errors)


def run_ours(pair: Pair, seconds: int, spin_us: int, options: Sequence[str]) -> Percentiles:
    """Play the flows with bw-traffic."""
    file = pair.folder / "ours.pcap"
    pattern = udp_pattern(PRODUCERS, STREAMS, SIZE_BYTES, PERIOD_NS // 1000)
    run = Run(pattern, PRODUCERS, WARMUP_S * 1000, seconds * 1000, spin_us=spin_us, capture_stamps=False)
    with captured(pair, file):
        send = start_send(pair, write_plan(pair, run), *options)
        answer(send.wait(LEAD_S + run.length_s + 30))
    return judge(file, OUR_SEQUENCE, seconds)


def mgen_script(seconds: int) -> str:
    """Return a script of the same flows, their starts spread evenly over the period."""
    lines = [
        f"{index / RATE_HZ / FLOWS:.9f} ON {index + 1} UDP SRC {port} DST {CONSUMER}/{port} "
        f"PERIODIC [{RATE_HZ} {SIZE_BYTES}]"
        for index, port in enumerate(ports())
    ]
    lines += [f"{WARMUP_S + seconds + 0.5} OFF {index + 1}" for index in range(FLOWS)]
    return "\n".join([*lines, ""])


def run_mgen(pair: Pair, seconds: int, precise: bool, priority: int) -> Percentiles:
    """Play the flows with MGEN."""
    file = pair.folder / "mgen.pcap"
    script = pair.folder / "flows.mgn"
    script.write_text(mgen_script(seconds))
    options = ["precise", "on" if precise else "off", "nolog", "input", str(script)]
    with captured(pair, file):
        program = pair.start(pair.sender, ["mgen", *options], cpu=sender_cpu(), priority=priority)
        time.sleep(LEAD_S + WARMUP_S + seconds)
        program.stop(signal.SIGTERM)
    return judge(file, MGEN_SEQUENCE, seconds)


def figures_of(results: Mapping[str, Sequence[Percentiles]]) -> dict[str, float]:
    """Return the ratios of each of our configurations to each of MGEN's; the first of both have the bars."""
    names = {
        "schedule": ("exact", "mgen"),
        "exact_to_precise": ("exact", "mgen-precise"),
        "sleep_to_mgen": ("sleep", "mgen"),
    }
    figures: dict[str, float] = {}
    for name, (ours, theirs) in names.items():
        for key in ("p50", "p99"):
            figures[f"{name}_{key}_ratio"] = median_ratio(
                [run[f"{key}_ns"] for run in results[ours]], [run[f"{key}_ns"] for run in results[theirs]]
            )
    return figures


@takes(
    seconds=(20, "counted time of each run"),
    runs=(RUNS_MIN, "runs of each configuration"),
    spin_us=(SPIN_US, "final busy wait"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    with Pair(PRODUCERS) as pair, closing(SocketMaker(pair.receiver)) as sink:
        for port in ports():
            sink.open(socket.SOCK_DGRAM, CONSUMER, port)  # takes what comes, and nobody wakes up for it
        variants: dict[str, Callable[[], Percentiles]] = {
            "exact": partial(run_ours, pair, options.seconds, options.spin_us, ["--awake"]),
            "sleep": partial(run_ours, pair, options.seconds, 0, []),
            "mgen": partial(run_mgen, pair, options.seconds, False, PRIORITY),
            "mgen-precise": partial(run_mgen, pair, options.seconds, True, 0),
        }
        results = alternate(variants, options.runs)
    say_runs(results, ".0f")
    detail = {"spin_us": options.spin_us, "seconds": options.seconds, "runs": results}
    return publish("schedule", figures_of(results), BARS, detail)
