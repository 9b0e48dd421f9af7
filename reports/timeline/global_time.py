# SPDX-License-Identifier: Apache-2.0
"""Places of events in TAI, from the readings of a clock before and after them.

A hard interval and a U belong to each place. The interval is what all readings allow together: around each
one the truth lies within its bound, and from one moment to another the clock runs no faster and no slower
than its rate, which readings on both sides tell, and its drift allow (`ClockLimits`). U comes from the U of
the two readings that tell the most, one on either side, and from the random walk of the frequency between
them.

Where no rate explains two readings that follow each other, the clock was stepped, stopped or began anew;
nothing is placed between them, nor in a gap longer than the window, nor where a clock that was put back
shows a time twice. Each of these breaks is reported with its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reports.timeline.clock_record import NS_PER_S, BreakKind, ClockRecord, Times

Reals = NDArray[np.float64]
PPB = 1e9
U_GROWTH_PPB = 500
"""A reading counts for U where no other one, grown by so much with its distance, tells more."""
CHUNK = 1 << 15
"""So many events are placed at once: what is worked out for them stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Break:
    """What happened to a clock between two readings.

    Attributes:
        kind: `step`: it was put forward or back; `stopped`: a counter stopped for a while; `restart`: it
            began anew; `gap`: nobody read it for longer than the window.
        from_tai_ns: TAI at the reading before.
        to_tai_ns: TAI at the reading after.
        size_ns: By how much it is further ahead than before; of a gap 0.
    """

    kind: BreakKind
    from_tai_ns: int
    to_tai_ns: int
    size_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Places of events; where `known` is false the others say nothing.

    Attributes:
        tai_ns: Shape (n,).
        earliest_ns: Shape (n,): the truth is not before.
        latest_ns: Shape (n,): the truth is not after.
        u_ns: Shape (n,): U (k = 2), no more than the farther end of the interval.
        known: Shape (n,).
    """

    tai_ns: Times
    earliest_ns: Times
    latest_ns: Times
    u_ns: Times
    known: NDArray[np.bool_]

    @property
    def bound_ns(self) -> Times:
        """Return the hard bound of each error."""
        return np.maximum(self.tai_ns - self.earliest_ns, self.latest_ns - self.tai_ns)


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Readings between two breaks, in ns from the record's first.

    `numbers` are theirs in the record; `read_*` is what each says by itself, `low` and `high` what all allow
    together; rates, less 1, are of each stretch between two; `best` are those that count for U.
    """

    numbers: NDArray[np.int64]
    local: Reals
    read_low: Reals
    read_high: Reals
    low: Reals
    high: Reals
    slowest: Reals
    fastest: Reals
    best: NDArray[np.int64]
    middle: Reals
    u: Reals


class GlobalTime:
    """TAI by one clock of a node, over the time of its record."""

    def __init__(self, record: ClockRecord) -> None:
        """Find the breaks of a record, and what its readings allow together between them."""
        self.record = record
        self._limits = record.limits
        self._local0, self._tai0 = int(record.local_ns[0]), int(record.tai_ns[0])
        self._local = (record.local_ns - self._local0).astype(np.float64)
        self._tai = (record.tai_ns - self._tai0).astype(np.float64)
        self._low = self._tai - record.bound_ns
        self._high = self._tai + record.bound_ns
        self._breaks: dict[int, Break] = {}
        self._pieces: list[_Piece] = []
        self._part()

    @property
    def breaks(self) -> tuple[Break, ...]:
        """Return the breaks in their order; of one that lasts over several readings: it as a whole."""
        found: list[Break] = []
        for at in sorted(self._breaks):
            each = self._breaks[at]
            if found and each.kind == found[-1].kind != "gap" and each.from_tai_ns == found[-1].to_tai_ns:
                size_ns = found[-1].size_ns + each.size_ns
                each = replace(found.pop(), to_tai_ns=each.to_tai_ns, size_ns=size_ns)
            found.append(each)
        return tuple(found)

    def place(self, local_ns: Times, beyond_ns: int = 0) -> Places:
        """Return where events lie, by what the clock showed at each.

        Args:
            local_ns: Shape (n,), in any order.
            beyond_ns: So long before the first reading and after the last one events are placed, too, with
                interval and U growing; no longer than the window counts.
        """
        found = [np.empty(local_ns.shape, np.int64) for _ in range(4)]
        known = np.empty(local_ns.shape, np.bool_)
        beyond = float(min(beyond_ns, self._limits.window_ns))
        for begin in range(0, local_ns.size, CHUNK):
            part = slice(begin, begin + CHUNK)
            local = (local_ns[part] - self._local0).astype(np.float64)
            known[part] = self._place(local, beyond, [column[part] for column in found])
        middle, low, high, u = found
        return Places(middle, low, high, u, known)

    def _place(self, local: Reals, beyond: float, found: Sequence[Times]) -> NDArray[np.bool_]:
        """Fill in middle, earliest, latest and U of events, in ns; return which of them have a place."""
        places = [np.zeros(local.shape) for _ in range(4)]
        claims = np.zeros(local.shape, np.int64)
        for number, piece in enumerate(self._pieces):
            before = beyond if number == 0 else 0.0
            after = beyond if number == len(self._pieces) - 1 else 0.0
            here = (local >= piece.local[0] - before) & (local <= piece.local[-1] + after)
            if here.all():
                places = list(self._within(piece, local))
            elif here.any():
                for all_of, own in zip(places, self._within(piece, local[here]), strict=True):
                    all_of[here] = own
            claims += here
        for before, piece in pairwise(self._pieces):
            claims += 2 * self._within_break(before, piece, local)
        middle, low, high, u = (np.rint(each).astype(np.int64) for each in places)
        found[0][:], found[3][:] = middle + self._tai0, u
        found[1][:] = np.minimum(low, middle) - 1 + self._tai0  # rounded
        found[2][:] = np.maximum(high, middle) + 1 + self._tai0
        return claims == 1

    def _within_break(self, before: _Piece, piece: _Piece, local: Reals) -> NDArray[np.bool_]:
        """Say at which events a clock may have shown their times between two pieces."""
        last, first = before.numbers[-1], piece.numbers[0]
        from_last, to_first = local - before.local[-1], piece.local[0] - local
        if self.record.is_counter and self._breaks[int(first)].kind != "restart":
            return (from_last >= 0) & (to_first >= 0)  # where it stands, it shows one time
        passed = (self._high[first] - self._low[last]) * (1 + self._limits.rate_ppb / PPB)
        return ((from_last > 0) & (from_last < passed)) | ((to_first > 0) & (to_first < passed))

    # -- pieces

    def _part(self) -> None:
        """Cut the readings where no rate explains them, and keep what those between two cuts allow."""
        cuts = [0, *self._breaks_by_rate(), self._local.size]
        at = 1
        while at < len(cuts):
            piece, wrong = self._piece(cuts[at - 1], cuts[at])
            if wrong is not None:
                cuts.insert(at, wrong)
                continue
            begin = cuts[at - 1]
            if begin in self._breaks:
                self._shorten(begin, piece)
            self._pieces.append(piece)
            at += 1

    def _shorten(self, begin: int, piece: _Piece) -> None:
        """Take readings that may be of either side of a break off the piece before it.

        A reading with a wide bound hides a break until the next one.
        """
        found, before = self._breaks[begin], self._pieces[-1]
        last = before.local.size - 1
        if found.kind in ("gap", "restart"):
            return
        fast, slow = 1 + piece.fastest[0], 1 + piece.slowest[0]
        while last > 0:
            back = piece.local[0] - before.local[last]
            low, high = (
                piece.low[0] - max(back * fast, back * slow),
                piece.high[0] - min(back * fast, back * slow),
            )
            if before.read_low[last] > high or before.read_high[last] < low:
                break
            last -= 1
        if last < before.local.size - 1:
            at = before.numbers[last]
            self._pieces[-1] = self._piece(before.numbers[0], at + 1)[0]
            self._breaks[begin] = replace(found, from_tai_ns=int(self.record.tai_ns[at]))

    def _breaks_by_rate(self) -> list[int]:
        """Return the numbers of the readings before which the clock broke; each has its break."""
        found: list[int] = []
        begin, low, high = 0, self._low[0], self._high[0]
        lows, highs = self._low.copy(), self._high.copy()
        for at in range(1, self._local.size):
            passed = self._local[at] - self._local[at - 1]
            slowest, fastest = self._rates_before(begin, at - 1, lows, highs)
            early, late = low + passed * (1 + slowest), high + passed * (1 + fastest)
            kind = self._kind(at, passed, early, late)
            if kind is not None:
                # By the clock itself, whose step the prediction has taken for time at its rate.
                ahead = ((early + late) / 2 - self._tai[at]) / (1 + (slowest + fastest) / 2)
                size = 0.0 if kind == "gap" else ahead
                self._break(at, kind, size)
                found.append(at)
                begin, early, late = at, -np.inf, np.inf
            low, high = max(early, self._low[at]), min(late, self._high[at])
            lows[at], highs[at] = low, high
        return found

    def _kind(self, at: int, passed: float, early: float, late: float) -> BreakKind | None:
        if self._tai[at] - self._tai[at - 1] > self._limits.window_ns:
            return "gap"
        if passed < 0 and self.record.is_counter:
            return "restart"
        if self._low[at] > late:
            return "stopped" if self.record.is_counter else "step"
        return "step" if passed < 0 or self._high[at] < early else None

    def _break(self, at: int, kind: BreakKind, size: float) -> None:
        tai_ns = self.record.tai_ns
        self._breaks[at] = Break(kind, int(tai_ns[at - 1]), int(tai_ns[at]), round(size))

    def _rates_before(self, begin: int, last: int, lows: Reals, highs: Reals) -> tuple[float, float]:
        """Return the rates, less 1, between which the clock runs behind a reading, by those before it."""
        slowest, fastest = -self._limits.rate_ppb / PPB, self._limits.rate_ppb / PPB
        drift, back = self._limits.drift_ppb / PPB, 1
        while last - back >= begin:
            first = last - back
            passed = self._local[last] - self._local[first]
            if passed > self._limits.window_ns:
                break
            if passed > 0:
                slowest = max(slowest, (lows[last] - highs[first]) / passed - 1 - drift)
                fastest = min(fastest, (highs[last] - lows[first]) / passed - 1 + drift)
            back *= 2
        return slowest, fastest

    def _piece(self, begin: int, end: int) -> tuple[_Piece, int | None]:
        """Return readings as a piece, and the number of one that contradicts the others; None: none does."""
        numbers = np.arange(begin, end)
        numbers = numbers[np.concatenate(([True], np.diff(self._local[begin:end]) > 0))]  # read twice at once
        local, read_low, read_high = (each[numbers] for each in (self._local, self._low, self._high))
        low, high = read_low, read_high
        slowest, fastest = self._rates(local, low, high)
        for _ in range(2):  # what readings allow together tells the rates better
            low, high = _allowed(local, low, high, slowest, fastest)
            slowest, fastest = self._rates(local, low, high)
        wrong = None
        if (low > high).any():
            wrong = int(numbers[max(1, int((low - high).argmax()))])
            off = float(np.diff(self._tai[wrong - 1 : wrong + 1])[0])
            off -= float(np.diff(self._local[wrong - 1 : wrong + 1])[0])
            self._break(wrong, "stopped" if self.record.is_counter and off > 0 else "step", -off)
        u = self.record.u_ns[numbers].astype(np.float64)
        middle = self._tai[numbers] if wrong is not None else np.clip(self._tai[numbers], low, high)
        best = _telling(local, u)
        return _Piece(
            numbers, local, read_low, read_high, low, high, slowest, fastest, best, middle, u
        ), wrong

    def _rates(self, local: Reals, low: Reals, high: Reals) -> tuple[Reals, Reals]:
        """Return the rates, less 1, between which the clock runs in each stretch between two readings."""
        n = max(1, local.size - 1)
        slowest, fastest = np.full(n, -self._limits.rate_ppb / PPB), np.full(n, self._limits.rate_ppb / PPB)
        if local.size < 2:
            return slowest, fastest
        drift, reach = self._limits.drift_ppb / PPB, 0
        while reach < local.size:
            first = np.maximum(np.arange(n) - reach, 0)
            last = np.minimum(np.arange(n) + 1 + reach, local.size - 1)
            passed = local[last] - local[first]
            told = passed <= self._limits.window_ns
            if not told.any():
                break
            slow, fast = (low[last] - high[first]) / passed - 1, (high[last] - low[first]) / passed - 1
            slowest = np.where(told, np.maximum(slowest, slow - drift), slowest)
            fastest = np.where(told, np.minimum(fastest, fast + drift), fastest)
            reach = 2 * reach + 1
        return slowest, fastest

    # -- places

    def _within(self, piece: _Piece, local: Reals) -> tuple[Reals, Reals, Reals, Reals]:
        """Return middle, earliest, latest and U of events, in ns from the record's first reading."""
        low, high = self._interval(piece, local)
        best, wander = piece.best, self._limits.wander_ppb_per_sqrt_s / PPB
        at = piece.local[best]
        right = np.clip(np.searchsorted(at, local), 1, max(1, best.size - 1))
        first, last = best[right - 1], best[np.minimum(right, best.size - 1)]
        if best.size == 1:
            since = np.abs(local - at[0])
            middle = piece.middle[best[0]] + local - at[0]
            u = piece.u[best[0]] + since * self._limits.rate_ppb / PPB
        else:
            length = piece.local[last] - piece.local[first]
            share = (local - piece.local[first]) / length
            middle = piece.middle[first] * (1 - share) + piece.middle[last] * share
            # Of two errors that may have one cause; outside of the two, their difference goes on growing.
            u = np.abs(1 - share) * piece.u[first] + np.abs(share) * piece.u[last]
            inside = np.clip(share, 0.0, 1.0)
            beyond = np.maximum(-share, share - 1).clip(0.0) * length
            walk = inside * (1 - inside) * length * np.sqrt(length / (3 * NS_PER_S))
            walk += beyond * np.sqrt((beyond + length) / NS_PER_S)
            u = np.hypot(u, 2 * wander * walk)
        middle = np.clip(middle, low, high)
        return middle, low, high, np.minimum(u, np.maximum(middle - low, high - middle))

    def _interval(self, piece: _Piece, local: Reals) -> tuple[Reals, Reals]:
        """Return between which times the truth lies, by the readings on both sides."""
        right = np.searchsorted(piece.local, local)
        n = piece.local.size
        left, right = np.maximum(right - 1, 0), np.minimum(right, n - 1)
        stretch = np.minimum(left, piece.slowest.size - 1)
        slow, fast = 1 + piece.slowest[stretch], 1 + piece.fastest[stretch]
        since, until = local - piece.local[left], piece.local[right] - local
        low = np.where(since >= 0, piece.low[left] + since * slow, -np.inf)
        high = np.where(since >= 0, piece.high[left] + since * fast, np.inf)
        low = np.maximum(low, np.where(until >= 0, piece.low[right] - until * fast, -np.inf))
        high = np.minimum(high, np.where(until >= 0, piece.high[right] - until * slow, np.inf))
        return low, high


def _allowed(local: Reals, low: Reals, high: Reals, slowest: Reals, fastest: Reals) -> tuple[Reals, Reals]:
    """Return what all readings allow together at each of them."""
    if local.size < 2:
        return low, high
    passed = np.diff(local)
    slow = np.concatenate(([0.0], np.cumsum(passed * (1 + slowest))))
    fast = np.concatenate(([0.0], np.cumsum(passed * (1 + fastest))))
    low = np.maximum.accumulate(low - slow) + slow
    high = np.minimum.accumulate(high - fast) + fast
    low = np.maximum.accumulate((low - fast)[::-1])[::-1] + fast
    high = np.minimum.accumulate((high - slow)[::-1])[::-1] + slow
    return low, high


def _telling(local: Reals, u: Reals) -> NDArray[np.int64]:
    """Return the numbers of the readings than which no other one tells more."""
    growth = local * (U_GROWTH_PPB / PPB)
    from_left = np.minimum.accumulate(u - growth) + growth
    from_right = np.minimum.accumulate((u + growth)[::-1])[::-1] - growth
    return np.flatnonzero(u <= np.minimum(from_left, from_right) + 1e-6)
