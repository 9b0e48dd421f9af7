# SPDX-License-Identifier: Apache-2.0
"""Who had the time of messages that are late: suspects, each with the share of the excess that it explains.

A message stays at a node from one moment to another. Whatever was active there meanwhile (a thread, an
interrupt, a softirq, a closed window of TCP, a machine held up) took that much of its time. Of a late
message counts what exceeds the mean of those that are not late, and no more than its own excess.

What happens to be active at the right moments explains as much by chance. So each group of late messages is
moved to other places of the record, by itself, SHIFTS times: a cause explains what it does in no more than
CHANCE of them. Groups are moved one by one, for a cause of a period fits its own pattern wherever the whole
of it is moved by that period.

What several have a part in is named if all that chance does not explain comes to HALF together. Otherwise the
cause was not recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.errors import ReportError

Times: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]
Spans: TypeAlias = list[tuple[int, int]]

HALF = 0.5
"""Of the excess: so much has to be explained, with its interval."""
CHANCE = 0.001
"""How often a moved cause may explain as much."""
SHIFTS = 2000
LEAST_PART = 0.1
"""Of the excess: a smaller part in it is not named."""
GROUP_GAP = 3
"""Messages that are not late between two groups of late ones."""
DRAWS = 1000
COVERAGE = 0.95
LATE_MAX = 1500
"""Late messages that are moved; of more, whole groups are drawn."""


@dataclass(frozen=True, slots=True)
class Stay:
    """Where each message was, in ns of one timeline, shape (n,); begin after end: it was not there.

    Attributes:
        node: Where.
        begin_ns: From when on.
        end_ns: Until when.
        u_ns: Expanded uncertainty of both, one for all.
    """

    node: str
    begin_ns: Times
    end_ns: Times
    u_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Activity:
    """When something was active, in ns of the same timeline: sorted, one after the other, shape (k,).

    Activities of one node exclude each other: whoever was interrupted was not active meanwhile.

    Attributes:
        name: Such as `thread stress-ng-cpu` or `softirq NET_RX`.
        node: Where.
    """

    name: str
    node: str
    begin_ns: Times
    end_ns: Times


@dataclass(frozen=True, slots=True)
class Suspect:
    """What has a part in the excess.

    Attributes:
        name: Of the activity.
        node: Where.
        share: Of the whole excess, 0..1.
        low: Lower end of its interval (95 %).
        high: Upper end.
        chance: Share of moved copies that explain as much; 1: its part is too small to be named.
    """

    name: str
    node: str
    share: float
    low: float
    high: float
    chance: float


@dataclass(frozen=True, slots=True)
class Finding:
    """Why messages are late.

    Attributes:
        named: Those who explain it together, the largest first; none: not recorded.
        explained: Share of the excess that these explain.
        unknown: Share of the excess of messages during which something was not recorded.
        groups: How many groups of late messages there are.
        seen: All that were looked at, the largest share first.
    """

    named: tuple[Suspect, ...]
    explained: float
    unknown: float
    groups: int
    seen: tuple[Suspect, ...]


def suspects(
    excess_ns: Floats,
    late: Flags,
    stays: Sequence[Stay],
    activities: Sequence[Activity],
    *,
    unrecorded: Mapping[str, tuple[Times, Times]] | None = None,
    seed: int = 1,
) -> Finding:
    """Tell who had the time of late messages.

    Args:
        excess_ns: By how much each message is above its level without the pattern, shape (n,).
        late: Those that carry the pattern, shape (n,), at least one.
        stays: Where messages were, each of n of them.
        activities: What is recorded.
        unrecorded: Of a node: begin and end of stretches of which the record has nothing, as of an activity.
        seed: Of shifts and draws.

    Raises:
        ReportError: No message is late, or shapes differ.
    """
    n = len(excess_ns)
    if len(late) != n or any(len(stay.begin_ns) != n or len(stay.end_ns) != n for stay in stays):
        raise ReportError("suspects: each message needs its excess, whether it is late, and its stays")
    late = late & (excess_ns > 0)
    if not late.any():
        raise ReportError("suspects: no message is late")
    rng = np.random.default_rng(seed)
    # TAI in ns is beyond what a float knows to the ns.
    origin = min((int(stay.begin_ns.min()) for stay in stays), default=0)
    stays = [replace(each, begin_ns=each.begin_ns - origin, end_ns=each.end_ns - origin) for each in stays]
    group = _groups(late)
    chosen = _chosen(group, rng)
    excess = excess_ns[chosen]
    seen: list[_Seen] = []
    for activity in activities:
        there = [stay for stay in stays if stay.node == activity.node]
        if there and len(activity.begin_ns):
            moved = replace(activity, begin_ns=activity.begin_ns - origin, end_ns=activity.end_ns - origin)
            seen.append(_suspect(moved, there, (excess, late, chosen, group[chosen]), rng))
    seen.sort(key=lambda each: -each.suspect.share)
    named = [each for each in seen if each.suspect.chance <= CHANCE and each.suspect.share >= LEAST_PART]
    explained = np.minimum(sum((each.explained for each in named), np.zeros(len(chosen))), excess)
    low, _ = _interval(explained, excess, group[chosen], rng)
    lost = {node: (begin - origin, end - origin) for node, (begin, end) in (unrecorded or {}).items()}
    unknown = _unknown(stays, lost, chosen)
    if not named or low - sum(each.off for each in named) < HALF:
        named, explained = [], np.zeros(len(chosen))
    return Finding(
        tuple(each.suspect for each in named),
        float(explained.sum() / excess.sum()),
        float(excess[unknown].sum() / excess.sum()),
        int(group.max()) + 1,
        tuple(each.suspect for each in seen),
    )


@dataclass(frozen=True, slots=True)
class _Seen:
    """A suspect, what it explains of each chosen message in ns, and what clocks may take off its share."""

    suspect: Suspect
    explained: Floats
    off: float


def _groups(late: Flags) -> Times:
    """Number groups of late messages, shape (n,); -1: not late. Some that are not late may lie within one."""
    places = np.flatnonzero(late)
    number = np.full(len(late), -1, np.int64)
    number[places] = np.concatenate(([0], np.cumsum(np.diff(places) > GROUP_GAP)))
    return number


def _chosen(group: Times, rng: np.random.Generator) -> Times:
    """Return late messages, of many those of groups that are drawn."""
    late = np.flatnonzero(group >= 0)
    if len(late) <= LATE_MAX:
        return late
    order = rng.permutation(int(group.max()) + 1)
    sizes = np.bincount(group[late])[order]
    kept = order[: max(1, int(np.searchsorted(np.cumsum(sizes), LATE_MAX)))]
    return late[np.isin(group[late], kept)]


def _suspect(
    activity: Activity,
    stays: Sequence[Stay],
    of: tuple[Floats, Flags, Times, Times],
    rng: np.random.Generator,
) -> _Seen:
    excess, late, chosen, group = of
    busy = _Busy(activity)
    usual = [busy.within(stay.begin_ns[~late], stay.end_ns[~late]) for stay in stays]
    mean = float(sum(each.mean() for each in usual)) if usual[0].size else 0.0

    def explained(moved_ns: Floats | float) -> Floats:
        took = np.zeros(len(chosen))
        for stay in stays:
            begin, end = (each[chosen].astype(np.float64) for each in (stay.begin_ns, stay.end_ns))
            took += busy.within(begin + moved_ns, end + moved_ns)
        return np.clip(took - mean, 0, excess)

    found = explained(0.0)
    whole = float(excess.sum())
    share = float(found.sum()) / whole
    chance = 1.0
    if share >= LEAST_PART:
        first = min(int(stay.begin_ns.min()) for stay in stays)
        span = max(int(stay.end_ns.max()) for stay in stays) - first
        busy.repeat(first, span)
        chance = _chance(
            lambda moved: float(explained(moved[group]).sum()), float(found.sum()), span, rng, group
        )
    low, high = _interval(found, excess, group, rng)
    u = max(stay.u_ns for stay in stays)
    shares = [share, *(float(explained(moved).sum()) / whole for moved in (-u, u))]
    off = share - min(shares)
    low, high = max(low - off, 0.0), min(high - share + max(shares), 1.0)
    return _Seen(Suspect(activity.name, activity.node, share, low, high, chance), found, off)


def _chance(
    explained: Callable[[Floats], float],
    as_found: float,
    span_ns: int,
    rng: np.random.Generator,
    group: Times,
) -> float:
    """Return the share of copies, each group moved by itself, that explain as much; soon if it is large."""
    count, as_much = int(group.max()) + 1, 0
    for number in range(1, SHIFTS + 1):
        as_much += explained(rng.uniform(0, span_ns, count)) >= as_found
        if as_much > SHIFTS * CHANCE * 5:
            return as_much / number
    return as_much / SHIFTS


def without(activity: Activity, begin_ns: Times, end_ns: Times) -> Activity:
    """Return an activity without stretches in which it cannot have been active.

    Args:
        activity: Of any kind.
        begin_ns: Of the stretches, sorted, one after the other, shape (m,).
        end_ns: Likewise.
    """
    if not len(begin_ns) or not len(activity.begin_ns):
        return activity
    # Of each span what lies before the first stretch in it, between two, and behind the last.
    first = np.searchsorted(end_ns, activity.begin_ns, side="right")
    last = np.searchsorted(begin_ns, activity.end_ns, side="left")
    cut = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(cut)), cut + 1)
    place = np.arange(len(which)) - np.repeat(np.cumsum(cut + 1) - (cut + 1), cut + 1)
    gap = first[which] + place
    before, behind = np.clip(gap - 1, 0, len(end_ns) - 1), np.clip(gap, 0, len(begin_ns) - 1)
    begin = np.where(place == 0, activity.begin_ns[which], end_ns[before])
    end = np.where(place == cut[which], activity.end_ns[which], begin_ns[behind])
    left = end > begin
    return replace(activity, begin_ns=begin[left], end_ns=end[left])


def merged(spans: Spans) -> tuple[Times, Times]:
    """Return begin and end of spans in their order, those that touch or overlap as one."""
    pairs = np.array(spans, np.int64).reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    reached = np.maximum.accumulate(pairs[:, 1])
    is_new = np.concatenate((np.ones(len(pairs[:1]), np.bool_), pairs[1:, 0] > reached[:-1]))
    return pairs[is_new, 0], reached[np.append(is_new[1:], is_new[:1])]


def stretches(activities: Iterable[Activity]) -> tuple[Times, Times]:
    """Return begin and end of all stretches in which one of some was active, in ns."""
    spans = [
        span for each in activities for span in zip(each.begin_ns.tolist(), each.end_ns.tolist(), strict=True)
    ]
    return merged(spans)


def overlap(activity: Activity, begin_ns: Times, end_ns: Times) -> Activity:
    """Return what of an activity lies in stretches; arguments as of `without`."""
    if not len(begin_ns) or not len(activity.begin_ns):
        return replace(activity, begin_ns=begin_ns[:0], end_ns=end_ns[:0])
    first = np.searchsorted(end_ns, activity.begin_ns, side="right")
    count = np.maximum(np.searchsorted(begin_ns, activity.end_ns, side="left") - first, 0)
    which = np.repeat(np.arange(len(count)), count)
    stretch = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    begin = np.maximum(activity.begin_ns[which], begin_ns[stretch])
    end = np.minimum(activity.end_ns[which], end_ns[stretch])
    return replace(activity, begin_ns=begin[end > begin], end_ns=end[end > begin])


class _Busy:
    """How long something was active up to a moment."""

    def __init__(self, activity: Activity) -> None:
        self._at = np.column_stack((activity.begin_ns, activity.end_ns)).ravel().astype(np.float64)
        took = (activity.end_ns - activity.begin_ns).astype(np.float64)
        ends = np.cumsum(took)
        self._sum = np.column_stack((ends - took, ends)).ravel()
        self._from, self._span, self._whole = 0.0, math.inf, 0.0

    def repeat(self, first_ns: float, span_ns: float) -> None:
        """Go on behind the record's end with its beginning."""
        self._from, self._span = first_ns, span_ns
        self._whole = self._up_to(np.array([first_ns + span_ns]))[0] - self._up_to(np.array([first_ns]))[0]

    def within(self, begin_ns: Times | Floats, end_ns: Times | Floats) -> Floats:
        """Return how long it was active in each stretch, in ns."""
        there = end_ns > begin_ns
        if math.isinf(self._span):
            return np.where(there, self._up_to(end_ns) - self._up_to(begin_ns), 0.0)
        begin = np.mod(begin_ns.astype(np.float64) - self._from, self._span)
        took = end_ns.astype(np.float64) - begin_ns
        return np.where(there, self._turned(begin + took) - self._turned(begin), 0.0)

    def _turned(self, after_ns: Floats) -> Floats:
        turns, rest = np.divmod(after_ns, self._span)
        start = self._up_to(np.array([self._from]))[0]
        return turns * self._whole + self._up_to(rest + self._from) - start

    def _up_to(self, at_ns: Times | Floats) -> Floats:
        return np.interp(at_ns, self._at, self._sum)


def _interval(
    explained: Floats, excess: Floats, group: Times, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the ends of the share's interval: groups drawn anew; of few, by Student's t on their shares."""
    _, which = np.unique(group, return_inverse=True)
    part = np.bincount(which, explained)
    whole = np.bincount(which, excess)
    share = float(part.sum() / whole.sum())
    if len(part) == 1:
        return share, share
    drawn = rng.integers(0, len(part), (DRAWS, len(part)))
    shares = part[drawn].sum(axis=1) / whole[drawn].sum(axis=1)
    from scipy.special import stdtrit  # a tenth of a second for whatever lists the sections

    wide = float(stdtrit(len(part) - 1, (1 + COVERAGE) / 2)) * math.sqrt(len(part) / (len(part) - 1))
    off = wide * float(shares.std())
    return share - off, share + off


def _unknown(stays: Sequence[Stay], unrecorded: Mapping[str, tuple[Times, Times]], chosen: Times) -> Flags:
    """Tell of each chosen message whether something of its stays was not recorded."""
    found = np.zeros(len(chosen), np.bool_)
    for stay in stays:
        if stay.node in unrecorded and len(unrecorded[stay.node][0]):
            begin, end = unrecorded[stay.node]
            busy = _Busy(Activity("", stay.node, begin, end))
            found |= busy.within(stay.begin_ns[chosen], stay.end_ns[chosen]) > 0
    return found
