# SPDX-License-Identifier: Apache-2.0
"""How far the time service is off a truth that is known exactly, and whether interval and U tell the truth.

A server in a namespace of its own tells a time that is a known function of this machine's counter: a rate off
by a constant within 50 ppm, and a walk of it (tests/traffic_gen/timeservice/truth.h). The service, in another
namespace, has no other way to it; a reader computes the truth of each reading.

settling   until the service asks as rarely as it is set to, and has seen for a while how the rate walks:
           before twenty batches U supposes more than a quartz does.
reading    so many readings, in blocks over some minutes; what its own window shows as stalled is left out of
           the errors, and counted. The hard interval is judged of all.
holdover   the service is asked to hold; the slope of the error.

With --windows service and reader are those for Windows, under Wine, whose programs read this machine's own
counter; the server is the same. Stamps are then of user space at the client's end.

Two truths at once, each with its own server and service: a quartz at rest (0.3 ppb a root second), and a
wild one (100 ppb), of which only interval and U have bars. The paper, its sign turned: -3.80 to +5.23 us at
30 s, a holdover of 0.1 us/s.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bench.lab.options import Options, takes
from bench.lab.report import Bar, publish, say, steal_ms
from tests.targets.timeservice.lab import SERVER_ADDRESS, Pair, TimedProcess
from tests.targets.timeservice.truth_lab import (
    QUARTZ_PPB,
    WILD_PPB,
    Json,
    TruthReader,
    TruthServer,
    begin_truth,
)
from tests.targets.timeservice.windows_programs import NATIVE, WindowsPrograms

READS = 8_000_000
HOLDOVER_READS = 400_000
APART_S = 4
"""Between the starts of the two services: their exchanges do not meet."""
BARS = {
    "min_us": Bar(-5.0, at_least=True),
    "max_us": Bar(5.0),
    "beyond_10us": Bar(0),
    "left_out_share": Bar(0.001),
    "no_time": Bar(0),
    "interval_missed": Bar(0),
    "u_missed_share": Bar(0.001),
    "u_ratio": Bar(10.0),
    "holdover_us_per_s": Bar(0.05),
    "wild_interval_missed": Bar(0),
    "wild_u_missed_share": Bar(0.001),
}

Figures = dict[str, float]


def until_interval(timed: TimedProcess, interval_s: int) -> Json:
    """Wait until the service asks as rarely as it is set to; return its last batch."""
    before = timed.syncs(1)
    while True:
        sync = timed.syncs(1)
        if sync["monotonic_ns"] - before["monotonic_ns"] > 0.9e9 * interval_s:
            return sync
        before = sync


def holdover_us_per_s(answer: Json) -> float:
    """Return the size of the slope of the errors."""
    points = np.array(answer["points"])
    return abs(float(np.polyfit(points[:, 0], points[:, 1], 1)[0])) / 1e3


def figures_of(reading: Json, holdover: Json) -> Figures:
    """Return what one truth has shown."""
    judged = reading["reads"] - reading["left_out"] - reading["no_time"]
    return {
        "reads": reading["reads"],
        "min_us": reading["min_ns"] / 1e3,
        "median_us": reading["median_ns"] / 1e3,
        "max_us": reading["max_ns"] / 1e3,
        "size_median_us": reading["size_median_ns"] / 1e3,
        "size_p999_us": reading["size_p999_ns"] / 1e3,
        "beyond_10us": reading["beyond_10us"],
        "left_out_share": reading["left_out"] / reading["reads"],
        "no_time": reading["no_time"] + holdover["no_time"],
        "interval_missed": reading["interval_missed"] + holdover["interval_missed"],
        "u_missed_share": reading["u_missed"] / judged,
        "u_median_us": reading["u_median_ns"] / 1e3,
        "u_ratio": reading["u_median_ns"] / max(reading["size_median_ns"], 1),
        "bound_median_us": reading["bound_median_ns"] / 1e3,
        "bound_max_us": reading["bound_max_ns"] / 1e3,
        "holdover_us_per_s": holdover_us_per_s(holdover),
    }


def measure(options: Options, folder: Path) -> tuple[dict[str, Figures], Json]:
    """Return the figures by truth, and what stands behind them."""
    profiles = {"quartz": QUARTZ_PPB, "wild": WILD_PPB}
    truths = {name: begin_truth(options.seed + i, profiles[name]) for i, name in enumerate(profiles)}
    detail: Json = {"truths": truths}
    with ExitStack() as stack:
        pair = Pair()
        stack.callback(pair.close)
        programs = NATIVE
        if options.windows:
            programs = stack.enter_context(WindowsPrograms(folder, pair.inside(pair.client)))
        services: dict[str, TimedProcess] = {}
        for name, truth in truths.items():
            prefix = pair.inside(pair.server)
            server = stack.enter_context(TruthServer(truth, SERVER_ADDRESS, prefix=prefix))
            arguments = ("--server", server.text, "--interval-ms", str(options.interval_s * 1000))
            prefix = pair.inside(pair.client)
            timed = TimedProcess(folder / name, *arguments, prefix=prefix, programs=programs)
            services[name] = stack.enter_context(timed)
            time.sleep(APART_S)
        for name, timed in services.items():
            say(f"{name}: until it asks every {options.interval_s} s")
            until_interval(timed, options.interval_s)
        time.sleep(60 * options.settle_minutes)
        say(f"reading for {options.minutes} minutes")
        seconds = round(options.minutes * 60)
        readers = {
            name: TruthReader(folder / name, truths[name], options.reads, seconds, programs)
            for name in services
        }
        readings = {name: reader.answer() for name, reader in readers.items()}
        for name, timed in services.items():
            detail[name] = {"sources": timed.ctl("sources"), "history": timed.ctl("history")}
            if timed.tell("hold") != 0:
                raise RuntimeError(f"{name}: the service does not hold")
            timed.until_state("holdover", "asked to hold")
        say(f"holdover for {options.holdover_s} s")
        readers = {
            name: TruthReader(folder / name, truths[name], HOLDOVER_READS, options.holdover_s, programs)
            for name in services
        }
        holdovers = {name: reader.answer() for name, reader in readers.items()}
    for name in services:
        detail[name] |= {"reading": readings[name], "holdover": holdovers[name]}
    return {name: figures_of(readings[name], holdovers[name]) for name in services}, detail


@takes(
    interval_s=(30, "between synchronisations"),
    reads=(READS, "of each truth"),
    minutes=(4.0, "that they are spread over"),
    settle_minutes=(8.0, "before that"),
    holdover_s=(60, "length of the holdover"),
    seed=(1, "of the truths"),
    windows=(False, "the programs for Windows, under Wine"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    before_ms = steal_ms()
    with tempfile.TemporaryDirectory() as folder:
        found, detail = measure(options, Path(folder))
    figures = {**found["quartz"], **{f"wild_{key}": value for key, value in found["wild"].items()}}
    figures["steal_s"] = (steal_ms() - before_ms) / 1000
    name = "time_truth_windows" if options.windows else "time_truth"
    return publish(name, figures, BARS, {**vars(options), **detail})
