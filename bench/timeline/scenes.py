# SPDX-License-Identifier: Apache-2.0
"""Scenes of machines whose clocks are known exactly: what a timeline says is held against what was drawn.

Drawn for a scene, each from its seed: 2 to 8 nodes; a counter or a steered clock each; a frequency within
200 ppm that walks at random by 0.1 ppm a root second (as `bw-wander` does for a quartz); exchanges with the
reference every 0.1 to 16 s over 1 to 10 minutes; a path of 40 to 500 us whose ways differ by up to half of
the round trip; queues of 5 to 100 us on either way; a share of exchanges that a stolen processor holds up by
1 to 30 ms. In each tenth node the clock is put forward or back, or the counter stops, by 1 ms to 10 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from reports.timeline.clock_record import NS_PER_S, ClockRecord, Times
from reports.timeline.contradictions import Messages
from reports.timeline.global_time import GlobalTime
from reports.timeline.sources import two_way_record

Reals = NDArray[np.float64]
START_TAI_NS = 1_795_000_000 * NS_PER_S
GRID_S = 0.05
RATE_MAX = 200e-6
WALK_PER_SQRT_S = 0.1e-6
EVENTS = 2000
STEPPED_SHARE = 0.1
LEAST_WAY_NS = 30_000
MESSAGES = 200
"""From each node to each other one."""


@dataclass(frozen=True)
class SimulatedNode:
    """A node: its record, events by its clock and by TAI, and the moment and size of its step.

    Attributes:
        record: Readings of its clock.
        events_local_ns: Shape (EVENTS,).
        events_tai_ns: Shape (EVENTS,): the truth.
        step: TAI of it and by how much the clock is further ahead; None: there was none.
        clock: What shows the events.
    """

    record: ClockRecord
    events_local_ns: Times
    events_tai_ns: Times
    step: tuple[int, int] | None
    clock: SimulatedClock


def scene(seed: int) -> list[SimulatedNode]:
    """Return the nodes of a scene."""
    rng = np.random.default_rng(seed)
    duration_s = float(rng.uniform(60, 600))
    return [_node(rng, f"node{number}", duration_s) for number in range(rng.integers(2, 9))]


class SimulatedClock:
    """A clock whose reading at any TAI is known: integral of its frequency, and a step."""

    def __init__(self, rng: np.random.Generator, duration_s: float, *, is_counter: bool) -> None:
        count = int(duration_s / GRID_S) + 2
        walk = np.cumsum(rng.normal(0, WALK_PER_SQRT_S * GRID_S**0.5, count))
        rate = rng.uniform(-RATE_MAX, RATE_MAX) + walk
        self._grid_ns = np.arange(count) * (GRID_S * NS_PER_S)
        self._gained_ns = np.concatenate(([0.0], np.cumsum(rate[:-1] * GRID_S * NS_PER_S)))
        self._origin_ns = int(rng.integers(0, 1_000_000 * NS_PER_S))
        self.step: tuple[float, float] | None = None
        if rng.random() < STEPPED_SHARE:
            size_ns = 10 ** rng.uniform(6, 10)
            if is_counter:
                size_ns = -min(size_ns, duration_s * 0.2 * NS_PER_S)
            self.step = (
                float(rng.uniform(0.2, 0.7)) * duration_s * NS_PER_S,
                size_ns if is_counter or rng.random() < 0.5 else -size_ns,
            )
        self._is_counter = is_counter

    def shows_ns(self, since_ns: Reals) -> Times:
        """Return what it shows so long after the start of the scene."""
        stepped_ns = np.zeros(since_ns.shape)
        if self.step is not None:
            at_ns, size_ns = self.step
            if self._is_counter:  # it stands for as long as it loses
                since_ns = since_ns - np.clip(since_ns - at_ns, 0, -size_ns)
            else:
                stepped_ns = np.where(since_ns >= at_ns, size_ns, 0.0)
        shown = since_ns + np.interp(since_ns, self._grid_ns, self._gained_ns) + stepped_ns
        return np.rint(shown).astype(np.int64) + self._origin_ns


def messages(nodes: Sequence[SimulatedNode], seed: int, ahead_ns: Mapping[str, int]) -> list[Messages]:
    """Return messages both ways between all nodes, placed by the readings of their clocks.

    Args:
        nodes: To which nothing has happened.
        seed: Of the messages; each takes `LEAST_WAY_NS` and a queue of 20 to 300 us.
        ahead_ns: By how much the readings of a node are wrong: its events seem so much later.
    """
    rng = np.random.default_rng(seed)
    clocks = {
        node.record.node: GlobalTime(
            replace(node.record, tai_ns=node.record.tai_ns + ahead_ns.get(node.record.node, 0))
        )
        for node in nodes
    }
    begin_ns = max(int(node.events_tai_ns[0]) for node in nodes) - START_TAI_NS
    end_ns = min(int(node.events_tai_ns[-1]) for node in nodes) - START_TAI_NS
    found: list[Messages] = []
    for sender, receiver in permutations(nodes, 2):
        sent_ns = rng.uniform(begin_ns, end_ns, MESSAGES)
        received_ns = sent_ns + LEAST_WAY_NS + rng.exponential(10 ** rng.uniform(4.3, 5.5), MESSAGES)
        found.append(
            Messages(
                sender.record.node,
                receiver.record.node,
                clocks[sender.record.node].place(sender.clock.shows_ns(np.rint(sent_ns))),
                clocks[receiver.record.node].place(receiver.clock.shows_ns(np.rint(received_ns))),
                LEAST_WAY_NS,
            )
        )
    return found


def _node(rng: np.random.Generator, name: str, duration_s: float) -> SimulatedNode:
    is_counter = bool(rng.random() < 0.5)
    clock = SimulatedClock(rng, duration_s, is_counter=is_counter)
    duration_ns = duration_s * NS_PER_S
    interval_s = float(10 ** rng.uniform(-1, 1.2))
    sent_ns = np.arange(0.0, duration_ns - 0.1 * NS_PER_S, interval_s * NS_PER_S)
    n = sent_ns.size
    path_ns = float(10 ** rng.uniform(4.6, 5.7))
    asymmetry = float(rng.uniform(-0.5, 0.5))
    queue_ns = float(10 ** rng.uniform(3.7, 5))
    there_ns = path_ns * (1 + asymmetry) / 2 + rng.exponential(queue_ns, n)
    back_ns = path_ns * (1 - asymmetry) / 2 + rng.exponential(queue_ns, n)
    stolen = rng.random(n) < rng.uniform(0, 0.1)
    held_ns = np.where(stolen, 10 ** rng.uniform(6, 7.5, n), 0.0)
    on_way_there = rng.random(n) < 0.5
    there_ns += np.where(on_way_there, held_ns, 0.0)
    back_ns += np.where(on_way_there, 0.0, held_ns)
    # The reference asks, as on a bench: its stamps are TAI, the node's one stamp is by its clock.
    node_ns = clock.shows_ns(sent_ns + there_ns)
    middle_ns = sent_ns + (there_ns + back_ns) / 2
    tai_ns = np.rint(middle_ns).astype(np.int64) + START_TAI_NS
    half_ns = np.ceil((there_ns + back_ns) / 2).astype(np.int64) + 1
    record = two_way_record(name, "clock", (tai_ns, node_ns - tai_ns, half_ns), is_counter=is_counter)
    events_ns = np.sort(rng.uniform(sent_ns[0], sent_ns[-1], EVENTS))
    step = clock.step and (round(clock.step[0]) + START_TAI_NS, round(clock.step[1]))
    truth_ns = np.rint(events_ns).astype(np.int64) + START_TAI_NS
    return SimulatedNode(record, clock.shows_ns(np.rint(events_ns)), truth_ns, step, clock)
