# SPDX-License-Identifier: Apache-2.0
"""Which series of a run are followed over time, which way each is worse, and what a run is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboards.branch import ADHOC, MAIN, RELEASE, REQUEST
from dashboards.points import EDGES, LATENCY, SYNC
from dashboards.regressions.adviser import Worse

UNIT = "ns"
VALUE = "value_ns"

WATCHED: dict[str, tuple[str, ...]] = {
    LATENCY: (VALUE, "p50_ns", "p99_ns"),
    SYNC: (VALUE,),
    EDGES: (VALUE,),
}
"""Fields by measurement. One message decides a maximum: median and p99 of a stream say more of it."""

SIGNED = frozenset(
    {
        "sync_offset",
        "clock_witness_difference",
        "clock_step",
        "path_shift",
        "edge_delay",
        "edge_error_shift",
    }
)
"""Quantities that may be below zero and are the better the nearer to it: they get worse by magnitude."""

LARGER_IS_BETTER = frozenset({"edge_deviation_difference"})
"""Quantities that have a lower limit only."""

COMPARED_WITH = {MAIN: MAIN, RELEASE: RELEASE, REQUEST: MAIN, ADHOC: ADHOC}
"""Class of the branch of a run → class whose history it is compared with.

What a request changes is not yet part of main, and other requests have changed something else: only main
says what the values were without it. Changes that last cannot be told from the one run that a request has; it
is held against main's baseline instead.
"""


@dataclass(frozen=True, slots=True)
class Watched:
    """One field of a series of a run.

    Attributes:
        tags: Those of the events of this series: the statistic is that of the field.
    """

    measurement: str
    field: str
    tags: dict[str, str]
    worse: Worse


def watched(measurement: str, tags: Mapping[str, str]) -> list[Watched]:
    """Return the fields of a series that are followed."""
    found: list[Watched] = []
    for field in WATCHED.get(measurement, ()):
        own = dict(tags)
        if field != VALUE:
            own["statistic"] = field.removesuffix("_ns")
        found.append(Watched(measurement, field, own, worse_of(tags.get("quantity", ""))))
    return found


def worse_of(quantity: str) -> Worse:
    """Return which way a quantity gets worse."""
    if quantity in SIGNED:
        return "farther from zero"
    return "lower" if quantity in LARGER_IS_BETTER else "higher"
