# SPDX-License-Identifier: Apache-2.0
"""The user-mode stack against the kernel's: the same unmodified programs by both, over one line, by turns.

The line leads over a third namespace, which loses frames (an XDP program, from a seed: both stacks meet the
same losses), doubles and disorders them (a relay). Offloads are off at all ends: a lost frame of 64 KB would
be another loss. The kernel's congestion control is cubic; where bulk is lost also BBR, which is what one
would choose for bulk over such a line.

goodput        by turns at 1 % and at 5 % loss both ways, and at 1 % with 20 ms each way, each transfer ended
               after some seconds, by both stacks, each with BBR and with cubic; and 1 GB at 0.1 % with 0.1 %
               doubled and disordered. Every byte is compared
lone           messages of 500 B every 10 ms; one of 20 is lost: what is added to its way
replay         the 12-producer pattern: at 0.1 % and 0.2 % loss both ways, and without loss while programs of
               ordinary priority keep both CPUs busy, or send each other bulk by the same stack. Of the
               low-latency streams (type 3) the 99.9th percentile
               of received - sent, without messages whose way met a window that the machine took; the share
               of those is told
trips          half a round trip of 100 B every 200 us over a link, with busy polling and without
"""

from __future__ import annotations

import csv
import signal
import statistics
import sys
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import numpy as np

from bench.lab.namespaces import Json
from bench.lab.options import Options, takes
from bench.lab.pair import PRIORITY, PROGRAM
from bench.lab.processes import last_object
from bench.lab.replay import NS_PER_S, Run, answer, daq_pattern
from bench.lab.report import RUNS_MIN, Bar, alternate, publish, say, steal_ms
from bench.userstack.line import KERNEL, KERNEL_BBR, PRODUCERS, RECEIVER_ADDRESS, USER, USER_BBR, Line
from tests.traffic_gen.lab import tai_ns

PORT, BULK_PORT = "7000", "7100"
ENDLESS_BYTES = 10**12
LOW_LATENCY = 3
"""Last digit of the low-latency streams' numbers."""
LONE_BYTES, LONE_EVERY, LONE_COUNT, LONE_INTERVAL_US = 500, 20, 1000, 10_000
TRIP_BYTES, TRIP_COUNT, TRIP_INTERVAL_US = 100, 5000, 200
BUSY_POLL_US = 1_000_000
MB = 1_000_000
LOSING_ENDS = 2
"""Seeds of a line: each end loses by its own."""
LOSSY_PATHS = {"1_percent": (1, 0), "5_percent": (5, 0), "1_percent_20_ms": (1, 20_000)}
"""Of bulk: loss in percent, delay in us, each way."""
SLACK_S = 60.0
Load = Callable[[Line, str], AbstractContextManager[None]]
"""What goes on beside a replay, by the line and the stack of that."""
LEAD_S = 4.0
"""From writing a plan to its slot 0: a program that takes many ports is not ready at once."""
WITNESS_US = 200
P999 = 99.9
BARS = {
    "goodput_5_percent_bbr_ratio": Bar(1.0, at_least=True),
    "goodput_1_percent_bbr_ratio": Bar(1.0, at_least=True),
    "goodput_1_percent_20_ms_bbr_ratio": Bar(0.8, at_least=True),
    "goodput_disorder_ratio": Bar(0.8, at_least=True),
    "wrong_words": Bar(0),
    "lone_added_ms": Bar(5),
    "loss_p999_ratio": Bar(0.1),
    "load_p999_ratio": Bar(0.5),
    "bulk_p999_ratio": Bar(0.5),
    "half_trip_busy_ratio": Bar(0.8),
}


@dataclass(frozen=True)
class Replayed:
    """What a replay says of its low-latency streams, in ns, and of all streams."""

    ways_ns: Sequence[float]
    left_out_share: float
    over_budget: int
    lost: int
    messages: int
    busy_ns: int

    @property
    def busy_ns_per_message(self) -> float:
        """CPU time of the whole machine by message: what a stack costs, whoever it is charged to."""
        return self.busy_ns / self.messages


def stream_argv(line: Line, port: str, role: str, *words: object) -> list[str]:
    """Return the command line of a program that streams (stream.c)."""
    return [str(line.stream), role, RECEIVER_ADDRESS, port, *map(str, words)]


def exchange(
    line: Line,
    stack: str,
    receiver: Sequence[Any],
    sender: Sequence[Any],
    limit_s: float = SLACK_S,
    **how: int,
) -> tuple[str, str]:
    """Let two programs stream by a stack, each given by role and words; return what each says.

    Args:
        line: Between them.
        stack: Of both.
        receiver: It accepts.
        sender: It connects.
        limit_s: For the sender.
        how: As of `Line.start_by`, for both.
    """
    accepts = line.start_by(line.receiver, stack, stream_argv(line, PORT, *receiver), receiver[0], **how)
    accepts.wait_text("ready")
    sends = line.start_by(line.sender, stack, stream_argv(line, PORT, *sender), sender[0], **how)
    sent = sends.wait(limit_s)
    return accepts.wait(SLACK_S), sent


def goodput_mb_per_s(line: Line, stack: str, size_bytes: int, limit_s: float) -> tuple[float, int]:
    """Send a stream and return MB/s and how many words of it came wrong."""
    came, _ = exchange(line, stack, ["sink"], ["source", size_bytes], limit_s)
    result = last_object(came)
    if result["bytes"] != size_bytes:
        raise RuntimeError(f"{stack}: {result['bytes']} of {size_bytes} bytes came")
    return rate_of(result)


def cut_goodput_mb_per_s(
    line: Line, stack: str, seconds: int, loss_ppm: int, seeds: Iterator[int], delay_us: int = 0
) -> tuple[float, int]:
    """Send for some seconds at a loss; return MB/s until all has come, and how many words came wrong."""
    with lossy(line, loss_ppm, next(seeds)), line.joined(delay_us=delay_us):
        came, _ = exchange(line, stack, ["sink"], ["source", ENDLESS_BYTES, seconds], seconds + SLACK_S)
    return rate_of(last_object(came))


def rate_of(result: Json) -> tuple[float, int]:
    """Return MB/s of what came, and how many words of it came wrong."""
    return result["bytes"] / MB / result["seconds"], result["wrong"]


def bulk_by_loss(line: Line, options: Options) -> dict[str, dict[str, list[tuple[float, int]]]]:
    """Return goodput and wrong words by path and stack, each stack meeting the same losses."""
    return {
        name: alternate(
            {
                stack: partial(
                    cut_goodput_mb_per_s,
                    line,
                    stack,
                    options.cut_seconds,
                    10_000 * percent,
                    count(options.seed, LOSING_ENDS),
                    delay_us,
                )
                for stack in (KERNEL, KERNEL_BBR, USER, USER_BBR)
            },
            options.runs,
            f"bulk, {name}",
        )
        for name, (percent, delay_us) in LOSSY_PATHS.items()
    }


def lossy_goodput(
    line: Line, seed: int, loss_ppm: int, disorder_ppm: int, sizes: Mapping[str, int], limit_s: float
) -> dict[str, tuple[float, int]]:
    """Return goodput and wrong words by stack, each meeting the same losses."""
    results: dict[str, tuple[float, int]] = {}
    for stack, size_bytes in sizes.items():
        say(f"{size_bytes / MB:.0f} MB by {stack}, {loss_ppm / 1e4:g} % lost")
        with lossy(line, loss_ppm, seed), line.joined(disorder_ppm, disorder_ppm, seed):
            results[stack] = goodput_mb_per_s(line, stack, size_bytes, limit_s)
    return results


@contextmanager
def lossy(line: Line, loss_ppm: int, seed: int) -> Generator[None, None, None]:
    """Lose frames both ways."""
    with line.losing("ms", loss_ppm, seed), line.losing("mr", loss_ppm, seed + 1):
        yield


def lone_loss_added_ms(line: Line, stack: str) -> list[float]:
    """Return what each lost message's way has more than the median of those that were not lost, in ms."""
    with line.joined(), line.losing("ms", every=LONE_EVERY, least_bytes=LONE_BYTES) as counts:
        words = [LONE_BYTES, LONE_COUNT, LONE_INTERVAL_US]
        read, _ = exchange(line, stack, ["reader", LONE_BYTES], ["writer", *words], priority=PRIORITY)
        ways_ns = sorted(last_object(read)["ways_ns"])
    # What is lost may be a needless copy, or a message that waits behind another: the slowest are the lost.
    lost = max(1, min(counts["dropped"], len(ways_ns) // LONE_EVERY))
    usual_ns = statistics.median(ways_ns[:-lost])
    return [(way_ns - usual_ns) / 1e6 for way_ns in ways_ns[-lost:]]


def half_trip_us(line: Line, stack: str, busy_poll_us: int = 0) -> float:
    """Return the median of half a round trip."""
    words = [TRIP_BYTES, TRIP_COUNT, TRIP_INTERVAL_US]
    _, asked = exchange(line, stack, ["echo", TRIP_BYTES], ["asker", *words], busy_poll_us=busy_poll_us)
    return statistics.median(last_object(asked)["trips_ns"]) / 2000


def replay(
    line: Line, stack: str, run: Run, *, loss_ppm: int = 0, seed: int = 1, load: Load | None = None
) -> Replayed:
    """Replay the pattern by a stack, beside a load if there is one."""
    plan = line.folder / "plan.toml"
    with ExitStack() as around:
        around.enter_context(line.joined())
        if loss_ppm:
            around.enter_context(lossy(line, loss_ppm, seed))
        if load:
            around.enter_context(load(line, stack))
        witness = line.start_by(line.middle, KERNEL, witness_argv(), "witness")
        around.callback(witness.stop, signal.SIGTERM)
        witness.wait_text('"ready"')
        plan.write_text(run.plan(tai_ns() + round(LEAD_S * NS_PER_S)))
        busy_ns = busy_time_ns()
        out = line.folder / "replay"
        argv = [str(PROGRAM), "recv", str(plan), "--out", str(out), "--log"]
        recv = line.start_by(line.receiver, stack, [*argv, "--priority", str(PRIORITY)], "recv")
        recv.wait_text('"ready"')
        argv = [str(PROGRAM), "send", str(plan), "--producer", "all"]
        send = line.start_by(line.sender, stack, [*argv, "--priority", str(PRIORITY)], "send")
        limit_s = LEAD_S + run.length_s + SLACK_S
        received = answer(recv.wait(limit_s))
        send.wait(limit_s)
        busy_ns = busy_time_ns() - busy_ns
        witness.stop(signal.SIGTERM)
        windows = last_object(witness.log.read_text())["windows"]
    return judge(received, out / "messages.csv", windows, busy_ns)


def witness_argv() -> list[str]:
    """Return the command that watches what this machine takes."""
    return [str(PROGRAM), "witness", "--threshold-us", str(WITNESS_US)]


@contextmanager
def bulk(line: Line, stack: str) -> Generator[None, None, None]:
    """Send as much as goes by the same stack between programs of ordinary priority."""
    sink = line.start_by(line.receiver, stack, stream_argv(line, BULK_PORT, "sink"), "bulk-sink")
    sink.wait_text("ready")
    argv = stream_argv(line, BULK_PORT, "source", ENDLESS_BYTES)
    source = line.start_by(line.sender, stack, argv, "bulk-source")
    try:
        yield
    finally:
        source.stop(signal.SIGKILL)
        sink.stop(signal.SIGKILL)


@contextmanager
def hogs(line: Line, _stack: str) -> Generator[None, None, None]:
    """Keep both CPUs busy by programs of ordinary priority."""
    spin = [sys.executable, "-c", "while True: pass"]
    programs = [line.start_by(end, KERNEL, spin, f"hog-{end}") for end in (line.sender, line.receiver)]
    try:
        yield
    finally:
        for program in programs:
            program.stop(signal.SIGKILL)


def busy_time_ns() -> int:
    """Return the time that this machine's CPUs have worked since boot, without what was stolen."""
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    user, nice, system, _idle, _wait, irq, softirq = fields[:7]
    return (user + nice + system + irq + softirq) * 10_000_000


def judge(received: Json, messages: Path, windows: Sequence[Sequence[int]], busy_ns: int) -> Replayed:
    """Take the figures from what the consumer and the witness say."""
    starts = [window[0] for window in windows]
    latest_end = list(accumulate((window[1] for window in windows), max))
    kept: list[float] = []
    left_out = total = 0
    with messages.open(newline="") as file:
        for row in csv.DictReader(file):
            if int(row["stream"]) % 10 != LOW_LATENCY:
                continue
            total += 1
            late_ns = int(row["lateness_ns"])
            sent_ns = int(row["scheduled_tai_ns"]) + late_ns
            way_ns = int(row["received_minus_scheduled_ns"]) - late_ns
            place = bisect_right(starts, sent_ns + way_ns)
            if place and latest_end[place - 1] >= sent_ns:
                left_out += 1
            else:
                kept.append(way_ns)
    streams = received["streams"]
    return Replayed(
        ways_ns=kept,
        left_out_share=left_out / total,
        over_budget=sum(stream["misses_sent"] for stream in streams),
        lost=sum(stream["lost"] for stream in streams if stream["transport"] == "tcp"),
        messages=sum(stream["received"] for stream in streams),
        busy_ns=busy_ns,
    )


def compare(
    line: Line, run: Run, runs: int, of: str, seed: int = 1, *, loss_ppm: int = 0, load: Load | None = None
) -> dict[str, list[Replayed]]:
    """Replay by both stacks by turns; what is lost is another in each turn, and the same for both."""

    def turns(stack: str) -> Callable[[], Replayed]:
        seeds = count(seed, LOSING_ENDS)
        return lambda: replay(line, stack, run, loss_ppm=loss_ppm, seed=next(seeds), load=load)

    return alternate({stack: turns(stack) for stack in (KERNEL, USER)}, runs, f"replays {of}")


def summary_of(replayed: Replayed) -> dict[str, object]:
    """Return what the detail keeps of a replay: no single messages."""
    ways_ns = replayed.ways_ns
    own: dict[str, object] = {name: value for name, value in vars(replayed).items() if name != "ways_ns"}
    return own | {"p999_ns": float(np.percentile(ways_ns, P999)), "worst_ns": max(ways_ns), "n": len(ways_ns)}


def p999_ratio(results: Mapping[str, Sequence[Replayed]]) -> float:
    """Return the user-mode stack's 99.9th percentile by the kernel's, each of all its runs' messages."""
    return p999_ns(results[USER]) / p999_ns(results[KERNEL])


def p999_ns(replays: Sequence[Replayed]) -> float:
    """Return the 99.9th percentile of the messages of some replays."""
    return float(np.percentile(np.concatenate([each.ways_ns for each in replays]), P999))


def told(name: str, results: Mapping[str, Sequence[Replayed]]) -> dict[str, float]:
    """Return the figures of replays without a bar."""
    figures: dict[str, float] = {}
    for stack, replays in results.items():
        figures |= {
            f"{name}_{stack}_p999_ms": p999_ns(replays) / 1e6,
            f"{name}_{stack}_worst_ms": max(max(each.ways_ns) for each in replays) / 1e6,
            f"{name}_{stack}_left_out_share": max(each.left_out_share for each in replays),
            f"{name}_{stack}_over_budget": sum(each.over_budget for each in replays),
            f"{name}_{stack}_lost": sum(each.lost for each in replays),
            f"{name}_{stack}_cpu_us_per_message": statistics.median(e.busy_ns_per_message for e in replays)
            / 1e3,
        }
    return figures


def bulk_figures(bulk_runs: Mapping[str, Mapping[str, Sequence[tuple[float, int]]]]) -> dict[str, float]:
    """Return medians of goodput, and their ratios to the kernel's by the same congestion control."""
    figures: dict[str, float] = {}
    for name, by_stack in bulk_runs.items():
        usual = {stack: statistics.median(value for value, _ in runs) for stack, runs in by_stack.items()}
        figures |= {
            f"goodput_{name}_bbr_ratio": usual[USER_BBR] / usual[KERNEL_BBR],
            f"goodput_{name}_cubic_ratio": usual[USER] / usual[KERNEL],
            **{f"goodput_{name}_{stack}_mb_per_s": value for stack, value in usual.items()},
        }
    return figures


def measure(options: Options) -> tuple[dict[str, float], dict[str, object]]:
    """Measure everything and return the figures and the single runs."""
    run = Run(
        daq_pattern(), PRODUCERS, 1000, options.seconds * 1000, phase="aligned-12", capture_stamps=False
    )
    gigabyte = round(1000 * MB * options.share)
    with Line(direct=True) as line:
        trips = alternate(
            {
                KERNEL: partial(half_trip_us, line, KERNEL),
                USER: partial(half_trip_us, line, USER),
                "busy": partial(half_trip_us, line, USER, BUSY_POLL_US),
            },
            options.runs,
            "trips",
        )
    with Line() as line:
        lone = alternate(
            {stack: partial(lone_loss_added_ms, line, stack) for stack in (KERNEL, USER)},
            options.runs,
            "lone losses",
        )
        lossy_replays = compare(line, run, options.runs, "at 0.1 % loss", options.seed, loss_ppm=1000)
        twice = compare(line, run, options.runs, "at 0.2 % loss", options.seed, loss_ppm=2000)
        loaded = compare(line, run, options.runs, "under load", load=hogs)
        beside_bulk = compare(line, run, options.runs, "beside bulk", load=bulk)
        idle = compare(line, run, options.runs, "alone")
        heavy = bulk_by_loss(line, options)
        slight = lossy_goodput(line, options.seed, 1000, 1000, {KERNEL: gigabyte, USER: gigabyte}, 3600)
    replays = {
        "loss": lossy_replays,
        "loss_twice": twice,
        "load": loaded,
        "bulk": beside_bulk,
        "idle": idle,
    }
    usual = {name: statistics.median(each) for name, each in trips.items()}
    added = {stack: [value for turn in turns for value in turn] for stack, turns in lone.items()}
    figures = {
        **bulk_figures(heavy),
        "goodput_disorder_ratio": slight[USER][0] / slight[KERNEL][0],
        "wrong_words": slight[USER][1]
        + sum(w for by_stack in heavy.values() for stack in (USER, USER_BBR) for _, w in by_stack[stack]),
        "lone_added_ms": statistics.median(added[USER]),
        "loss_p999_ratio": p999_ratio(lossy_replays),
        "load_p999_ratio": p999_ratio(loaded),
        "bulk_p999_ratio": p999_ratio(beside_bulk),
        "half_trip_busy_ratio": usual["busy"] / usual[KERNEL],
        "half_trip_ratio": usual[USER] / usual[KERNEL],
        "idle_p999_ratio": p999_ratio(idle),
        "loss_twice_p999_ratio": p999_ratio(twice),
        "lone_added_most_ms": max(added[USER]),
        "lone_kernel_added_ms": statistics.median(added[KERNEL]),
        **{f"half_trip_{name}_us": value for name, value in usual.items()},
        **{f"goodput_disorder_{stack}_mb_per_s": value for stack, (value, _) in slight.items()},
    }
    for name, results in replays.items():
        figures |= told(name, results)
    detail: dict[str, object] = {
        "bulk_mb_per_s": heavy,
        "half_trips_us": trips,
        "lone_added_ms": added,
        **{
            name: {stack: [summary_of(each) for each in turns] for stack, turns in results.items()}
            for name, results in replays.items()
        },
    }
    return figures, detail


@takes(
    runs=(RUNS_MIN, "turns of each stack"),
    seconds=(30, "of each replay"),
    share=(1.0, "of the gigabyte that is sent"),
    cut_seconds=(30, "of each transfer at 1 and 5 % loss"),
    seed=(1, "of what is lost"),
)
def main(options: Options) -> int:
    """Run the benchmark; return its exit code."""
    stolen_ms = steal_ms()
    figures, detail = measure(options)
    figures["steal_ms"] = steal_ms() - stolen_ms
    return publish("stack", figures, BARS, {**detail, "options": vars(options)})
