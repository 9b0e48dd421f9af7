# SPDX-License-Identifier: Apache-2.0
"""Which pairs of devices have to be measured, so that the software latency of each can be told.

A round trip is the sum over its two devices (Puttnies et al., "Algorithmic Approach to Estimate Variant
Software Latencies", equations (1) to (6)), so a plan is a graph: kinds of devices are nodes, measured pairs
are edges. Its matrix (unsigned incidence) has full rank exactly where every connected part has an odd cycle.
Devices of one hardware and software are one unknown (equations (10) to (12)); a pair of two of them is a
loop, an odd cycle of length one.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.errors import ReportError
from reports.units import NS_PER_S

Pair: TypeAlias = tuple[str, str]
"""Names of two devices: the one that asks, the one that reflects."""

Kind: TypeAlias = tuple[str, str]
"""Hardware and software: what decides a device's latency."""

Floats: TypeAlias = NDArray[np.float64]
_Links: TypeAlias = Mapping[Kind, Mapping[Kind, Pair]]
_OfFactors: TypeAlias = Callable[..., Floats]

COVERAGE_FACTOR = 2.0
"""k of U = k u: 95.45 % of a normal distribution."""


class PlanError(ReportError):
    """Say that pairs do not tell every device's latency.

    Attributes:
        missing: Pairs to measure besides; empty where no possible pair helps.
    """

    def __init__(self, message: str, missing: tuple[Pair, ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Device:
    """A device and its class: those of equal hardware and software have one distribution of latency."""

    name: str
    hardware: str
    software: str

    @property
    def kind(self) -> Kind:
        """Hardware and software."""
        return self.hardware, self.software


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure, one pair after the other.

    Attributes:
        pairs: Pairs to measure.
        trips: Round trips of each.
        duration_s: Of all of them.
        variance_factors: Variance of each kind's estimate over that of the mean of one pair, were all pairs
            alike: 3/4 in a triangle, L/4 in an odd cycle of length L, one more for every step from the cycle.
        mean_expanded_ns: Expected U (k = 2) of each kind's mean.
    """

    pairs: tuple[Pair, ...]
    trips: int
    duration_s: float
    variance_factors: Mapping[Kind, float]
    mean_expanded_ns: Mapping[Kind, float]


def kinds_of(devices: Sequence[Device]) -> tuple[Kind, ...]:
    """Return the kinds of devices, in the order in which they first come."""
    return tuple(dict.fromkeys(device.kind for device in devices))


def design_matrix(devices: Sequence[Device], pairs: Sequence[Pair]) -> Floats:
    """Return how often each kind is in each pair, shape (pairs, kinds), as equation (6) without its 2.

    Raises:
        PlanError: A pair names an unknown device, or one device twice.
    """
    column = {kind: place for place, kind in enumerate(kinds_of(devices))}
    matrix = np.zeros((len(pairs), len(column)))
    for row, (one, other) in enumerate(_kinds_of_pairs(devices, pairs)):
        matrix[row, column[one]] += 1
        matrix[row, column[other]] += 1
    return matrix


def rank(devices: Sequence[Device], pairs: Sequence[Pair]) -> int:
    """Return how many independent equations the pairs give: as many as kinds where each kind is told.

    Raises:
        PlanError: As for `design_matrix`.
    """
    parts = _Parts(kinds_of(devices))
    return sum(parts.join(*kinds) for kinds in _kinds_of_pairs(devices, pairs))


def told_devices(devices: Sequence[Device], pairs: Sequence[Pair]) -> tuple[Device, ...]:
    """Return the devices whose latency the pairs tell; raises PlanError as `design_matrix`."""
    parts = _joined(devices, pairs)
    return tuple(device for device in devices if parts.is_told(device.kind))


def missing_pairs(
    devices: Sequence[Device], pairs: Sequence[Pair], possible: Sequence[Pair] | None = None
) -> tuple[Pair, ...]:
    """Return pairs to measure besides, so that each kind is told: each of them raises the rank by one.

    Args:
        devices: All devices.
        pairs: What is measured or planned.
        possible: What could be measured; None: every pair of kinds. Earlier ones are preferred.

    Raises:
        PlanError: No devices, no possible pairs are enough, or as for `design_matrix`.
    """
    if not devices:
        raise PlanError("no devices: there is nothing to tell")
    possible = _every_pair(devices) if possible is None else possible
    parts = _joined(devices, pairs)
    candidates = zip(possible, _kinds_of_pairs(devices, possible), strict=True)
    missing = tuple(pair for pair, joined in candidates if parts.join(*joined))
    if untold := [kind for kind in kinds_of(devices) if not parts.is_told(kind)]:
        named = "; ".join(" ".join(kind) for kind in untold)
        raise PlanError(f"no possible pairs close an odd cycle, so the latency cannot be told of: {named}")
    return missing


def check_identifiable(
    devices: Sequence[Device], pairs: Sequence[Pair], possible: Sequence[Pair] | None = None
) -> None:
    """Refuse pairs that do not tell each kind's latency; arguments as for `missing_pairs`.

    Raises:
        PlanError: Pairs are missing; it names them.
    """
    if missing := missing_pairs(devices, pairs, possible):
        named = ", ".join("/".join(pair) for pair in missing)
        raise PlanError(f"pairs do not tell every device's latency; measure besides: {named}", missing)


def variance_factors(devices: Sequence[Device], pairs: Sequence[Pair]) -> dict[Kind, float]:
    """Return the variance of each kind's estimate over that of one pair: the diagonal of (XᵀX)⁻¹.

    Raises:
        PlanError: The pairs do not tell every kind.
    """
    check_identifiable(devices, pairs)
    matrix = design_matrix(devices, pairs)
    factors = np.diag(np.linalg.inv(matrix.T @ matrix))
    return dict(zip(kinds_of(devices), factors.tolist(), strict=True))


def make_plan(
    devices: Sequence[Device],
    trips: int,
    interval_ns: int,
    spread_ns: float,
    *,
    possible: Sequence[Pair] | None = None,
    measurements: int | None = None,
) -> Plan:
    """Return a plan whose worst variance factor is small for its number of measurements.

    A star and one edge, as in the paper, hands the centre's error on to every leaf (factor 7/4). Short odd
    cycles that share no device do better (3/4 each), and a pair of one kind better still (1/4).

    Args:
        devices: All devices.
        trips: Round trips of each pair.
        interval_ns: Time from one round trip to the next.
        spread_ns: Assumed standard deviation of a device's latency. Trips that depend on their neighbours
            count for fewer: give the spread times the root of how many count as one.
        possible: What can be measured; None: every pair of kinds.
        measurements: How many pairs; None: as few as there are kinds, below which nothing is told.

    Raises:
        PlanError: Too few measurements or too many, or no possible pairs tell every kind.
        ReportError: A number of trips, an interval or a spread that is none.
    """
    if trips < 1 or interval_ns <= 0 or not spread_ns >= 0:
        raise ReportError(f"plan: {trips} trips every {interval_ns} ns, spread {spread_ns} ns")
    possible = _every_pair(devices) if possible is None else possible
    base = missing_pairs(devices, (), possible)
    wanted = len(base) if measurements is None else measurements
    if not len(base) <= wanted <= len(possible):
        raise PlanError(f"{wanted} measurements; need {len(base)} for as many kinds, at most {len(possible)}")
    pairs = _fewest(devices, possible)
    pairs += _best_further(devices, pairs, possible, wanted - len(pairs))
    pairs = _exchanged(devices, pairs, possible)
    factors = variance_factors(devices, pairs)
    pair_u_ns = spread_ns * float(np.sqrt(2 / trips))
    return Plan(
        tuple(pairs),
        trips,
        len(pairs) * trips * interval_ns / NS_PER_S,
        factors,
        {kind: COVERAGE_FACTOR * pair_u_ns * float(np.sqrt(factor)) for kind, factor in factors.items()},
    )


class _Parts:
    """Connected parts of a growing graph, each with two sides until an odd cycle closes (union-find)."""

    def __init__(self, nodes: Iterable[Kind]) -> None:
        self._parent = {node: (node, 0) for node in nodes}
        self._odd: set[Kind] = set()

    def join(self, one: Kind, other: Kind) -> bool:
        """Add an edge; return whether the rank grew."""
        (root, side), (other_root, other_side) = self._root(one), self._root(other)
        grows = not {root, other_root} <= self._odd
        if root == other_root:
            grows = grows and side == other_side
            if grows:
                self._odd.add(root)
            return grows
        self._parent[other_root] = root, side ^ other_side ^ 1
        if other_root in self._odd:
            self._odd.add(root)
        return grows

    def is_told(self, node: Kind) -> bool:
        """Return whether the part of a node has an odd cycle."""
        return self._root(node)[0] in self._odd

    def _root(self, node: Kind) -> tuple[Kind, int]:
        side = 0
        while self._parent[node][0] != node:
            node, step = self._parent[node]
            side ^= step
        return node, side


def _joined(devices: Sequence[Device], pairs: Sequence[Pair]) -> _Parts:
    """Return the parts that pairs join kinds to; raises PlanError as `design_matrix`."""
    parts = _Parts(kinds_of(devices))
    for kinds in _kinds_of_pairs(devices, pairs):
        parts.join(*kinds)
    return parts


def _every_pair(devices: Sequence[Device]) -> tuple[Pair, ...]:
    """Return every pair of the first two devices of each kind: further ones tell nothing else."""
    first: dict[Kind, list[str]] = {}
    for device in devices:
        first.setdefault(device.kind, []).append(device.name)
    names = itertools.chain.from_iterable(of_kind[:2] for of_kind in first.values())
    return tuple(itertools.combinations(names, 2))


def _kinds_of_pairs(devices: Sequence[Device], pairs: Sequence[Pair]) -> list[tuple[Kind, Kind]]:
    kind = {device.name: device.kind for device in devices}
    if len(kind) != len(devices):
        raise PlanError(f"devices: names come twice in {[device.name for device in devices]}")
    for one, other in pairs:
        if one == other or not {one, other} <= kind.keys():
            raise PlanError(f"{one}/{other}: need two different devices of {sorted(kind)}")
    return [(kind[one], kind[other]) for one, other in pairs]


def _fewest(devices: Sequence[Device], possible: Sequence[Pair]) -> list[Pair]:
    """Return as many pairs as kinds: the best cover by loops and short odd cycles, the rest as their leaves.

    Triangles come first, but one too many can leave leaves where cycles of five would not: each number of
    triangles is tried, with loops and without.
    """
    kinds = kinds_of(devices)
    links: dict[Kind, dict[Kind, Pair]] = {kind: {} for kind in kinds}
    for pair, (one, other) in zip(possible, _kinds_of_pairs(devices, possible), strict=True):
        links[one].setdefault(other, pair)
        links[other].setdefault(one, pair)
    found: list[tuple[float, float, list[Pair]]] = []
    for loops, triangles in itertools.product((True, False), range(len(kinds) // 3 + 1)):
        pairs = _with_leaves(links, _odd_cycles(links, triangles, loops=loops))
        if pairs is not None:
            factors = variance_factors(devices, pairs).values()
            found.append((max(factors), sum(factors), pairs))
    return min(found, key=lambda each: each[:2])[2]


def _best_further(
    devices: Sequence[Device], pairs: Sequence[Pair], possible: Sequence[Pair], count: int
) -> list[Pair]:
    """Return further pairs, one by one that which lowers the worst factor most (rank-one updates)."""
    left = [pair for pair in possible if pair not in pairs]
    matrix = design_matrix(devices, pairs)
    covariance = np.linalg.inv(matrix.T @ matrix)
    added: list[Pair] = []
    for _ in range(count):
        rows = design_matrix(devices, left)
        gains = rows @ covariance
        factors = np.diag(covariance) - gains**2 / (1 + np.sum(gains * rows, axis=1, keepdims=True))
        best = int(np.lexsort((factors.sum(axis=1), factors.max(axis=1).round(9)))[0])
        gain = gains[best]
        covariance = covariance - np.outer(gain, gain) / (1 + gain @ rows[best])
        added.append(left.pop(best))
    return added


def _exchanged(devices: Sequence[Device], pairs: Sequence[Pair], possible: Sequence[Pair]) -> list[Pair]:
    """Return pairs of which no one can be exchanged for a better one (V. Fedorov's exchange).

    The sum of the factors leads out of plans in which no single exchange helps the worst one: it goes first.
    """
    rows = design_matrix(devices, possible)
    products = rows[:, :, None] * rows[:, None, :]
    first = [possible.index(pair) for pair in pairs]
    plans = [
        _exchange(products, _exchange(products, first, np.sum), np.max),
        _exchange(products, first, np.max),
    ]
    best = min(plans, key=lambda plan: _lowest(products[plan].sum(axis=0)[None], np.max)[0])
    return [possible[index] for index in best]


def _exchange(products: Floats, first: Sequence[int], of_factors: _OfFactors) -> list[int]:
    """Return a plan, exchanged until nothing makes it better, as indices of products of rows."""
    chosen = list(first)
    lowest, _ = _lowest(products[chosen].sum(axis=0)[None], of_factors)
    while True:
        left = np.setdiff1d(np.arange(len(products)), chosen)
        found: list[tuple[float, int, int]] = []
        for place, index in enumerate(chosen if len(left) else ()):
            others = products[chosen].sum(axis=0) - products[index]
            value, best = _lowest(others + products[left], of_factors)
            found.append((value, place, int(left[best])))
        if not found or min(found)[0] >= lowest:
            return chosen
        lowest, place, index = min(found)
        chosen[place] = index


def _lowest(informations: Floats, of_factors: _OfFactors) -> tuple[float, int]:
    """Return the lowest value of the factors of plans and the plan that has it, by XᵀX of each."""
    told = np.flatnonzero(np.linalg.det(informations) > 0.5)  # a whole number: 0 where a kind is not told
    if not len(told):
        return np.inf, 0
    factors = np.diagonal(np.linalg.inv(informations[told]), axis1=1, axis2=2)
    values = of_factors(factors, axis=1).round(9)
    return float(values.min()), int(told[values.argmin()])


def _odd_cycles(links: _Links, triangles: int, *, loops: bool) -> list[list[Kind]]:
    """Return odd cycles without a common node: loops, so many triangles, then ever longer ones."""
    cycles = [[kind] for kind in links if loops and kind in links[kind]]
    free = set(links) - {kind for cycle in cycles for kind in cycle}
    for length, most in ((3, triangles), (5, len(links)), (3, len(links)), (None, len(links))):
        for _ in range(most):
            cycle = _shortest_odd(links, free) if length is None else _cycle(links, free, length)
            if cycle is None:
                break
            cycles.append(cycle)
            free -= set(cycle)
    return cycles


def _cycle(links: _Links, free: set[Kind], length: int) -> list[Kind] | None:
    """Return a cycle of so many free nodes: a search in depth."""
    if _shortest_odd(links, free) is None:
        return None

    def extended(path: list[Kind]) -> list[Kind] | None:
        if len(path) == length:
            return path if path[0] in links[path[-1]] else None
        further = (node for node in links[path[-1]] if node in free and node not in path)
        return next((whole for node in further if (whole := extended([*path, node]))), None)

    ordered = (node for node in links if node in free)
    return next((whole for node in ordered if (whole := extended([node]))), None)


def _shortest_odd(links: _Links, free: set[Kind]) -> list[Kind] | None:
    """Return the shortest odd cycle of three free nodes or more: from each, back to it on its odd side."""
    found: list[Kind] | None = None
    for root in (node for node in links if node in free):
        came: dict[tuple[Kind, int], Kind] = {(root, 0): root}
        queue = deque([(root, 0)])
        while queue and (root, 1) not in came:
            node, side = queue.popleft()
            for other in links[node]:
                if other in free and other != node and (other, side ^ 1) not in came:
                    came[other, side ^ 1] = node
                    queue.append((other, side ^ 1))
        if (root, 1) not in came:
            continue
        cycle, node, side = [root], came[root, 1], 0
        while (node, side) != (root, 0):
            cycle.append(node)
            node, side = came[node, side], side ^ 1
        if found is None or len(cycle) < len(found):
            found = cycle
    return found


def _with_leaves(links: _Links, cycles: Sequence[Sequence[Kind]]) -> list[Pair] | None:
    """Return the pairs of cycles, then each other node's pair with the neighbour that is told best.

    None where a part of the graph has none of the cycles.
    """
    pairs: list[Pair] = []
    factor: dict[Kind, float] = {}
    for cycle in cycles:
        pairs += [links[one][other] for one, other in zip(cycle, [*cycle[1:], cycle[0]], strict=True)]
        factor |= dict.fromkeys(cycle, len(cycle) / 4)
    while len(factor) < len(links):
        steps = [(factor[near], near, node) for near in factor for node in links[near] if node not in factor]
        if not steps:
            return None
        told, near, node = min(steps, key=lambda step: step[0])
        factor[node] = told + 1
        pairs.append(links[near][node])
    return pairs
