# SPDX-License-Identifier: Apache-2.0
"""What a point in a program costs, and whether anything is lost: beside LTTng-UST in the same run.

Cost: a loop of a little work, with an event in it and without, by turns in blocks of 1000; the difference of
the medians. 10^6 events are timed at a time, in rings that have room for them, and then read back whole:
count, order, checksum. LTTng's are likewise (bench/events/lttng.py says how it is set up; its clock is the
system's, by its vDSO, ours the processor's counter).

event_ns           an event that is on, tag and thread with it
lttng_ratio        the same by what one of LTTng with one number costs
off_ns             a point that is off
none_ratio         p50 of bw-traffic's one way, points compiled in and off, by that of a build without points
schedule_ratio     likewise p50 of the error of its schedule, of 48 flows
clean_runs_share   runs of 10^6 events a second, a minute long, in which none was lost
uncounted          events of these, and of those with the recorder held up, that are neither read nor counted
                   as lost, or counted at another place than theirs
kills_uncounted    events whose call had returned before the program was killed, likewise
"""

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.events.lttng import Session, numbers_of, session
from bench.lab.compiler import compile_c
from bench.lab.options import Options, takes
from bench.lab.pair import PROGRAM, Pair
from bench.lab.report import REPOSITORY, RUNS_MIN, Bar, alternate, median_ratio, publish, say, steal_ms
from bench.traffic import bench_overhead, bench_schedule
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import SUFFIX, read_event_stream

BUILD = REPOSITORY / ".build" / "linux"
TOOL = str(BUILD / "traffic-gen" / "bw-events")
PROBE = str(BUILD / "tests" / "traffic_gen" / "events-probe")
HERE = Path(__file__).parent
BLOCKS = 1000
RATE_HZ = 1_000_000
RING_KIB = 65536
"""2 s of 10^6 events a second, on one processor."""
WAIT_S = 600
BARS = {
    "event_ns": Bar(50),
    "lttng_ratio": Bar(0.4),
    "off_ns": Bar(1),
    "none_ratio": Bar(1.05),
    "schedule_ratio": Bar(1.05),
    "clean_runs_share": Bar(0.8, at_least=True),
    "uncounted": Bar(0),
    "kills_uncounted": Bar(0),
}


def cost_ns(printed: str) -> float:
    """Return what an event costs, of what a program of event_loop.h printed."""
    answer = json.loads(printed)
    return float(answer["with_ns"]) - float(answer["without_ns"])


def check_whole(tags: np.ndarray[Any, np.dtype[np.int64]], printed: str) -> None:
    """Hold events that were read against those that were timed; raises RuntimeError."""
    answer = json.loads(printed)
    if len(tags) != answer["events"] or int(tags.sum()) != answer["sum"]:
        raise RuntimeError(
            f"{len(tags)} events of {answer['events']}, sum {int(tags.sum())} of {answer['sum']}"
        )
    if not np.array_equal(tags, np.arange(len(tags))):
        raise RuntimeError("the events are not in their order")


def record(folder: Path, *argv: str, ring_kib: int = RING_KIB) -> str:
    """Record a program into a new folder; return what it printed."""
    command = [TOOL, "record", "--output", str(folder), "--ring-kib", str(ring_kib), "--", *argv]
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=WAIT_S)
    if done.returncode not in {0, 4}:
        raise RuntimeError(done.stderr)
    return done.stdout


def only_stream(folder: Path) -> EventStream:
    """Read the one stream of a folder, and remove its file."""
    (path,) = folder.glob(f"*{SUFFIX}")
    stream = read_event_stream(path)
    path.unlink()
    return stream


def ours(program: Path, folder: Path) -> float:
    """Time our event, and read the events back."""
    made = Path(tempfile.mkdtemp(dir=folder))
    printed = record(made, str(program), str(BLOCKS))
    stream = only_stream(made)
    check_whole(stream.tag[stream.of("cost.number")], printed)
    return cost_ns(printed)


def off(program: Path) -> float:
    """Time a point that nobody has turned on."""
    return cost_ns(subprocess.check_output([str(program), str(BLOCKS)], text=True, timeout=WAIT_S))


def theirs(program: Path, made: Session) -> float:
    """Time LTTng's event, and read the events back by babeltrace2."""
    printed, trace = made.record("cost:number", str(program), str(BLOCKS))
    check_whole(numbers_of(trace), printed)
    return cost_ns(printed)


def uncounted(stream: EventStream, sent: int) -> int:
    """Return how many events of one thread on one processor are neither there nor counted at their place."""
    order = stream.of("probe.number")
    tags, lost = stream.tag[order], stream.lost_before[order]
    misplaced = int(np.count_nonzero(np.diff(tags, prepend=-1) - 1 != lost))
    return abs(sent - len(tags) - stream.lost) + misplaced


def pinned(*argv: str) -> list[str]:
    """Return a command on one processor: its events are in one ring."""
    return ["taskset", "-c", str(min(os.sched_getaffinity(0))), *argv]


def long_run(folder: Path, seconds: int) -> tuple[int, int]:
    """Record 10^6 events a second; return how many were lost, and how many of them are not accounted for."""
    made = Path(tempfile.mkdtemp(dir=folder))
    stolen_ms = steal_ms()
    count = seconds * RATE_HZ
    record(made, *pinned(PROBE, "pace", str(count), str(RATE_HZ)))
    stream = only_stream(made)
    say(f"{count} events: {stream.lost} lost; {steal_ms() - stolen_ms} ms stolen")
    return stream.lost, uncounted(stream, count)


def held_up(folder: Path, times: int) -> int:
    """Stop the recorder while a program goes on, several times; return what is not accounted for."""
    made = Path(tempfile.mkdtemp(dir=folder))
    count = 2 * RATE_HZ
    command = pinned(PROBE, "pace", str(count), str(RATE_HZ))
    recorder = subprocess.Popen(
        [TOOL, "record", "--output", str(made), "--ring-kib", "256", "--", *command],
        stdout=subprocess.DEVNULL,
    )
    for _ in range(times):
        time.sleep(0.05)
        recorder.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        recorder.send_signal(signal.SIGCONT)
    recorder.wait(WAIT_S)
    stream = only_stream(made)
    say(f"recorder stopped {times} times: {stream.lost} of {count} events lost")
    if not stream.lost:
        raise RuntimeError("nothing was lost while the recorder stopped: that says nothing")
    return uncounted(stream, count)


def killed(folder: Path, drawn: random.Random) -> int:
    """Kill a program at a drawn moment; return how many events are missing whose call had returned."""
    made = Path(tempfile.mkdtemp(dir=folder))
    page = made / "page"
    page.write_bytes(bytes(4096))
    recording = [TOOL, "record", "--output", str(made), "--ring-kib", str(RING_KIB // 4)]
    recorder = subprocess.Popen(recording, stdout=subprocess.PIPE, text=True)
    assert recorder.stdout
    name, _, value = recorder.stdout.readline().strip().partition("=")
    with page.open("r+b") as file:
        done = mmap.mmap(file.fileno(), 4096)
        program = subprocess.Popen([PROBE, "until-killed"], stdin=file, env={**os.environ, name: value})
        until = drawn.randrange(1, 200_000)
        while struct.unpack("<Q", done[:8])[0] < until:
            pass
        program.kill()
        program.wait(WAIT_S)
        (returned,) = struct.unpack("<Q", done[:8])
    recorder.terminate()
    recorder.wait(WAIT_S)
    stream = only_stream(made)
    kept = np.unique(stream.tag)
    if stream.lost:
        return max(0, returned - len(kept) - stream.lost)
    return int(returned - np.count_nonzero(kept < returned))


def build_without(folder: Path) -> Path:
    """Build bw-traffic without points, otherwise as it is."""
    build = folder / "without"
    options = ["--buildtype=debugoptimized", "-Dwerror=true", "-Dtests=false", "-Devents=false"]
    subprocess.run(["meson", "setup", *options, str(build)], cwd=REPOSITORY, check=True, capture_output=True)
    subprocess.run(
        ["ninja", "-C", str(build), "traffic-gen/bw-traffic"], check=True, capture_output=True, timeout=WAIT_S
    )
    return build / "traffic-gen" / "bw-traffic"


def by_turns(without: Path, runs: int, seconds: int) -> dict[str, float]:
    """Return the figures of bw-traffic with points by those without."""
    with Pair(bench_schedule.PRODUCERS) as pair:

        def one_way(program: Path) -> float:
            pair.program = program
            return bench_overhead.with_awake_cpus(
                partial(bench_overhead.run_ours, pair, seconds, bench_overhead.BUSY_US, False)
            )

        def schedule(program: Path) -> float:
            pair.program = program
            exact = ["--awake"]
            return bench_schedule.run_ours(pair, seconds, bench_schedule.SPIN_US, exact)["p50_ns"]

        figures: dict[str, float] = {}
        measures: dict[str, Callable[[Path], float]] = {"none": one_way, "schedule": schedule}
        for name, measure in measures.items():
            variants = {"with": partial(measure, PROGRAM), "without": partial(measure, without)}
            results = alternate(variants, runs, name)
            figures[f"{name}_ratio"] = median_ratio(results["with"], results["without"])
            figures |= {f"{name}_{key}_ns": statistics.median(each) for key, each in results.items()}
    return figures


def count_losses(options: Options, folder: Path) -> dict[str, float]:
    """Run what loses events or may."""
    losses = [long_run(folder, options.seconds) for _ in range(options.long_runs)]
    held = [held_up(folder, 5) for _ in range(3)]
    drawn = random.Random(1)
    kills = [killed(folder, drawn) for _ in range(options.kills)]
    return {
        "clean_runs_share": statistics.mean(lost == 0 for lost, _ in losses),
        "lost_events": float(sum(lost for lost, _ in losses)),
        "uncounted": float(sum(each for _, each in losses) + sum(held)),
        "kills_uncounted": float(sum(kills)),
    }


@takes(
    runs=(RUNS_MIN, "turns of each configuration"),
    seconds=(60, "of a run of 10^6 events a second"),
    long_runs=(5, "of them"),
    kills=(200, "programs that are killed"),
    replay_seconds=(3, "counted time of each run of bw-traffic"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    stolen_ms = steal_ms()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        include = ["-I", str(REPOSITORY / "traffic-gen" / "events"), "-I", str(HERE), "-Werror"]
        # gcc takes libraries before the source only if it is told to take all of them.
        own = [
            "-Wl,--whole-archive",
            str(BUILD / "traffic-gen/events/libbwevents.a"),
            "-Wl,--no-whole-archive",
        ]
        lttng = ["-Wl,--no-as-needed", "-llttng-ust", "-ldl"]
        program = compile_c(HERE / "event_cost.c", folder / "event-cost", *include, *own)
        lttng_program = compile_c(HERE / "lttng_cost.c", folder / "lttng-cost", *include, *lttng)
        with session(folder / "lttng") as made:
            variants = {
                "ours": partial(ours, program, folder),
                "lttng": partial(theirs, lttng_program, made),
                "off": partial(off, program),
            }
            costs: dict[str, Sequence[float]] = {**alternate(variants, options.runs, "cost")}
        figures = {
            "event_ns": statistics.median(costs["ours"]),
            "lttng_ns": statistics.median(costs["lttng"]),
            "lttng_ratio": median_ratio(costs["ours"], costs["lttng"]),
            "off_ns": statistics.median(costs["off"]),
            **by_turns(build_without(folder), options.runs, options.replay_seconds),
            **count_losses(options, folder),
        }
    return publish("events", figures, BARS, {"costs_ns": costs, "stolen_ms": steal_ms() - stolen_ms})


if __name__ == "__main__":
    raise SystemExit(main())
