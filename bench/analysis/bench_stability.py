# SPDX-License-Identifier: Apache-2.0
"""How fast are MTIE, TDEV and histogram of a long series, against allantools and numpy, with the same values?

ours         stability and time_error of reports.clock_sync: MTIE, TDEV, histogram of 10^6 samples
allantools   the same with allantools.mtie, allantools.tdev and numpy.histogram

allantools.mtie works off every window whole: its time doubles with each octave and would be half an hour for
all of them. So both sides compute MTIE up to the same tau (--mtie-octaves), where ours gains least; TDEV and
histogram are computed whole. All octaves of 10^6 and of 10^7 samples are timed besides, ours alone; of 10^7
the values are compared once with what allantools can compute: TDEV, histogram, the first octaves of MTIE.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.lab.options import Options, takes
from bench.lab.report import RUNS_MIN, Bar, alternate, medians, publish, say_runs
from reports.clock_sync.series import ClockSeries
from reports.clock_sync.stability import mtie, octaves, tdev
from reports.clock_sync.time_error import distribution
from reports.units import NS_PER_MS

allantools: Any = import_module("allantools")  # has no types

RATE_HZ = 1000.0
SAMPLES = 1_000_000
MANY = 10_000_000
MTIE_OCTAVES = 15
MTIE_OCTAVES_OF_MANY = 8
TOLERANCE = 1e-9
BARS = {
    "speedup": Bar(20, at_least=True),
    "unequal_values": Bar(0),
    "unequal_values_1e7": Bar(0),
}

Seconds = dict[str, float]
Values = dict[str, NDArray[np.float64]]


def samples(n: int) -> NDArray[np.int64]:
    """Return offsets in ns: white phase noise over a random walk of frequency noise."""
    rng = np.random.default_rng(20)
    return np.rint(rng.normal(0, 300, n) + np.cumsum(rng.normal(0, 2, n))).astype(np.int64)


def timed(parts: Mapping[str, Callable[[], NDArray[np.float64]]]) -> tuple[Seconds, Values]:
    """Run each part once; return wall time of each in s and what it found."""
    seconds: Seconds = {}
    values: Values = {}
    for name, part in parts.items():
        start = time.perf_counter()
        values[name] = part()
        seconds[name] = time.perf_counter() - start
    seconds["total"] = sum(seconds.values())
    return seconds, values


def ours(offsets: NDArray[np.int64], edges: NDArray[np.int64], mtie_factors: Sequence[int] | None) -> Any:
    """Compute with this project; the series is made anew, as a caller has to."""
    series = ClockSeries.regular(NS_PER_MS, offsets)
    width = int(edges[1] - edges[0])

    def counts() -> NDArray[np.float64]:
        found = np.zeros(len(edges) - 1)
        for low, _, count in distribution(offsets, width).buckets:
            found[(low - int(edges[0])) // width] = count
        return found

    def curve(found: Any) -> NDArray[np.float64]:
        return found.value

    return timed(
        {
            "mtie": lambda: curve(mtie(series, mtie_factors)),
            "tdev": lambda: curve(tdev(series)),
            "histogram": counts,
        }
    )


def theirs(phase: NDArray[np.float64], edges: NDArray[np.int64], mtie_factors: Sequence[int]) -> Any:
    """Compute with allantools, and numpy for the histogram."""
    taus = np.array(mtie_factors) / RATE_HZ
    return timed(
        {
            "mtie": lambda: allantools.mtie(phase, rate=RATE_HZ, taus=taus)[1],
            "tdev": lambda: allantools.tdev(phase, rate=RATE_HZ, taus="octave")[1],
            # The last edge belongs to numpy's last bin; ours are half open.
            "histogram": lambda: np.histogram(phase, bins=np.append(edges[:-1], edges[-1] - 0.5))[0],
        }
    )


def unequal(one: Values, other: Values) -> int:
    """Return how many values differ by more than the tolerance, lengths included."""
    wrong = 0
    for name, values in one.items():
        if len(values) != len(other[name]):
            return max(len(values), len(other[name]))
        wrong += int(np.count_nonzero(~np.isclose(values, other[name], rtol=TOLERANCE, atol=0)))
    return wrong


def edges_of(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the edges of the buckets into which both sides count."""
    low, width, _ = distribution(offsets).buckets[0]
    return np.arange(low, int(offsets.max()) + width + 1, width)


def figures_of(results: Mapping[str, Sequence[tuple[Seconds, Values]]]) -> dict[str, float]:
    """Return the ratios of the medians, and how many values of any pair of runs are not equal."""
    seconds = {side: medians([run[0] for run in runs]) for side, runs in results.items()}
    figures = {
        "speedup" if key == "total" else f"{key}_speedup": seconds["allantools"][key] / ours_s
        for key, ours_s in seconds["ours"].items()
    }
    pairs = zip(results["ours"], results["allantools"], strict=True)
    return {**figures, "unequal_values": float(sum(unequal(a[1], b[1]) for a, b in pairs))}


@takes(runs=(RUNS_MIN, "runs of each side"), mtie_octaves=(MTIE_OCTAVES, "octaves of MTIE that are compared"))
def main(options: Options) -> int:
    """Run the benchmark."""
    offsets = samples(SAMPLES)
    phase, edges = offsets.astype(np.float64), edges_of(offsets)
    factors = octaves((1 << options.mtie_octaves) - 1)
    results = alternate(
        {
            "ours": lambda: ours(offsets, edges, factors),
            "allantools": lambda: theirs(phase, edges, factors),
        },
        options.runs,
    )
    figures = figures_of(results)
    whole = [ours(offsets, edges, None)[0] for _ in range(options.runs)]
    many = samples(MANY)
    edges_of_many = edges_of(many)
    longest = [ours(many, edges_of_many, None)[0] for _ in range(options.runs)]
    few = octaves((1 << MTIE_OCTAVES_OF_MANY) - 1)
    centre = round(float(many.mean()))
    reference = theirs((many - centre).astype(np.float64), edges_of_many - centre, few)
    figures["unequal_values_1e7"] = float(unequal(ours(many, edges_of_many, few)[1], reference[1]))
    figures["all_octaves_1e6_s"] = statistics.median(run["total"] for run in whole)
    figures["all_octaves_1e7_s"] = statistics.median(run["total"] for run in longest)
    seconds = {side: [run[0] for run in runs] for side, runs in results.items()}
    say_runs({**seconds, "ours, all": whole, "ours, 10^7": longest}, ".3f")
    detail = {"samples": SAMPLES, "mtie_octaves": options.mtie_octaves, "tolerance": TOLERANCE}
    times = {"runs_s": seconds, "all_octaves_1e6_s": whole, "all_octaves_1e7_s": longest}
    return publish("stability", figures, BARS, {**detail, **times})
