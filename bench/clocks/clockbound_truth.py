# SPDX-License-Identifier: Apache-2.0
"""ClockBound's daemon beside the time service against a truth that is known exactly: error, bound, processor.

One server for both (tests/traffic_gen/timeservice/truth.h), a quartz at rest; both ask it every two seconds,
which is ClockBound's own interval: it one exchange each time, ours a batch of sixteen. ClockBound tells an
interval alone: its time is the middle of that.
"""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.clocks.clockbound import INTERVAL_MS, SERVER_ADDRESS, ClockBoundDaemon, cpu_s
from bench.lab.report import say
from tests.targets.timeservice.lab import Pair, TimedProcess
from tests.targets.timeservice.truth_lab import QUARTZ_PPB, Json, TruthReader, TruthServer, begin_truth

READS = 1_000_000
SEED = 1
LINK = "t0"

Figures = dict[str, float]


@dataclass(frozen=True)
class ClockBoundPrograms:
    """Its daemon, and what reads it for `TruthReader`."""

    daemon: Path
    reader: Path


def figures_of(name: str, answer: Json, cpu_s_per_minute: float) -> Figures:
    """Return what one of both has shown; its name begins the figures'."""
    return {
        f"{name}_error_median_us": answer["size_median_ns"] / 1e3,
        f"{name}_error_p999_us": answer["size_p999_ns"] / 1e3,
        f"{name}_bound_width_median_us": 2 * answer["bound_median_ns"] / 1e3,
        f"{name}_bound_missed": answer["interval_missed"],
        f"{name}_no_time": answer["no_time"],
        f"{name}_cpu_s_per_minute": cpu_s_per_minute,
    }


def _ip(namespace: str, *arguments: str) -> None:
    subprocess.run(["ip", "-n", namespace, *arguments], check=True, capture_output=True)


def measure_beside(programs: ClockBoundPrograms, folder: Path, settle_s: int, read_s: int) -> Figures:
    """Run both daemons against one server, and return the figures of each.

    Args:
        programs: ClockBound's.
        folder: For files.
        settle_s: Time before anything counts.
        read_s: Time that the readings are spread over.

    Raises:
        CapabilityError: ClockBound's daemon ends at once.
    """
    truth = begin_truth(SEED, QUARTZ_PPB)
    with ExitStack() as stack:
        pair = Pair()
        stack.callback(pair.close)
        _ip(pair.server, "address", "add", f"{SERVER_ADDRESS}/32", "dev", LINK)
        _ip(pair.client, "route", "add", SERVER_ADDRESS, "dev", LINK)
        address = f"{SERVER_ADDRESS}:123"
        stack.enter_context(TruthServer(truth, address, prefix=pair.inside(pair.server)))
        inside = pair.inside(pair.client)
        options = ("--server", address, "--interval-ms", str(INTERVAL_MS))
        timed = stack.enter_context(TimedProcess(folder / "page", *options, prefix=inside))
        theirs = stack.enter_context(ClockBoundDaemon(programs.daemon, folder / "clockbound-truth", inside))
        say(
            f"clockbound's daemon, without the right to steer a clock, beside ours: {settle_s} s to settle,"
            f" {read_s} s of readings"
        )
        time.sleep(settle_s)
        pids = {"ours": timed.process.pid, "clockbound": theirs.process.pid}
        before_s = {name: cpu_s(pid) for name, pid in pids.items()}
        begin_s = time.monotonic()
        argv = [str(programs.reader), str(theirs.segment), str(READS), str(read_s)]
        told = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.PIPE))
        assert told.stdout is not None
        readers = {
            "ours": TruthReader(folder / "page", truth, READS, read_s),
            "clockbound": TruthReader(told.stdout, truth, READS, read_s),
        }
        answers = {name: reader.answer() for name, reader in readers.items()}
        minutes = (time.monotonic() - begin_s) / 60
        used_s = {name: cpu_s(pid) - before_s[name] for name, pid in pids.items()}
    found: Figures = {}
    for name, answer in answers.items():
        found |= figures_of(name, answer, used_s[name] / minutes)
    return found
