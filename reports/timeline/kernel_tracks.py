# SPDX-License-Identifier: Apache-2.0
"""The events of a kernel recording as tracks, a CPU each, by the recording's own clock.

A thread that has the CPU is an event that lasts until the next one has it; where events between the two are
lost, an instant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.global_time import Places
from reports.timeline.kernel_recording import Recording
from reports.timeline.kernel_ring import CpuRing
from reports.timeline.placed_events import Timeline, Track, placed_track

SWITCH = "sched/sched_switch"


def timeline_of_recording(place: str, node: str, recording: Recording) -> Timeline:
    """Return a recording as a timeline by CLOCK_MONOTONIC of its machine.

    Args:
        place: What it is called.
        node: The machine.
        recording: Of its kernel.

    Raises:
        RecordError: A time cannot be.
    """
    dropped = sorted(recording.dropped.items())
    lost = {f"CPU {cpu}: its buffer had no room": count for cpu, count in dropped if count}
    tracks = tuple(track_of_ring(node, ring) for _, ring in sorted(recording.rings.items()))
    return Timeline(place, "monotonic", f"the {node}'s CLOCK_MONOTONIC", tracks, left_out=lost)


def track_of_ring(node: str, ring: CpuRing) -> Track:
    """Return the events of a CPU as a track; raises RecordError: a time cannot be."""
    names: dict[str, int] = {}
    parts: list[tuple[Times, ...]] = []
    for kind, events in ring.events.items():
        if not len(events):
            continue
        time_ns = events["time_ns"]
        if int(time_ns.max()) > 1 << 62:
            raise RecordError(f"CPU {ring.cpu}: {kind}: a time of {int(time_ns.max())} ns")
        time_ns, place = time_ns.astype(np.int64), events["place"]
        duration_ns, name = np.zeros_like(place), np.full_like(place, names.setdefault(kind, len(names)))
        of_thread = _numbers(events, "common_pid")
        if kind == SWITCH and _is_text(events, "next_comm"):
            texts, which = np.unique(events["next_comm"], return_inverse=True)
            own = [names.setdefault(text.decode(errors="replace"), len(names)) for text in texts.tolist()]
            name, of_thread = np.array(own, np.int64)[which], _numbers(events, "next_pid")
            whole = ~_lost_between(place, ring.gaps["place"])
            duration_ns[:-1] = np.where(whole, np.maximum(np.diff(time_ns), 0), 0)
        parts.append((place, time_ns, duration_ns, name, of_thread))
    empty = np.empty(0, np.int64)
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)] if parts else [empty] * 5
    order = np.argsort(columns[0], kind="stable")
    _, time_ns, duration_ns, name, of_thread = (each[order] for each in columns)
    zero = np.zeros_like(time_ns)
    places = Places(time_ns, time_ns, time_ns, zero, np.ones(time_ns.shape, np.bool_))
    lane = f"CPU {ring.cpu}"
    return placed_track(node, lane, tuple(names), places, name, of_thread, duration_ns=duration_ns)[0]


def _numbers(events: NDArray[Any], name: str) -> Times:
    """Return a field as the format of the event has it; zeros where it has no such number."""
    has = name in (events.dtype.names or ()) and events[name].dtype.kind in "iu" and events[name].ndim == 1
    return events[name].astype(np.int64) if has else np.zeros(len(events), np.int64)


def _is_text(events: NDArray[Any], name: str) -> bool:
    return name in (events.dtype.names or ()) and events[name].dtype.kind == "S"


def _lost_between(places: Times, gaps: Times) -> NDArray[np.bool_]:
    """Say between which events and the next one of their kind some are lost, shape (n - 1,)."""
    gaps = np.sort(gaps)
    return np.diff(np.searchsorted(gaps, places, side="right")) > 0
