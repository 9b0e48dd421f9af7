# SPDX-License-Identifier: Apache-2.0
"""Sums of round trips that have to agree, whatever the devices' latencies are.

Who asks and who reflects makes no difference to send + receive of both, so swapped roles agree. Of four
devices RTT_AB + RTT_CD = RTT_AC + RTT_BD: both are the sum over all four. Either holds for mean and variance
where trips are independent. The two sides share no pair, so E_n judges them by the U of each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from reports.normalised_error import normalised_error
from reports.software_latency.estimate import expand
from reports.software_latency.trips import Measured

ClosureKind: TypeAlias = Literal["swapped roles", "four devices"]
_Terms: TypeAlias = Sequence[tuple[Measured, float]]
_Links: TypeAlias = Mapping[frozenset[str], _Terms]


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
        one_expanded: U of one side.
        other_expanded: U of the other.
        en: E_n of both.
    """

    kind: ClosureKind
    order: Literal[1, 2]
    one_name: str
    other_name: str
    one: float
    other: float
    one_expanded: float
    other_expanded: float
    en: float

    @property
    def unit(self) -> str:
        """Unit of both sums and of their U."""
        return "ns" if self.order == 1 else "ns²"

    @property
    def agrees(self) -> bool:
        """Return whether both agree within their U; by chance one in twenty-two does not."""
        return self.en <= 1


def closures(measured: Sequence[Measured]) -> tuple[Closure, ...]:
    """Return every closure that a set of pairs can tell: swapped roles first, then four devices.

    Args:
        measured: One a pair and role. What was measured more than once goes in as its mean, and a pair of
            four devices as the mean of its roles.
    """
    roles: dict[tuple[str, str], list[Measured]] = {}
    for each in measured:
        roles.setdefault((each.asker, each.reflector), []).append(each)
    directed = {role: _mean_of(found) for role, found in roles.items()}
    links: dict[frozenset[str], _Terms] = {}
    for (asker, reflector), terms in directed.items():
        swapped = directed.get((reflector, asker), ())
        share = 0.5 if swapped else 1.0
        links[frozenset((asker, reflector))] = [(each, weight * share) for each, weight in (*terms, *swapped)]
    return (*_swapped(directed), *_four(links))


def _swapped(directed: Mapping[tuple[str, str], _Terms]) -> Iterator[Closure]:
    for (asker, reflector), terms in directed.items():
        if asker < reflector and (reflector, asker) in directed:
            names = f"{asker}/{reflector}", f"{reflector}/{asker}"
            yield from _compared("swapped roles", names, terms, directed[reflector, asker])


def _four(links: _Links) -> Iterator[Closure]:
    """Compare every two of the three ways to make two pairs of four devices."""
    for a, b, c, d in itertools.combinations(sorted(frozenset[str]().union(*links)), 4):
        ways = (((a, b), (c, d)), ((a, c), (b, d)), ((a, d), (b, c)))
        whole = [way for way in ways if all(frozenset(pair) in links for pair in way)]
        for sides in itertools.combinations(whole, 2):
            one, other = ([*links[frozenset(way[0])], *links[frozenset(way[1])]] for way in sides)
            names = tuple(" + ".join("/".join(pair) for pair in way) for way in sides)
            yield from _compared("four devices", (names[0], names[1]), one, other)


def _mean_of(found: Sequence[Measured]) -> _Terms:
    return [(each, 1 / len(found)) for each in found]


def _compared(kind: ClosureKind, names: tuple[str, str], one: _Terms, other: _Terms) -> Iterator[Closure]:
    for order in (1, 2):
        (value, expanded), (other_value, other_expanded) = _sum(one, order), _sum(other, order)
        en = normalised_error(value, other_value, expanded, other_expanded)
        yield Closure(kind, order, *names, value, other_value, expanded, other_expanded, en)


def _sum(terms: _Terms, order: int) -> tuple[float, float]:
    """Return a weighted sum of cumulants of one order, and its U."""
    value = math.fsum(each.cumulants[order - 1] * weight for each, weight in terms)
    standard = np.array([[each.standard[order - 1] * weight for each, weight in terms]])
    return value, float(expand(standard, np.array([each.freedom for each, _ in terms]))[0])
