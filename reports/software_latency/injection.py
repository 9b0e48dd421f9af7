# SPDX-License-Identifier: Apache-2.0
"""A known delay in one device's software has to appear there, and nowhere else.

The device and its delayed twin, a second echo beside it, are measured in the same turns. Every device's S is
worked out with the twin instead of the device, and without it; the difference has to be what was put in, and
zero for the others (Puttnies et al., equations (13) and (14)). Both times the partners are the same, in the
same roles: what they take themselves cancels, in the difference and in its U. What was put in is what the
waits of the trips that count took: in a pause of the machine one takes longer, but its trip does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reports.software_latency.bounds import partner_bounds, wander_bounds, wandering
from reports.software_latency.estimate import Estimate, solver, weighing
from reports.software_latency.plan import Device, design_matrix, kinds_of, told_devices
from reports.software_latency.trips import Floats, PairTrips


@dataclass(frozen=True, slots=True)
class Change:
    """How S of one kind of device changed.

    Attributes:
        devices: Their names, the delayed twin's for what it took the place of.
        put_ns: What was put in, by the clock of the device that waited.
        error_ns: Change less what was put in.
        expanded_ns: U of the error, with what another choice of partners leads to, and another time where
            trips wander.
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
    asked_ns: float,
) -> tuple[Change, ...]:
    """Return how each device's S changes when the delayed twin takes the device's place; none: not told.

    Args:
        found: Of all devices, the twin among them.
        devices: All devices.
        trips: Of each pair, as `found` is of them.
        twin: Name of the delayed one.
        plain: Name of its control, or of the same device without the delay.
        put_ns: The delay, as it was on average, of trips that do not count, too.
        asked_ns: The delay, as it was asked for: no wait was shorter. Where no trip says what its own wait
            took, in runs of before, those that count took something between the two.
    """
    rows, twins_rows = _compared(found, twin, plain)
    pairs = [(found.measured[row].asker, found.measured[row].reflector) for row in rows]
    before = told_devices([each for each in devices if each.name != twin], pairs)
    if plain not in [each.name for each in before]:
        return ()
    design = design_matrix(before, pairs)
    each_u = weighing(found.measured)
    part = solver(design, np.maximum(each_u[rows], each_u[twins_rows]))
    each_pair = np.eye(len(each_u))
    weights = part @ (each_pair[twins_rows] - each_pair[rows])
    waits = [each for each in trips if twin in (each.asker, each.reflector)]
    unsure_ns = 0.0 if all(each.known_delay_ns is not None for each in waits) else max(put_ns - asked_ns, 0.0)
    plain_trips = [_without_delay(each, put_ns if each in waits else 0.0) for each in trips]
    means = _means(plain_trips)
    put = weights @ (_means(trips) - means)
    error = weights @ means
    expanded = found.spread.expanded(weights, 1) + found.spread.hardware(weights)
    expanded = expanded + partner_bounds(design, means[twins_rows] - means[rows], error)
    moved = wander_bounds(weights, plain_trips, error)
    wanders = wandering(weights, plain_trips)
    made: list[Change] = []
    for column, kind in enumerate(kinds_of(before)):
        names = tuple(twin if each.name == plain else each.name for each in before if each.kind == kind)
        u = float(expanded[column]) + (float(moved[column]) if moved is not None and wanders[column] else 0.0)
        has_delay = twin in names
        made.append(
            Change(
                names,
                float(put[column]) if has_delay else 0.0,
                float(error[column]),
                u + (unsure_ns if has_delay else 0.0),
            )
        )
    return tuple(made)


def _without_delay(trips: PairTrips, put_ns: float) -> PairTrips:
    """Return round trips without the known delay: each its own, or what it was on average."""
    known_ns = trips.known_delay_ns
    return replace(trips, rtt_ns=trips.rtt_ns - (round(put_ns) if known_ns is None else known_ns))


def _means(trips: Sequence[PairTrips]) -> Floats:
    """Return the mean round trip of each pair in ns, of the trips that count, shape (pairs,)."""
    return np.array([each.rtt_ns[each.counted].mean() for each in trips])


def _compared(found: Estimate, twin: str, plain: str) -> tuple[list[int], list[int]]:
    """Return which pairs tell the devices without the twin, and which stand for them with it.

    A pair of the twin is compared with that of the device in the same role, or, where there is none, in the
    other; further pairs of the device are left out. All other pairs are their own.
    """
    place = {(each.asker, each.reflector): row for row, each in enumerate(found.measured)}
    rows = [row for pair, row in place.items() if not {twin, plain} & set(pair)]
    twins_rows = list(rows)
    for pair, row in place.items():
        if twin in pair:
            asker, reflector = (plain if name == twin else name for name in pair)
            counterpart = place.get((asker, reflector), place.get((reflector, asker)))
            if counterpart is not None:
                rows.append(counterpart)
                twins_rows.append(row)
    return rows, twins_rows
