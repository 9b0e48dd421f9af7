# SPDX-License-Identifier: Apache-2.0
"""Which streams a clock takes that broke its line: docs/latency.md, `A clock that breaks its line`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

WITNESS_CLOCK = "host"
OWN = "local"
ABOUT, ABOUT_NS = 0.1, 1_000_000
"""How well a clock's shift is known: a tenth, and a millisecond."""

Json = Mapping[str, Any]


def touched(recv: Json, sends: Sequence[Json], clock_of: Mapping[int, str], stream: Json) -> frozenset[bool]:
    """Say whether a clock's break takes the verdict of a stream; both answers where that is too close.

    Args:
        recv: The consumer's result.
        sends: The producers' results.
        clock_of: Name of each producer's clock.
        stream: As the consumer reports it.
    """
    breaks: list[tuple[str, float]] = []
    for step in recv["clock_steps"]:
        if step["clock"] == OWN or not recv["valid"] or _is_of_all(recv, step):
            return frozenset({True})
        breaks.append((step["clock"], _shift(recv, step)))
    for send in sends:
        names = {clock_of.get(each["producer"], "") for each in send["streams"]}
        breaks += [(name, abs(step["step_ns"])) for step in send["clock_steps"] for name in names]
    own = clock_of.get(stream["producer"], "")
    answers: list[frozenset[bool]] = [_takes(recv, clock_of, name, shift, own) for name, shift in breaks]
    if any(answer == frozenset({True}) for answer in answers):
        return frozenset({True})
    return frozenset({False}).union(*answers)


def _takes(recv: Json, clock_of: Mapping[int, str], name: str, shift: float, own: str) -> frozenset[bool]:
    periods = [s["period_ns"] for s in recv["streams"] if clock_of.get(s["producer"]) == name]
    if name in (own, WITNESS_CLOCK) or not periods or len(set(clock_of.values())) == 1:
        return frozenset({True})
    slack = ABOUT * shift + ABOUT_NS
    return frozenset({shift + slack > min(periods), shift - slack > min(periods)})


def _interval(recv: Json, step: Json) -> tuple[int, int]:
    """Return the last exchange of a clock before a break, and the one that found it."""
    series = _series(recv, step)
    count = bisect_right(series, step["time_tai_ns"], key=_time)
    last = series[count - 1][0] if count else step["time_tai_ns"]
    return (series[count - 2][0] if count > 1 else step["time_tai_ns"], last)


def _series(recv: Json, step: Json) -> list[list[int]]:
    """Return the exchanges with the clock of a step: local TAI, offset and bound, ns."""
    none: list[list[int]] = []
    return next((clock["series"] for clock in recv["clocks"] if clock["name"] == step["clock"]), none)


def _time(row: Sequence[int]) -> int:
    return row[0]


def _is_of_all(recv: Json, step: Json) -> bool:
    """Say whether the lines to all clocks broke with this one, the same way."""
    names = {clock["name"] for clock in recv["clocks"] if clock["series"]}
    begin, end = _interval(recv, step)
    with_it = set[str]()
    for other in recv["clock_steps"]:
        first, last = _interval(recv, other)
        if first <= end and begin <= last and (other["step_ns"] > 0) == (step["step_ns"] > 0):
            with_it.add(other["clock"])
    return len(names) > 1 and names <= with_it


def _shift(recv: Json, step: Json) -> float:
    """Return how far a clock is at the end from where its line before the break would have led, ns."""
    series = _series(recv, step)
    _begin, broke = _interval(recv, step)
    first_after = bisect_left(series, broke, key=_time)
    behind = bisect_right(series, recv["end_tai_ns"], key=_time)
    if first_after < 2 or behind <= first_after:
        return float(abs(step["step_ns"]))
    chosen = (series[0], series[first_after - 1], series[behind - 1])
    (t0, offset0, _), (t1, offset1, _), (t2, offset2, _) = chosen
    led = offset1 + (offset1 - offset0) * (t2 - t1) / (t1 - t0)
    return max(float(abs(step["step_ns"])), abs(offset2 - led))
