# SPDX-License-Identifier: Apache-2.0
"""Does the adviser find a step of two standard deviations, how soon, and how often does it cry wolf?

found    share of series of 40 + 12 runs whose first alarm comes within 12 runs after the step
delay    median number of runs after the step with which the alarm comes (the first one counts as 1)
false    share of stationary series of 60 runs with an alarm
range    share of the changes found whose range holds the run at which the step is

Noise: normal (5 % of the level); log-normal (0.5 of the natural logarithm) with the step a factor of the
values; the same with the step added to them, 2 of the values' standard deviations. A thousand series of each.
`--compare` lets other detectors judge the same series: a quarter of an hour, most of it for jumpavg.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.dashboards.change_detectors import ADVISER, DETECTORS, Detector
from bench.dashboards.change_series import (
    BASELINE_RUNS,
    JUDGED,
    NOISES,
    STATIONARY_RUNS,
    STEP_RUNS,
    STEP_SIGMA,
    series,
)
from bench.lab.options import Options, takes
from bench.lab.report import Bar, publish, say
from dashboards.regressions.changes import find_changes

SEEDS = 1000
WITHIN_RUNS = STEP_RUNS - BASELINE_RUNS
LONG_RUNS = 2000
BARS = {
    f"{noise}_{figure}": bar
    for noise in JUDGED
    for figure, bar in (
        ("found_share", Bar(0.9, at_least=True)),
        ("delay_runs", Bar(5)),
        ("false_share", Bar(0.05)),
    )
}


@dataclass(frozen=True)
class Score:
    """What a detector reaches with one kind of noise."""

    found_share: float
    delay_runs: float
    false_share: float

    def text(self) -> str:
        """Return found in %, median delay in runs, false alarms in %."""
        return f"{100 * self.found_share:.0f} / {self.delay_runs:g} / {100 * self.false_share:.1f}"


def score(detector: Detector, noise: str, seeds: int) -> Score:
    """Let one detector judge series with a step, and stationary ones."""
    return scores({"": detector}, noise, seeds)[""]


def scores(detectors: Mapping[str, Detector], noise: str, seeds: int) -> dict[str, Score]:
    """Let detectors judge the same series, with a step and stationary ones."""
    delays: dict[str, list[float]] = {name: [] for name in detectors}
    alarms = dict.fromkeys(detectors, 0)
    for seed in range(seeds):
        stepped = series(noise, seed, step_sigma=STEP_SIGMA, runs=STEP_RUNS)
        stationary = series(noise, seed, step_sigma=0, runs=STATIONARY_RUNS)
        for name, detector in detectors.items():
            seen = detector(stepped)
            # An alarm before the step has not found it.
            found = seen is not None and seen >= BASELINE_RUNS
            delays[name].append(seen - BASELINE_RUNS + 1 if seen is not None and found else math.inf)
        for name, detector in detectors.items():
            alarms[name] += detector(stationary) is not None
    return {
        name: Score(
            found_share=sum(delay <= WITHIN_RUNS for delay in delays[name]) / seeds,
            delay_runs=statistics.median(delays[name]),
            false_share=alarms[name] / seeds,
        )
        for name in detectors
    }


def place_figures(seeds: int) -> dict[str, float]:
    """Return how well the place of a step is known, of those found after it."""
    errors: list[int] = []
    held: list[bool] = []
    widths: list[int] = []
    for seed in range(seeds):
        values = series("normal", seed, step_sigma=STEP_SIGMA, runs=STATIONARY_RUNS)
        found = [change for change in find_changes(values) if change.seen >= BASELINE_RUNS]
        if found:
            change = found[0]
            errors.append(abs(change.begin - BASELINE_RUNS))
            held.append(change.begin_earliest <= BASELINE_RUNS <= change.begin_latest)
            widths.append(change.begin_latest - change.begin_earliest + 1)
    return {
        "place_within_1_run_share": statistics.fmean(error <= 1 for error in errors),
        "range_holds_share": statistics.fmean(held),
        "range_runs": statistics.median(widths),
    }


def long_series_cpu_s() -> float:
    """Return the CPU time for a series of LONG_RUNS, in s: the median of five."""
    values = np.random.default_rng(20).normal(100, 5, LONG_RUNS)
    times: list[float] = []
    for _ in range(5):
        start = time.process_time()
        find_changes(values)
        times.append(time.process_time() - start)
    return statistics.median(times)


def compare(seeds: int, noises: Sequence[str]) -> dict[str, dict[str, Score]]:
    """Let all detectors judge the same series; print a table."""
    table: dict[str, dict[str, Score]] = {name: {} for name in DETECTORS}
    for noise in noises:
        for name, reached in scores(DETECTORS, noise, seeds).items():
            table[name][noise] = reached
            say(f"{noise:18} {name:56} {reached.text()}")
    for name, row in table.items():
        print("|", " | ".join((name, *(reached.text() for reached in row.values()))), "|", file=sys.stderr)
    return table


@takes(
    seeds=(SEEDS, "series of each kind"),
    compare=(False, "let other detectors judge the same series"),
    noise={
        "nargs": "+",
        "choices": NOISES,
        "default": JUDGED,
        "help": "kinds of noise to compare with (default: the three that are judged)",
    },
)
def main(options: Options) -> int:
    """Run the benchmark."""
    figures: dict[str, float] = {}
    for noise in JUDGED:
        reached = score(DETECTORS[ADVISER], noise, options.seeds)
        figures |= {f"{noise}_{name}": value for name, value in vars(reached).items()}
        say(f"{noise:18} {reached.text()}")
    figures |= place_figures(options.seeds)
    figures["series_of_2000_runs_cpu_s"] = long_series_cpu_s()
    table = compare(options.seeds, options.noise) if options.compare else {}
    compared = {
        name: {noise: reached.text() for noise, reached in row.items()} for name, row in table.items()
    }
    detail = {"seeds": options.seeds, "found_percent / delay_runs / false_percent": compared}
    return publish("regressions", figures, BARS, detail)
