# SPDX-License-Identifier: Apache-2.0
"""Loss in bursts: Gilbert-Elliott's chain as asked for, and the bursts that a capture saw.

A burst is datagrams that follow each other and are all lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reports.errors import ReportError
from reports.paths.condition import Condition
from reports.paths.shares import dependent_share_interval, share_interval
from reports.paths.transits import Flags

BURSTS_MIN = 10
"""Fewer tell no mean length."""


@dataclass(frozen=True)
class Chain:
    """Gilbert-Elliott's chain of two states (tc-netem(8), `loss gemodel`); shares of 1."""

    to_bad: float
    """p: from the good state to the bad one, by datagram."""
    to_good: float
    """r."""
    bad_loss: float = 1.0
    """1-h: lost in the bad state."""
    good_loss: float = 0.0
    """1-k."""

    @property
    def loss(self) -> float:
        """Return the mean loss, a share."""
        bad = self._bad
        return bad * self.bad_loss + (1 - bad) * self.good_loss

    @property
    def burst_length(self) -> float:
        """Return the mean length of a burst: lost ones over those of them that begin one."""
        bad = self._bad
        stationary = np.array([1 - bad, bad])
        lost = np.array([self.good_loss, self.bad_loss])
        moves = np.array([[1 - self.to_bad, self.to_bad], [self.to_good, 1 - self.to_good]])
        both = float((stationary * lost) @ moves @ lost)
        return self.loss / (self.loss - both) if self.loss > both else math.inf if self.loss else 0.0

    @property
    def _bad(self) -> float:
        """Return the share of datagrams in the bad state, in the long run; it begins in the good one."""
        return self.to_bad / (self.to_bad + self.to_good) if self.to_bad else 0.0


def burst_length(is_lost: Flags, *, is_chain: bool = True) -> tuple[float, float, float]:
    """Return the mean length of a burst, and its 99 % interval.

    Of lost datagrams the share that begins a burst is 1 / length. Where all are lost in the bad state and
    none in the good one, each lost one ends its burst by a chance of its own; else they depend on each other.

    Args:
        is_lost: In the order in which they went in.
        is_chain: Whether the bad state loses all and the good one none.

    Raises:
        ReportError: Fewer than 10 bursts.
    """
    begins = is_lost & ~np.concatenate(([False], is_lost[:-1]))
    of_lost = begins[is_lost]
    bursts, lost = int(of_lost.sum()), len(of_lost)
    if bursts < BURSTS_MIN:
        raise ReportError(f"{bursts} bursts tell no mean length: {BURSTS_MIN} at least")
    low, high = share_interval(bursts, lost) if is_chain else dependent_share_interval(of_lost)
    return lost / bursts, 1 / high, 1 / low


def burst_conditions(asked: Chain, is_lost: Flags) -> tuple[Condition, ...]:
    """Return mean loss, in percent, and where there are enough bursts their mean length, in datagrams.

    Raises:
        ReportError: Too few datagrams.
    """
    is_chain = asked.bad_loss == 1 and asked.good_loss == 0
    low, high = dependent_share_interval(is_lost)
    loss = Condition("loss", "%", 100 * asked.loss, 100 * float(is_lost.mean()), 100 * low, 100 * high)
    try:
        mean, shortest, longest = burst_length(is_lost, is_chain=is_chain)
    except ReportError:
        return (loss,)
    length = Condition("burst", "datagrams", asked.burst_length, mean, shortest, longest)
    return loss, length
