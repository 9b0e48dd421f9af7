# SPDX-License-Identifier: Apache-2.0
"""Rings as timelines: what every program recorded of each message, and the hops between."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reports.control_loops.ring import Ring, load_ring
from reports.control_loops.ring_evidence import FOLDER, RING_FILE
from reports.timeline.clock_record import Times
from reports.timeline.placed_events import Flows, Timeline, Track
from reports.timeline.timelines import add_leg, timelines_by_folder


def timelines_of(run: Path) -> tuple[list[Timeline], list[str]]:
    """Return a timeline for each ring of a run, and in words what cannot be read."""
    return timelines_by_folder(
        run, FOLDER, RING_FILE, lambda place, folder: timeline_of_ring(place, load_ring(folder))
    )


def timeline_of_ring(place: str, ring: Ring) -> Timeline:
    """Return both ends of each hop as tracks, and a flow for each message; raises RecordError."""
    tracks: list[Track] = []
    flows: list[tuple[Times, Times, Times, Times]] = []
    for hop in ring.hops:
        add_leg(hop, tracks, flows)
    lost = {hop.name: max(0, len(ring.whole) - len(hop)) for hop in ring.hops}
    return Timeline(
        place,
        "tai",
        "the bench's reference clock",
        tuple(tracks),
        Flows(*(np.concatenate(each) for each in zip(*flows, strict=True))),
        {f"{name}: no place at both ends": count for name, count in lost.items() if count},
        ring.facts.tai_utc_s,
    )
