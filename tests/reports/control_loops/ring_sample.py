# SPDX-License-Identifier: Apache-2.0
"""Evidence of a ring in its documented form, made up of hops, holds and clocks that a test states.

Two of the nodes are on the machine of the reference clock; exchanges tell of the clocks of the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reports.control_loops.load import KnownLoad
from reports.control_loops.ring_evidence import KnownHold, RingFacts, write_ring
from reports.timeline.recorded_end import RecordedEnd
from tests.reports.sample_run import summary
from tests.reports.timeline.legs_sample import (
    BEGIN_NS,
    TAI_UTC_S,
    Machine,
    exchanges_answer,
    stream_bytes,
)

TARGET = "linux-rt"
NODES = (TARGET, "producer-12", "p01", "p02", TARGET)
MACHINES = {
    TARGET: Machine(2_500_000_000, ahead_ns=4_000_000_000, rate_ppm=25.0),
    "producer-12": Machine(1_000_000_000, ahead_ns=-2_000_000_000, rate_ppm=-40.0),
    "p01": Machine(1_000_000_000),
    "p02": Machine(1_000_000_000),
}
INTERVAL_NS = 5_000_000
IN_NODE_NS = 700
WIRE_NS = 2500
POINTS = ("ring.read", "ring.write", "ring.kernel_read", "ring.kernel_written")


def hop_ns(place: int, number: int) -> int:
    """Return what a hop takes if the test says nothing else."""
    return 30_000 + 10_000 * place + number % 7 * 100


def write_sample_ring(
    folder: Path,
    *,
    count: int = 220,
    hops: Callable[[int, int], int] = hop_ns,
    machines: Mapping[str, Machine] | None = None,
    half_ns: int = 20_000,
    shifted_ns: Mapping[str, int] | None = None,
    hold: KnownHold | None = None,
    shows_at: Sequence[int] | None = None,
    kernel_stamps: bool = True,
    unstamped: Sequence[int] = (),
    leave_out: tuple[int, int] = (-1, -1),
    answers: Mapping[int, Mapping[str, Any]] | None = None,
    least_ns: int = 0,
    load: KnownLoad | None = None,
) -> RingFacts:
    """Write evidence, and return what `ring.json` says.

    Args:
        folder: It is made.
        count: Messages.
        hops: What a hop takes, by its place from 1 and the message's number.
        machines: Other than MACHINES, by node.
        half_ns: Half of a round trip of an exchange with a clock.
        shifted_ns: By how much exchanges with the clock of a node are wrong.
        hold: What `ring.json` says of a known hold.
        shows_at: Nodes in which it really is; None: where `ring.json` says.
        kernel_stamps: The kernels have stamped.
        unstamped: Numbers that the sink's kernel did not stamp.
        leave_out: Program and number of a message of whose reading nothing was recorded.
        answers: Changes of the answers, by program.
        least_ns: Of the wiring, each hop.
        load: Meanwhile; what it achieved is written by who calls.
    """
    folder.mkdir(parents=True, exist_ok=True)
    every = {**MACHINES, **(machines or {})}
    last = len(NODES) - 1
    events: list[list[tuple[int, int, int] | tuple[int, int, int, int]]] = [[] for _ in NODES]
    holding = (hold.node,) if hold and shows_at is None else shows_at or ()
    end_ns = BEGIN_NS
    for number in range(count):
        at_ns = BEGIN_NS + number * INTERVAL_NS
        for place, node in enumerate(NODES):

            def stamp(true_ns: int, node: str = node) -> int:
                return every[node].clock_ns(true_ns) - TAI_UTC_S * 1_000_000_000

            if place:
                at_ns += hops(place, number)
                if (place, number) != leave_out:
                    events[place].append((0, number, at_ns))
                    if kernel_stamps and not (place == last and number in unstamped):
                        events[place].append((2, number, at_ns + 50, stamp(at_ns - 1000)))
            if place < last:
                if place:
                    at_ns += IN_NODE_NS
                if hold and place in holding and number // hold.turn % 2:
                    at_ns += hold.hold_us * 1000
                events[place].append((1, number, at_ns))
                if kernel_stamps:
                    left_ns = at_ns + hops(place + 1, number) - 1000 - WIRE_NS
                    events[place].append((3, number, at_ns + 100_000, stamp(left_ns)))
        end_ns = at_ns
    ends: list[RecordedEnd] = []
    for place, node in enumerate(NODES):
        raw = stream_bytes(f"bw-loop-{place}", every[node], POINTS, events[place], end_ns)
        (folder / f"{place}.bwevents").write_bytes(raw)
        read, written = (count if has else 0 for has in (place > 0, place < last))
        role = "source" if place == 0 else "sink" if place == last else "node"
        held = [hold.hold_us * 1000] * count if hold and place == hold.node else []
        answer: dict[str, Any] = {
            "type": "result", "tool": "bw-loop ring", "complete": True, "valid": True, "invalid_reasons": [],
            "role": role, "transport": "tcp", "of": count, "read": read, "written": written, "missing": 0,
            "double": 0, "disordered": 0, "broken": 0,
            "held": summary(held), "kernel_stamps": kernel_stamps, "clock_steps": [],
        }  # fmt: skip
        answer |= (answers or {}).get(place, {})
        (folder / f"{place}.ndjson").write_text(json.dumps(answer) + "\n")
        exchanges = None
        if every[node].ahead_ns or every[node].rate_ppm:
            exchanges = f"offset-{node}.ndjson"
            asked = exchanges_answer(every[node], half_ns, end_ns, (shifted_ns or {}).get(node, 0))
            (folder / exchanges).write_text(json.dumps(asked) + "\n")
        ends.append(RecordedEnd(node, f"{place}.ndjson", f"{place}.bwevents", exchanges))
    found = RingFacts(
        TARGET,
        tuple(ends),
        "tcp",
        2,
        False,
        10,
        count,
        INTERVAL_NS // 1000,
        TAI_UTC_S,
        (least_ns,) * last,
        hold,
        load,
    )
    write_ring(folder, found)
    return found


def wrong_clock(node: str, events_ahead_ns: int) -> dict[str, Machine]:
    """Return a machine whose points lie at other times than its clock says, and no exchange tells."""
    return {node: replace(MACHINES[node], events_ahead_ns=events_ahead_ns)}
