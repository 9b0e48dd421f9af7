# SPDX-License-Identifier: Apache-2.0
"""Round trips of made-up devices whose pairs take turns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reports.software_latency.plan import Pair
from reports.software_latency.trips import PairTrips
from tests.reports.software_latency.simulator import Floats, Truth

TRIPS = 15
"""Of a turn. As many lie between two turns, while the other pairs have theirs: turns remember nothing."""


@dataclass(frozen=True)
class Wander:
    """How every device's S changes together from turn to turn: a first-order autoregressive series, in ns."""

    spread_ns: float
    memory: float

    def of_turns(self, turns: int, rng: np.random.Generator) -> Floats:
        """Return how far S is moved in each turn."""
        values = np.empty(turns)
        values[0] = rng.standard_normal()
        for turn in range(1, turns):
            step = rng.standard_normal() * np.sqrt(1 - self.memory**2)
            values[turn] = self.memory * values[turn - 1] + step
        return values * self.spread_ns


STEADY = Wander(0, 0)


def in_turns(
    truths: list[Truth],
    pairs: list[Pair],
    turns: int,
    wander: Wander,
    rng: np.random.Generator,
    turn_trips: int = TRIPS,
) -> list[PairTrips]:
    """Return so many turns of each pair; `wander` is of each device, and of all of them together."""
    own = {truth.device.name: truth for truth in truths}
    moved = {name: wander.of_turns(turns, rng) for name in own}
    common = wander.of_turns(turns, rng)
    turn = np.repeat(np.arange(turns), turn_trips)
    whole = turn_trips + TRIPS
    made: list[PairTrips] = []
    for asker, reflector in pairs:
        both = own[asker].trips(turns * whole, rng) + own[reflector].trips(turns * whole, rng)
        both = both.reshape(turns, whole)[:, :turn_trips].ravel()
        both = both + np.repeat(moved[asker] + moved[reflector] + 2 * common, turn_trips)
        made.append(PairTrips(asker, reflector, np.rint(both).astype(np.int64), None, None, turn))
    return made


def every_pair(truths: list[Truth]) -> list[Pair]:
    names = [truth.device.name for truth in truths]
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    return [*pairs, *((other, one) for one, other in pairs[:3])]
