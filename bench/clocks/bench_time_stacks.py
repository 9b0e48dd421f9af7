# SPDX-License-Identifier: Apache-2.0
"""The time service beside chrony and ntp-user: the same emulated target, server and interval, by turns.

Each turn puts one stack on the target, waits for its lock and measures by the timecard what programs read of
the clock that it keeps. Readings whose own window shows a stall are left out. Bars are ratios of the medians
over the turns, of the median and of the 99.9 % quantile of the size of the offset: at most half of
ntp-user's, and not above chrony's.

The virtual bench is opened for it: nothing else may use that meanwhile.
"""

from __future__ import annotations

import math
import statistics
import tempfile
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.lab.options import Options, takes
from bench.lab.report import (
    REPOSITORY,
    RUNS_MIN,
    Bar,
    alternate,
    bucket_quantile,
    median_ratio,
    publish,
    steal_ms,
)
from hw.bench import TargetSpec
from hw.drivers.labgrid_api import register_all
from hw.errors import MeasurementError
from hw.session import Bench, open_bench
from reports.clock_sync.capability import STATED_BOUND_STATISTICS
from reports.clock_sync.reported_bound import median_size_ns
from reports.record.histogram import Summary
from reports.requirements import Requirement
from resources.clock_sync.kind import load_clock_kind
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.time_service import STACK, TimeServiceTrials
from resources.clock_sync.time_service_times import TIMES, TimeServiceTimes, time_service_times
from resources.profiles import load_profile, times_of
from resources.requirements_file import load_requirements_file

BENCH = REPOSITORY / "hw" / "benches" / "virtual.yaml"
REQUIREMENTS = REPOSITORY / "robot" / "clock_sync" / "requirements" / "clock_time_service_virtual.toml"
STACKS = (STACK, "chrony", "ntp-user")
QUANTITIES = ("sync_offset", *STATED_BOUND_STATISTICS)
"""That a file of requirements on the time service may be on."""
BARS = {
    "ntp_user_median_ratio": Bar(0.5),
    "ntp_user_p999_ratio": Bar(0.5),
    "chrony_median_ratio": Bar(1.0),
    "chrony_p999_ratio": Bar(1.0),
}

Sizes = dict[str, float]


def quantile_size_ns(offset: Summary, share: float) -> float:
    """Return a quantile of the sizes of offsets, the upper edge of its bucket."""
    sizes = ((max(abs(low), abs(low + width - 1)), count) for low, width, count in offset.buckets)
    return bucket_quantile(sizes, share)


class Turns:
    """Trials of stacks in one lab."""

    def __init__(self, bench: Bench, target: TargetSpec, times: TimeServiceTimes, folder: Path) -> None:
        """Take a bench that is open."""
        self._bench = bench
        self._target = target
        self._profile = load_profile("ci")
        self._times = times
        self._folder = folder
        self._turn = 0
        self._requirement: Requirement = next(
            each
            for each in load_requirements_file(REQUIREMENTS, *QUANTITIES).requirements
            if each.quantity == "sync_offset"
        )

    def measure(self, stack: str) -> Sizes:
        """Measure a stack once; NaN where it did not lock in time."""
        self._turn += 1
        kind = load_clock_kind(REPOSITORY / "targets" / self._target.provisioning)
        wander = kind.stack(STACK, self._bench.spec.simulated).server_wander
        folder = self._folder / f"{self._turn}-{stack}"
        with ClockLab(self._bench, self._target, self._profile, folder, print, wander) as lab:
            trials = TimeServiceTrials(lab, self._times)
            with suppress(MeasurementError):
                offset = trials.steady(self._requirement, stack).filtered.offset
                return {
                    "median_ns": float(median_size_ns(offset) or math.nan),
                    "p999_ns": float(quantile_size_ns(offset, 0.999)),
                    "n": float(offset.n),
                }
        return {"median_ns": math.nan, "p999_ns": math.nan, "n": 0.0}


@takes(
    interval_s=(4, "between synchronisations"),
    measure_s=(40, "of each trial"),
    runs=(RUNS_MIN, "turns of each stack"),
    target=("linux-rt", "of the virtual bench"),
)
def main(options: Options) -> int:
    """Run the benchmark."""
    register_all()
    times = replace(
        times_of("ci", TIMES, time_service_times),
        interval_s=options.interval_s,
        measure_s=options.measure_s,
        beside_s=options.measure_s,
    )
    before_ms = steal_ms()
    with tempfile.TemporaryDirectory() as folder, open_bench(BENCH) as bench:
        turns = Turns(bench, bench.spec.targets[options.target], times, Path(folder))
        results = alternate({stack: partial(turns.measure, stack) for stack in STACKS}, options.runs)
    figures: Sizes = {"steal_s": (steal_ms() - before_ms) / 1000}
    for stack, sizes in results.items():
        name = stack.replace("-", "_")
        for key in ("median", "p999"):
            found = [size[f"{key}_ns"] for size in sizes]
            figures[f"{name}_{key}_ns"] = statistics.median(found)
            if stack != STACK:
                ours = [size[f"{key}_ns"] for size in results[STACK]]
                figures[f"{name}_{key}_ratio"] = median_ratio(ours, found)
    return publish("time_stacks", figures, BARS, {"runs": results, "interval_s": options.interval_s})
