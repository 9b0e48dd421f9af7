# SPDX-License-Identifier: Apache-2.0
"""How often U holds the truth, and how often a doubt speaks where nothing is wrong.

`python -m tests.reports.software_latency.coverage [CASES] [TRIPS] [SEED]`
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reports.software_latency.estimate import Estimate, estimate
from tests.reports.software_latency.in_turns import STEADY, Wander, every_pair, in_turns
from tests.reports.software_latency.simulator import (
    SimulatedTrips,
    Truth,
    random_pairs,
    random_truths,
    simulate,
)

PROFILES = {"ci": (36, 8), "nightly": (150, 20)}
"""Turns of each direction, and trips of a turn."""
DOUBTS = ("too few", "wandered", "contradict", "below zero", "slow together")


@dataclass(frozen=True)
class Case:
    """One topology, what went into it and what was found."""

    truths: list[Truth]
    simulated: SimulatedTrips
    found: Estimate


def made_cases(count: int, trips: int, seed: int = 0, resamples: int = 200) -> list[Case]:
    """Return random topologies of three to eight devices, each with its estimate."""
    made: list[Case] = []
    for place in range(count):
        rng = np.random.default_rng(seed + place)
        truths = random_truths(int(rng.integers(3, 9)), rng)
        simulated = simulate(truths, random_pairs(truths, rng), trips, rng)
        made.append(
            Case(truths, simulated, estimate(simulated.devices, simulated.trips, resamples=resamples))
        )
    return made


def errors_over_u(cases: list[Case]) -> NDArray[np.float64]:
    """Return the error of each device's mean over its U."""
    return np.array(
        [
            (latency.mean_ns - truth.mean_ns) / latency.mean_expanded_ns
            for case in cases
            for latency, truth in zip(case.found.latencies, case.truths, strict=True)
        ]
    )


def checks(cases: list[Case]) -> int:
    """Return how many checks could have spoken."""
    return sum(3 * len(case.found.measured) + len(case.found.correlations) + 2 for case in cases)


def in_turns_found(
    seed: int, turns: int, turn_trips: int, devices: int = 4, wander: Wander = STEADY
) -> tuple[list[Truth], Estimate]:
    """Return devices whose pairs took turns, and what was found; without wander nothing is wrong."""
    rng = np.random.default_rng(seed)
    truths = random_truths(devices, rng)
    trips = in_turns(truths, every_pair(truths), turns, wander, rng, turn_trips)
    return truths, estimate([truth.device for truth in truths], trips, resamples=300, seed=seed)


def spoken(made: list[Estimate]) -> Counter[str]:
    """Return in how many runs each doubt speaks."""
    return Counter(doubt for found in made for doubt in DOUBTS if any(doubt in said for said in found.doubts))


def main(cases: int = 1000, trips: int = 1000, seed: int = 10_000) -> None:
    """Print the figures."""
    made = made_cases(cases, trips, seed)
    off = np.abs(errors_over_u(made))
    doubts = sum(len(case.found.doubts) for case in made)
    print(f"devices          {len(off)}")
    print(f"truth within U   {np.mean(off <= 1):.2%} (95.45 % expected)")
    print(f"within U / 2     {np.mean(off <= 0.5):.2%} (68.3 % expected)")
    print(f"false doubts     {doubts} of {checks(made)} checks")
    for profile, (turns, turn_trips) in PROFILES.items():
        runs = [in_turns_found(seed + place, turns, turn_trips) for place in range(cases)]
        off = np.array(
            [
                abs(latency.mean_ns - truth.mean_ns) / latency.mean_u_ns
                for truths, found in runs
                for latency, truth in zip(found.latencies, truths, strict=True)
            ]
        )
        print(f"{profile}, in turns: truth within U {np.mean(off <= 1):.2%}; runs with a false doubt:")
        for doubt, count in spoken([found for _, found in runs]).most_common():
            print(f"  {doubt:15s}{count / cases:.1%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
