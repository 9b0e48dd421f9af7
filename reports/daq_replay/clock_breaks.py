# SPDX-License-Identifier: Apache-2.0
"""Whose clock broke a line of two-way transfer, and whether it was stepped or changed its rate.

A line between two clocks breaks for either of them. Where the lines to all clocks break together it was the
consumer's own, to which all of them are drawn. Before and after a break each line has a rate: where the two
differ by more than the exchanges leave open, and the lines meet at the break, the clock was not stepped.

What a break means for the streams: docs/latency.md, `A clock that breaks its line`.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.tools.answers import ClockResult, ClockStep, RecvResult, SendResult
from reports.units import format_value

OWN = "local"
"""Name of the consumer's clock."""
AROUND_NS = 30_000_000_000
"""So much of a line before and after a break tells its rate."""
WANDER_PPB = 20_000
"""A sound clock's rate changes by less within `AROUND_NS`."""
PPB = 1_000_000_000

Point = tuple[int, int, int]
"""Local TAI, offset and bound of an exchange, in ns."""


@dataclass(frozen=True, slots=True)
class ClockBreak:
    """A clock left its line.

    Attributes:
        clock: Its name; `OWN`: the consumer's.
        from_tai_ns: The last exchange on the line before, in the consumer's time.
        to_tai_ns: The first exchange off it.
        step_ns: What that one was off; positive: the clock is ahead.
        rate_change_ppb: By how much its rate changed, where that explains the break; None: it was stepped.
        lines: To how many clocks the line broke; 1 where one clock alone is the cause.
    """

    clock: str
    from_tai_ns: int
    to_tai_ns: int
    step_ns: int
    rate_change_ppb: int | None = None
    lines: int = 1

    def shift_ns(self, end_tai_ns: int) -> int:
        """Return how far the clock is from where it would have been at the end of the counted time, in ns."""
        if self.rate_change_ppb is None:
            return abs(self.step_ns)
        return abs(self.rate_change_ppb) * max(0, end_tai_ns - self.from_tai_ns) // PPB

    def __str__(self) -> str:
        """Return what happened, in words."""
        together = f": the lines to all {self.lines} clocks broke together" if self.lines > 1 else ""
        if self.rate_change_ppb is None:
            return f"clock {self.clock} stepped by {format_value(self.step_ns, 'ns')}{together}"
        change = format_value(abs(self.rate_change_ppb) / 1000, "ppm", 3)
        way = "faster" if self.rate_change_ppb > 0 else "slower"
        return f"clock {self.clock} ran {change} {way} than before{together}"


def clock_breaks(recv: RecvResult) -> list[ClockBreak]:
    """Return the breaks that the consumer reports, each named after the clock that made it."""
    own = [
        ClockBreak(OWN, s.time_tai_ns, s.time_tai_ns, s.step_ns) for s in recv.clock_steps if s.clock == OWN
    ]
    seen = [each for clock in recv.clocks for each in _of_clock(clock, recv.clock_steps)]
    known = {clock.name for clock in recv.clocks}
    unknown = [s for s in recv.clock_steps if s.clock != OWN and s.clock not in known]
    others = [ClockBreak(s.clock, s.time_tai_ns, s.time_tai_ns, s.step_ns) for s in unknown]
    drawn = sum(bool(clock.series) for clock in recv.clocks)
    breaks = list(own)
    for group in _together([each for each in seen if not any(_overlap(each, step) for step in own)]):
        whose = len({each.clock for each in group})
        breaks += [_as_own(group)] if whose == drawn > 1 and _same_way(group) else group
    return sorted([*breaks, *others], key=lambda each: each.to_tai_ns)


def _of_clock(clock: ClockResult, steps: Sequence[ClockStep]) -> list[ClockBreak]:
    """Return the breaks of one clock's line."""
    points = clock.series
    reported = [step for step in steps if step.clock == clock.name]
    first_off = [max(0, bisect_right(points, step.time_tai_ns, key=_time) - 1) for step in reported]
    edges = [0, *first_off, len(points)]
    found: list[ClockBreak] = []
    for number, step in enumerate(reported):
        begin, at, end = edges[number : number + 3]
        from_ns = points[at - 1][0] if at > 0 else step.time_tai_ns
        to_ns = points[at][0] if points else step.time_tai_ns
        change = None
        if begin < at < end:
            first = bisect_left(points, points[at - 1][0] - AROUND_NS, begin, at, key=_time)
            last = bisect_right(points, points[at][0] + AROUND_NS, at, end, key=_time)
            change = _rate_change_ppb(points[first:at], points[at:last])
        found.append(ClockBreak(clock.name, from_ns, max(from_ns, to_ns), step.step_ns, change))
    return found


def _time(point: Point) -> int:
    return point[0]


def _rate_change_ppb(before: Sequence[Point], after: Sequence[Point]) -> int | None:
    """Return the change of rate that explains a break; None: it does not.

    Args:
        before: Exchanges on the line before it, none longer ago than AROUND_NS.
        after: Exchanges on the line behind it, likewise.
    """
    if len(before) < 2 or len(after) < 2:
        return None
    (rate_before, left_open_before), (rate_after, left_open_after) = _rate(before), _rate(after)
    change = rate_after - rate_before
    if abs(change) <= left_open_before + left_open_after + WANDER_PPB:
        return None
    (t0, offset0, bound0), (t1, offset1, bound1) = before[-1], after[0]
    # The two lines meet so long after the last exchange on the first one.
    meet_ns = (offset0 - offset1 + rate_after * (t1 - t0) / PPB) * PPB / change
    known_to_ns = (bound0 + bound1) * PPB / abs(change)
    return round(change) if -known_to_ns <= meet_ns <= t1 - t0 + known_to_ns else None


def _rate(points: Sequence[Point]) -> tuple[float, float]:
    """Return the rate of a line in ppb, and what the bounds of its exchanges leave open of it."""
    span_ns = points[-1][0] - points[0][0]
    (first_ns, first_offset_ns, _bound), bounds_ns = (
        points[0],
        [bound_ns for _time, _offset, bound_ns in points],
    )
    line = statistics.linear_regression(
        [time_ns - first_ns for time_ns, _offset, _bound in points],
        [offset_ns - first_offset_ns for _time, offset_ns, _bound in points],
    )
    return line.slope * PPB, 2 * statistics.median(bounds_ns) * PPB / span_ns


def _together(breaks: Sequence[ClockBreak]) -> list[list[ClockBreak]]:
    """Return breaks in groups whose times overlap."""
    groups: list[list[ClockBreak]] = []
    for each in sorted(breaks, key=lambda one: one.from_tai_ns):
        if groups and any(_overlap(each, other) for other in groups[-1]):
            groups[-1].append(each)
        else:
            groups.append([each])
    return groups


def _overlap(one: ClockBreak, other: ClockBreak) -> bool:
    return one.from_tai_ns <= other.to_tai_ns and other.from_tai_ns <= one.to_tai_ns


def _same_way(group: Sequence[ClockBreak]) -> bool:
    return all(each.step_ns > 0 for each in group) or all(each.step_ns < 0 for each in group)


def _as_own(group: Sequence[ClockBreak]) -> ClockBreak:
    """Return breaks of the lines to all clocks as one of the consumer's, which goes the other way."""
    changes = [each.rate_change_ppb for each in group if each.rate_change_ppb is not None]
    is_rate = 2 * len(changes) >= len(group)
    return ClockBreak(
        OWN,
        max(each.from_tai_ns for each in group),
        min(each.to_tai_ns for each in group),
        -round(statistics.median(each.step_ns for each in group)),
        -round(statistics.median(changes)) if is_rate else None,
        len(group),
    )


@dataclass(frozen=True, slots=True)
class ClockCauses:
    """Why streams may not be judged, by what clocks did.

    Attributes:
        of_all: Of every stream of the replay.
        of_clock: Of those alone whose producers stamp with a clock, by its name.
    """

    of_all: tuple[str, ...]
    of_clock: Mapping[str, tuple[str, ...]]


def clock_causes(
    recv: RecvResult, sends: Sequence[SendResult], clock_of_producer: Mapping[int, str], witness_clock: str
) -> ClockCauses:
    """Return what breaks of clocks mean for the streams of a replay.

    A producer's own clock takes its own streams alone, where that clock is neither the witness's nor the only
    one, and its messages are shifted by no more than the shortest of their periods: the load of every period
    is then what the pattern says.

    Args:
        recv: The consumer's result.
        sends: The producers' results.
        clock_of_producer: Name of the clock that each producer stamps with.
        witness_clock: Name of the clock that the witness stamps with.
    """
    of_all: dict[str, None] = {}
    of_clock: dict[str, dict[str, None]] = {}
    breaks = clock_breaks(recv)
    told = {each.clock for each in breaks}
    of_senders = [each for each in _of_senders(sends, clock_of_producer) if each.clock not in told]
    for each in [*breaks, *of_senders]:
        periods_ns = [s.period_ns for s in recv.streams if clock_of_producer.get(s.producer) == each.clock]
        is_alone = len({*clock_of_producer.values()}) == 1
        is_shared = each.clock in (OWN, witness_clock) or not periods_ns or is_alone
        if is_shared or not recv.valid or each.shift_ns(recv.end_tai_ns) > min(periods_ns):
            of_all[str(each)] = None
        else:
            of_clock.setdefault(each.clock, {})[str(each)] = None
    return ClockCauses(tuple(of_all), {clock: tuple(causes) for clock, causes in of_clock.items()})


def _of_senders(sends: Sequence[SendResult], clock_of_producer: Mapping[int, str]) -> list[ClockBreak]:
    """Return what producers saw of their own clocks."""
    return [
        ClockBreak(clock, step.time_tai_ns, step.time_tai_ns, step.step_ns)
        for send in sends
        for step in send.clock_steps
        for clock in sorted({clock_of_producer.get(each.producer, step.clock) for each in send.streams})
    ]
