# SPDX-License-Identifier: Apache-2.0
"""Sums of round trips that have to agree, whatever the devices' latencies are.

Who asks and who reflects makes no difference to send + receive of both, so swapped roles agree. Of four
devices RTT_AB + RTT_CD = RTT_AC + RTT_BD: both are the sum over all four. Either holds for mean and variance
where trips are independent. E_n holds the difference of both sides against its own U: pairs whose turns
alternate share what changed meanwhile, and that cancels.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from reports.normalised_error import normalised_error
from reports.software_latency.spread import Spread
from reports.software_latency.trips import Floats, PairResult

ClosureKind: TypeAlias = Literal["swapped roles", "four devices"]
_Links: TypeAlias = Mapping[frozenset[str], Floats]
"""Of each link the weights of the pairs that are summed, shape (pairs,)."""


@dataclass(frozen=True, slots=True)
class Closure:
    """Two sums that have to agree, in ns (mean, order 1) or ns² (variance, order 2).

    Attributes:
        kind: Why they have to.
        order: 1 mean, 2 variance.
        one_name: Pairs of one side, as `A/B + C/D`.
        other_name: Pairs of the other.
        one: Sum of one side.
        other: Sum of the other.
        expanded: U of their difference.
        hardware_ns: How much of it is of cables and switches whose latency does not cancel.
        en: E_n: the difference over its U.
    """

    kind: ClosureKind
    order: Literal[1, 2]
    one_name: str
    other_name: str
    one: float
    other: float
    expanded: float
    hardware_ns: float
    en: float

    @property
    def unit(self) -> str:
        """Unit of both sums and of their U."""
        return "ns" if self.order == 1 else "ns²"

    @property
    def agrees(self) -> bool:
        """Return whether both agree within their U; by chance one in twenty-two does not."""
        return self.en <= 1


def closures(
    measured: Sequence[PairResult], spread: Spread, left_out: Collection[str] = ()
) -> tuple[Closure, ...]:
    """Return every closure that a set of pairs can tell: swapped roles first, then four devices.

    Args:
        measured: One a pair and role. What was measured more than once goes in as its mean, and a pair of
            four devices as the mean of its roles.
        spread: How they vary.
        left_out: Devices whose pairs are in no sum.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for place, each in enumerate(measured):
        if not {each.asker, each.reflector} & set(left_out):
            places.setdefault((each.asker, each.reflector), []).append(place)
    directed = {role: _mean_of(own, len(measured)) for role, own in places.items()}
    links: dict[frozenset[str], Floats] = {}
    for (asker, reflector), weights in directed.items():
        swapped = directed.get((reflector, asker))
        both = weights if swapped is None else (weights + swapped) / 2
        links[frozenset((asker, reflector))] = both
    sides = (*_swapped(directed), *_four(links))
    return tuple(_compared(side, order, measured, spread) for side in sides for order in (1, 2))


@dataclass(frozen=True, eq=False)
class _Sides:
    kind: ClosureKind
    names: tuple[str, str]
    one: Floats
    other: Floats


def _swapped(directed: Mapping[tuple[str, str], Floats]) -> Iterator[_Sides]:
    for (asker, reflector), weights in directed.items():
        if asker < reflector and (reflector, asker) in directed:
            names = f"{asker}/{reflector}", f"{reflector}/{asker}"
            yield _Sides("swapped roles", names, weights, directed[reflector, asker])


def _four(links: _Links) -> Iterator[_Sides]:
    """Compare every two of the three ways to make two pairs of four devices."""
    for a, b, c, d in itertools.combinations(sorted(frozenset[str]().union(*links)), 4):
        ways = (((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c)))
        whole = [way for way in ways if all(frozenset(pair) in links for pair in way)]
        for sides in itertools.combinations(whole, 2):
            one, other = (links[frozenset(way[0])] + links[frozenset(way[1])] for way in sides)
            names = tuple(" + ".join("/".join(pair) for pair in way) for way in sides)
            yield _Sides("four devices", (names[0], names[1]), one, other)


def _mean_of(places: Sequence[int], pairs: int) -> Floats:
    weights = np.zeros(pairs)
    weights[list(places)] = 1 / len(places)
    return weights


def _compared(sides: _Sides, order: Literal[1, 2], measured: Sequence[PairResult], spread: Spread) -> Closure:
    values = np.array([each.cumulants[order - 1] for each in measured])
    one, other = float(sides.one @ values), float(sides.other @ values)
    weights = (sides.one - sides.other)[None, :]
    hardware_ns = float(spread.hardware(weights)[0]) if order == 1 else 0.0
    expanded = float(spread.expanded(weights, order)[0]) + hardware_ns
    en = normalised_error(one, other, expanded, 0.0)
    return Closure(sides.kind, order, *sides.names, one, other, expanded, hardware_ns, en)
