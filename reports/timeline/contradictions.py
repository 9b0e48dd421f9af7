# SPDX-License-Identifier: Apache-2.0
"""Effects before their causes: messages that were received before they can have been sent.

A message takes no less than the way between two nodes does. Where even the latest time at which it may have
been received lies before the earliest at which it can have been there, by the hard intervals of both places,
one of the two clocks is wrong for certain; by U alone it is likely. Where one node's clock, put forward or
back, would remove what speaks against all of them, that node is named: of two nodes it may be either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.global_time import CHUNK, Places, Reals

Weight = Literal["certain", "likely"]
LIKELY_SHARE = 0.05
"""Of the messages of a direction so many may lie beyond U by chance: it is made for 95 %."""


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """Matched messages from one node to another.

    Attributes:
        sender: Name of the node.
        receiver: Name of the other one.
        sent: Places of the sending, shape (n,).
        received: Places of the receipt, shape (n,), message by message.
        least_ns: What the way takes at least, from the bench's wiring; 0: it is not known.
        matched: Numbers of the messages' events in `sent` and in `received`, shape (m,) each, where these are
            all places of a node; None: they are those of the messages alone.
    """

    sender: str
    receiver: str
    sent: Places
    received: Places
    least_ns: int = 0
    matched: tuple[Times, Times] | None = None

    def __post_init__(self) -> None:
        """Check that both ends are those of the same messages; raises RecordError."""
        name = f"messages from {self.sender} to {self.receiver}"
        sent, received = self.matched or (self.sent.tai_ns, self.received.tai_ns)
        if sent.shape != received.shape or sent.ndim != 1:
            raise RecordError(f"{name}: {sent.shape} were sent, {received.shape} came")
        for numbers, places in zip(self.matched or (), (self.sent, self.received), strict=False):
            if numbers.size and not 0 <= numbers.min() <= numbers.max() < places.tai_ns.size:
                raise RecordError(f"{name}: matched: no such event")
        if self.sender == self.receiver or self.least_ns < 0:
            raise RecordError(f"{name}: must be of two nodes, with a way of 0 ns and more")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Messages of one direction whose effect lies before its cause.

    Attributes:
        count: How many, of `of` that have places at both ends.
        worst_ns: By how much the farthest is too early, beyond what the places allow.
    """

    sender: str
    receiver: str
    weight: Weight
    count: int
    of: int
    worst_ns: int


@dataclass(frozen=True, slots=True)
class Causality:
    """What all messages of a run say of the clocks of its nodes.

    Attributes:
        contradictions: The certain ones first.
        suspects: Nodes of which one alone being wrong explains all contradictions; empty: there is none, or
            no single node explains them.
        shifts_ns: Of each suspect by how much its clock would have to be put back, least and most; None: no
            message limits that side.
    """

    contradictions: tuple[Contradiction, ...]
    suspects: tuple[str, ...]
    shifts_ns: tuple[tuple[int | None, int | None], ...]

    @property
    def is_certain(self) -> bool:
        """Say whether a clock is wrong for certain."""
        return any(each.weight == "certain" for each in self.contradictions)


def causality(directions: Sequence[Messages]) -> Causality:
    """Return the contradictions between the nodes of a run.

    Args:
        directions: Messages, one entry or more for each direction between two nodes.
    """
    slacks = [(each, _slack(each, "certain"), _slack(each, "likely")) for each in directions]
    found: list[Contradiction] = []
    for each, certain, likely in slacks:
        weight: Weight = "certain" if (certain < 0).any() else "likely"
        slack = certain if weight == "certain" else likely
        early = slack[slack < 0]
        if early.size > (0 if weight == "certain" else LIKELY_SHARE * slack.size):
            found.append(
                Contradiction(
                    each.sender, each.receiver, weight, early.size, slack.size, round(-float(early.min()))
                )
            )
    found.sort(key=lambda each: (each.weight != "certain", -each.worst_ns))
    if not found:
        return Causality((), (), ())
    is_certain = found[0].weight == "certain"
    least = [
        (each.sender, each.receiver, float(np.quantile(slack, 0 if is_certain else LIKELY_SHARE)))
        for each, certain, likely in slacks
        if (slack := certain if is_certain else likely).size
    ]
    suspects = _suspects(least)
    return Causality(tuple(found), tuple(suspects), tuple(suspects.values()))


def _slack(messages: Messages, weight: Weight) -> Reals:
    """Return by how much each message is not too early, in ns; below 0: it is."""
    sent, received = messages.sent, messages.received
    n = messages.matched[0].size if messages.matched else sent.known.size
    slack, found = np.empty(n), 0
    for begin in range(0, n, CHUNK):
        part = slice(begin, begin + CHUNK)
        out, back = (each[part] for each in messages.matched) if messages.matched else (part, part)
        if weight == "certain":
            own_ns = received.latest_ns[back] - sent.earliest_ns[out]
        else:  # the ways to two nodes may be asymmetric against each other
            own_ns = received.tai_ns[back] - sent.tai_ns[out] + sent.u_ns[out] + received.u_ns[back]
        own_ns = own_ns[sent.known[out] & received.known[back]]
        slack[found : found + own_ns.size] = own_ns - messages.least_ns
        found += own_ns.size
    return slack[:found]


def _suspects(least: Sequence[tuple[str, str, float]]) -> dict[str, tuple[int | None, int | None]]:
    """Return the nodes each of which explains all, with the shifts of its clock that would."""
    found: dict[str, tuple[int | None, int | None]] = {}
    for node in sorted({name for sender, receiver, _ in least for name in (sender, receiver)}):
        if any(slack < 0 and node not in (sender, receiver) for sender, receiver, slack in least):
            continue
        # With the clock put back by s, what it sends leaves earlier by s, and what it receives comes earlier.
        from_ns = [-slack for sender, _, slack in least if sender == node]
        to_ns = [slack for _, receiver, slack in least if receiver == node]
        lowest, highest = max(from_ns, default=-np.inf), min(to_ns, default=np.inf)
        if lowest <= highest:
            found[node] = (
                round(lowest) if np.isfinite(lowest) else None,
                round(highest) if np.isfinite(highest) else None,
            )
    return found
