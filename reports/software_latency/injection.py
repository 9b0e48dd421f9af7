# SPDX-License-Identifier: Apache-2.0
"""A known delay in one device's software has to appear there, and nowhere else.

The device and its delayed twin, a second echo beside it, are measured in the same turns. Every device's S is
worked out with the twin instead of the device, and without it; the difference has to be what was put in, and
zero for the others (Puttnies et al., equations (13) and (14)). Pairs that both share cancel in its U.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.software_latency.bounds import partner_bounds, wander_bounds
from reports.software_latency.estimate import Estimate, solver, weighing
from reports.software_latency.plan import Device, design_matrix, kinds_of
from reports.software_latency.trips import Floats, PairTrips


@dataclass(frozen=True, slots=True)
class Change:
    """How S of one kind of device changed.

    Attributes:
        devices: Their names.
        put_ns: What was put in, by the clock of the device that waited.
        error_ns: Change less what was put in.
        expanded_ns: U of the error, with what another choice of partners leads to (whoever waits longer for a
            reply is colder when it comes), and another time where trips wander.
    """

    devices: tuple[str, ...]
    put_ns: float
    error_ns: float
    expanded_ns: float

    @property
    def is_right(self) -> bool:
        """Return whether the error lies within its U."""
        return abs(self.error_ns) <= self.expanded_ns

    @property
    def is_told(self) -> bool:
        """Return whether what was put in is more than U: else nothing was shown of it."""
        return not self.put_ns or self.expanded_ns < self.put_ns


def changes(
    found: Estimate,
    devices: Sequence[Device],
    trips: Sequence[PairTrips],
    twin: str,
    plain: str,
    put_ns: float,
) -> tuple[Change, ...]:
    """Return how each device's S changes when the delayed twin takes the device's place.

    Args:
        found: Of all devices, the twin among them.
        devices: All devices.
        trips: Of each pair, as `found` is of them.
        twin: Name of the delayed one.
        plain: Name of the same device without the delay.
        put_ns: The delay, as it was.
    """
    delayed = next(each for each in devices if each.name == twin)
    before = [each for each in devices if each.name != twin]
    after = [delayed if each.name == plain else each for each in before]
    means = np.array([each.cumulants[0] for each in found.measured])
    one, one_open = _by(found, before, means)
    other, other_open = _by(found, after, means)
    weights = other - one
    expanded = found.spread.expanded(weights, 1) + found.spread.hardware(weights)
    moved = wander_bounds(weights, trips, weights @ means) if found.wanders else None
    made: list[Change] = []
    for column, kind in enumerate(kinds_of(before)):
        names = tuple(each.name for each in before if each.kind == kind)
        put = put_ns if plain in names else 0.0
        u = float(expanded[column] + one_open[column] + other_open[column])
        u += float(moved[column]) if moved is not None else 0.0
        made.append(Change(names, put, float(weights[column] @ means) - put, u))
    return tuple(made)


def _by(found: Estimate, devices: Sequence[Device], means: Floats) -> tuple[Floats, Floats]:
    """Return the weights that tell devices by the pairs among them, over all pairs, and what stays open."""
    names = {each.name for each in devices}
    rows = [row for row, each in enumerate(found.measured) if {each.asker, each.reflector} <= names]
    own = [found.measured[row] for row in rows]
    design = design_matrix(devices, [(each.asker, each.reflector) for each in own])
    part = solver(design, weighing(own))
    weights = np.zeros((design.shape[1], len(means)))
    weights[:, rows] = part
    return weights, partner_bounds(design, own, weights @ means)
