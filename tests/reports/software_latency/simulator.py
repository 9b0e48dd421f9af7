# SPDX-License-Identifier: Apache-2.0
"""Devices whose software latency is known: random topologies, distributions, dependence."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.software_latency.plan import Device, Pair, missing_pairs
from reports.software_latency.trips import PairTrips

signal: Any = import_module("scipy.signal")  # has no types

Floats = NDArray[np.float64]
SHAPES = ("lognormal", "gamma", "mixture")
INTERVAL_NS = 1_000_000


@dataclass(frozen=True)
class Way:
    """Distribution of one way through a device's software: floor + scale times a shape of mean and spread."""

    shape: str
    floor_ns: float
    scale_ns: float
    sigma: float

    @property
    def mean_ns(self) -> float:
        """Mean of one way."""
        shape = {
            "lognormal": math.exp(self.sigma**2 / 2),
            "gamma": 1.0,
            "mixture": 0.2 * self.sigma + 0.1 * 3,
        }[self.shape]
        return self.floor_ns + self.scale_ns * shape

    def of(self, normal: Floats, second: Floats) -> Floats:
        """Return latencies in ns from two series of standard normal values."""
        if self.shape == "lognormal":
            values = np.exp(self.sigma * normal)
        elif self.shape == "gamma":
            values = (normal**2 + second**2) / 2
        else:  # now and then an interrupt or a wakeup comes on top: P(normal > 1.2816) = 0.1
            values = 0.2 * self.sigma * np.square(second) + 3.0 * (normal > 1.2815515655446004)
        return self.floor_ns + self.scale_ns * values


@dataclass(frozen=True)
class Truth:
    """One device: its two ways, how they go together, and how trips depend on the one before."""

    device: Device
    send: Way
    receive: Way
    together: float
    memory: float

    @property
    def mean_ns(self) -> float:
        """Mean of send + receive."""
        return self.send.mean_ns + self.receive.mean_ns

    def trips(self, count: int, rng: np.random.Generator) -> Floats:
        """Return S of so many trips: send + receive, in ns."""
        noise = rng.standard_normal((4, count))
        noise[:, 1:] *= math.sqrt(1 - self.memory**2)  # the first value is stationary as it is
        series = signal.lfilter([1.0], [1.0, -self.memory], noise, axis=1)
        rest = math.sqrt(1 - self.together**2)
        receive = [self.together * series[i] + rest * series[2 + i] for i in range(2)]
        return self.send.of(series[0], series[1]) + self.receive.of(*receive)


def random_way(rng: np.random.Generator) -> Way:
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    return Way(shape, rng.uniform(1e3, 4e4), rng.uniform(1e3, 4e4), rng.uniform(0.2, 0.8))


def random_truths(count: int, rng: np.random.Generator) -> list[Truth]:
    """Return devices, each of its own kind."""
    return [
        Truth(
            Device(f"d{place}", f"board{place}", "linux"),
            random_way(rng),
            random_way(rng),
            rng.uniform(0, 0.95),
            rng.uniform(0, 0.7),
        )
        for place in range(count)
    ]


def random_pairs(truths: list[Truth], rng: np.random.Generator) -> list[Pair]:
    """Return pairs that tell every device, in a random order and roles, with up to three more than needed."""
    devices = [truth.device for truth in truths]
    every = list(itertools.permutations([device.name for device in devices], 2))
    order: list[int] = rng.permutation(len(every)).tolist()
    shuffled = [every[place] for place in order]
    needed = missing_pairs(devices, (), shuffled)
    further = [pair for pair in shuffled if pair not in needed]
    return [*needed, *further[: int(rng.integers(0, 4))]]


@dataclass(frozen=True)
class SimulatedTrips:
    """Trips, and the smallest and largest S of each device that went into them."""

    devices: list[Device]
    trips: list[PairTrips]
    minimum_ns: dict[str, float]
    maximum_ns: dict[str, float]


def simulate(truths: list[Truth], pairs: list[Pair], count: int, rng: np.random.Generator) -> SimulatedTrips:
    """Return so many trips of each pair, all pairs at the same time."""
    own = {truth.device.name: truth for truth in truths}
    seen: dict[str, list[Floats]] = {name: [] for name in own}
    trips: list[PairTrips] = []
    for asker, reflector in pairs:
        ways = [own[name].trips(count, rng) for name in (asker, reflector)]
        seen[asker].append(ways[0])
        seen[reflector].append(ways[1])
        sent = np.arange(count, dtype=np.int64) * INTERVAL_NS
        trips.append(PairTrips(asker, reflector, np.rint(ways[0] + ways[1]).astype(np.int64), None, sent))
    return SimulatedTrips(
        [truth.device for truth in truths],
        trips,
        {name: min(float(way.min()) for way in ways) for name, ways in seen.items() if ways},
        {name: max(float(way.max()) for way in ways) for name, ways in seen.items() if ways},
    )
