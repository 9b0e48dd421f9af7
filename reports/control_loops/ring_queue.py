# SPDX-License-Identifier: Apache-2.0
"""Do the messages of a ring wait for one another? What they take is then that of a queue.

A message that could have come by the shortest time of all, and the one before it came only later: it has
waited behind that one, since no program passes one message by another. Where many do, on the whole or for a
while, the ring takes longer for a message than there is from one to the next, and what each takes says as
much of those before it. Many messages under way at once alone are no queue: a path may be long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reports.control_loops.ring import Ring
from reports.units import format_value

TOLD_SHARE = 0.01
"""Of the messages: where more than so many wait, percentile 99 is of a queue."""


@dataclass(frozen=True, slots=True)
class RingQueue:
    """How many messages have waited behind the one before.

    Attributes:
        messages: Of the ring, that count.
        waited: Of these.
        most: One behind another, at most.
        interval_ns: From one message to the next, as asked.
    """

    messages: int
    waited: int
    most: int
    interval_ns: int

    @property
    def words(self) -> str:
        """Return it in a sentence; empty: too few wait to be told."""
        if self.waited <= TOLD_SHARE * self.messages:
            return ""
        every = format_value(self.interval_ns, "ns")
        return (
            f"{100 * self.waited / self.messages:.2g} % of the messages waited behind the one before, up to"
            f" {self.most} in a row: with one every {every} the ring does not always keep up, and what these"
            " take is that of a queue"
        )


def ring_queue(ring: Ring) -> RingQueue:
    """Count the messages that waited, by the one counter of source and sink."""
    order = np.argsort(ring.whole.sent.tai_ns, kind="stable")
    sent_ns, took_ns = ring.whole.sent.tai_ns[order], ring.whole_own_ns[order]
    interval_ns = ring.facts.interval_us * 1000
    if sent_ns.size == 0:
        return RingQueue(0, 0, 0, interval_ns)
    soonest_ns = sent_ns + took_ns.min()
    waited = soonest_ns[1:] < (sent_ns + took_ns)[:-1]
    ends = np.flatnonzero(np.diff(np.concatenate(([0], waited.astype(np.int8), [0]))))
    most = (ends[1::2] - ends[::2]).max(initial=0)
    return RingQueue(sent_ns.size, int(waited.sum()), int(most), interval_ns)
