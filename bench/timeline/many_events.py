# SPDX-License-Identifier: Apache-2.0
"""Many events of four nodes that send messages to each other: global time, one order, contradictions.

`python -m bench.timeline.many_events [CTF]` prints seconds and peak memory of one run as JSON; with CTF it
writes what it has placed there besides, as a trace. The nodes are those of drawn scenes to which nothing has
happened. Half of the events of each are sendings to the next node, half are receipts.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench.lab.processes import peak_resident_bytes
from bench.timeline.scenes import LEAST_WAY_NS, START_TAI_NS, SimulatedNode, scene
from reports.timeline.clock_record import Times
from reports.timeline.contradictions import Causality, Messages, causality
from reports.timeline.export_ctf import write_ctf
from reports.timeline.global_time import GlobalTime, Places
from reports.timeline.placed_events import Timeline, merged_order, placed_track

NODES, EVENTS = 4, 10_000_000


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """What a node has recorded.

    Attributes:
        node: Its clock's readings.
        local_ns: Shape (n,): its events by its clock, in their order.
        sent: Shape (n / 2,): which of them are sendings.
        received: As `sent`: receipts, in the order of the sender's messages.
    """

    node: SimulatedNode
    local_ns: Times
    sent: Times
    received: Times


@dataclass(frozen=True, slots=True)
class Placed:
    """What is made of it."""

    places: tuple[Places, ...]
    order: Times
    causality: Causality


def recorded(events: int = EVENTS) -> list[RecordedNode]:
    """Return what four nodes have recorded, as many events in all."""
    rng, n = np.random.default_rng(1), events // NODES // 2
    nodes = [each for seed in range(20) for each in scene(seed) if each.step is None][:NODES]
    nodes = [replace(each, record=replace(each.record, node=f"node {k}")) for k, each in enumerate(nodes)]
    begin_ns = max(int(each.events_tai_ns[0]) for each in nodes) - START_TAI_NS
    end_ns = min(int(each.events_tai_ns[-1]) for each in nodes) - START_TAI_NS - 10_000_000
    sent_ns = [np.sort(rng.uniform(begin_ns, end_ns, n)) for _ in nodes]
    found: list[RecordedNode] = []
    for k, node in enumerate(nodes):
        came_ns = sent_ns[k - 1] + LEAST_WAY_NS + rng.exponential(100_000, n)
        local_ns = node.clock.shows_ns(np.rint(np.concatenate([sent_ns[k], came_ns])))
        order = np.argsort(local_ns, kind="stable")
        number = np.empty(2 * n, np.int64)
        number[order] = np.arange(2 * n)
        found.append(RecordedNode(node, local_ns[order], number[:n], number[n:]))
    return found


def placed(nodes: list[RecordedNode]) -> Placed:
    """Place all events, bring them into one order, and look for effects before their causes."""
    places = tuple(GlobalTime(each.node.record).place(each.local_ns) for each in nodes)
    order = merged_order([each.tai_ns if each.known.all() else each.tai_ns[each.known] for each in places])
    names = [each.node.record.node for each in nodes]
    directions = [
        Messages(
            names[k - 1],
            names[k],
            places[k - 1],
            places[k],
            LEAST_WAY_NS,
            (nodes[k - 1].sent, nodes[k].received),
        )
        for k in range(len(nodes))
    ]
    return Placed(places, order, causality(directions))


def timeline_of(nodes: list[RecordedNode], found: Placed) -> Timeline:
    """Return the events as a timeline."""
    tracks = [
        placed_track(
            each.node.record.node,
            "program",
            ("sent", "received"),
            places,
            np.isin(np.arange(each.local_ns.size), each.received).astype(np.int64),
            np.arange(each.local_ns.size),
        )[0]
        for each, places in zip(nodes, found.places, strict=True)
    ]
    return Timeline("bench", "tai", "drawn clocks", tuple(tracks))


def main(arguments: list[str]) -> int:
    """Run once."""
    nodes = recorded()
    begin = time.perf_counter()
    found = placed(nodes)
    took_s = time.perf_counter() - begin
    assert not found.causality.is_certain
    figures = {"took_s": took_s, "peak_bytes": peak_resident_bytes("self"), "events": int(found.order.size)}
    if arguments:
        write_ctf(timeline_of(nodes, found), Path(arguments[0]))
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
