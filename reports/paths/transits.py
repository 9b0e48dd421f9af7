# SPDX-License-Identifier: Apache-2.0
"""Of each datagram that went into a path: how long it was inside, or that it was lost, copies, and order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.paths.datagrams import Datagrams, Integers

Flags: TypeAlias = NDArray[np.bool_]
LOST = -1
_NEVER_SENT, _REPEATED = -1, -2


@dataclass(frozen=True)
class Transits:
    """Datagrams in the order in which they went in.

    Attributes:
        sent_ns: When each was seen before the path, shape (n,).
        inside_ns: How long the first of its copies took to behind the path, shape (n,); LOST.
        count: How often it came out, shape (n,): 0 where it was lost, 1 is usual.
        place: Its place among all that came out, from 0, shape (n,); LOST.
        repeated: Left out: datagrams of which an equal one went in, too: which is which is not known.
        unsent: Left out: what came out and had not gone in before.
    """

    sent_ns: Integers
    inside_ns: Integers
    count: Integers
    place: Integers
    repeated: int
    unsent: int

    @property
    def is_lost(self) -> Flags:
        """Return which never came out, shape (n,)."""
        return self.count == 0

    @property
    def is_copied(self) -> Flags:
        """Return of which more than one came out, shape (n,)."""
        return self.count > 1

    @property
    def arrived_ns(self) -> Integers:
        """Return how long those were inside that came out, in the order in which they went in."""
        return self.inside_ns[~self.is_lost]

    @property
    def overtakes(self) -> Flags:
        """Return which came out before one that had gone in earlier, of those that came out, shape (m,)."""
        place = self.place[~self.is_lost]
        latest = np.maximum.accumulate(np.concatenate(([LOST], place)))[:-1]
        return place < latest


def transits(before: Datagrams, behind: Datagrams) -> Transits:
    """Match what went into a path with what came out of it.

    Args:
        before: Those that went in, of this direction alone.
        behind: Those that came out, by the same clock.
    """
    sent, out = (np.argsort(each.time_ns, kind="stable") for each in (before, behind))
    keys, identity = np.unique(np.concatenate((before.key[sent], behind.key[out])), return_inverse=True)
    of_sent, of_out = identity[: len(sent)], identity[len(sent) :]
    single = np.bincount(of_sent, minlength=len(keys))[of_sent] == 1
    sent_ns = before.time_ns[sent][single]
    number_of = np.full(len(keys), _NEVER_SENT)
    number_of[of_sent] = _REPEATED
    number_of[of_sent[single]] = np.arange(len(sent_ns))

    out_ns, number = behind.time_ns[out], number_of[of_out]
    matched = number >= 0
    matched[matched] = out_ns[matched] >= sent_ns[number[matched]]
    unsent = int((~matched & (number != _REPEATED)).sum())
    out_ns, number = out_ns[matched], number[matched]
    came, of_first = np.unique(number, return_index=True)
    inside_ns, place = (np.full(len(sent_ns), LOST, dtype=np.int64) for _ in range(2))
    inside_ns[came] = out_ns[of_first] - sent_ns[came]
    place[came[np.argsort(of_first)]] = np.arange(len(came))
    count = np.bincount(number, minlength=len(sent_ns)).astype(np.int64)
    return Transits(sent_ns, inside_ns, count, place, len(sent) - len(sent_ns), unsent)
