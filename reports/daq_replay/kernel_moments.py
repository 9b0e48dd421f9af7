# SPDX-License-Identifier: Apache-2.0
"""Who had the target's processors while a message was late, by its kernel's own events.

The recording goes by CLOCK_MONOTONIC of the target; what the consumer says of TAI less that brings its events
to the time of the message. Of each processor those threads are told that had it for a part that matters
between the message's sending and its reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.daq_replay.verdict import ReplayResults
from reports.errors import RecordError
from reports.timeline.kernel_recording import load_recording
from reports.timeline.kernel_tracks import track_of_ring
from reports.timeline.placed_events import Track
from reports.units import format_value

KERNEL_RING = "kernel-ring.gz"
IDLE = "swapper"
TOLD_SHARE, TOLD_MIN_NS = 0.1, 200_000
"""A thread is told that had a processor for so large a part of the time, and so long."""
TOLD_MAX = 4
"""Of each processor."""


@dataclass(frozen=True, slots=True)
class HadProcessor:
    """A thread that had a processor; times in TAI of the target.

    Attributes:
        begin_ns: When it first had it.
        end_ns: When it last had it.
        ran_ns: How long in all.
    """

    cpu: str
    thread: str
    number: int
    begin_ns: int
    end_ns: int
    ran_ns: int

    @property
    def words(self) -> str:
        """Return what is told."""
        return f"thread {self.thread} ({self.number}) had it for {format_value(self.ran_ns, 'ns')}"


@dataclass(frozen=True, slots=True, eq=False)
class RecordedKernel:
    """A recording on TAI of the target.

    Attributes:
        tracks: A processor each.
        tai_minus_monotonic_ns: That was added.
    """

    tracks: tuple[Track, ...]
    tai_minus_monotonic_ns: int

    def reaches_back_to(self) -> int:
        """Return from when on every processor's events are there, TAI."""
        first = [int(each.tai_ns[0]) for each in self.tracks if len(each)]
        return max(first, default=1 << 62) + self.tai_minus_monotonic_ns

    def had(self, begin_tai_ns: int, end_tai_ns: int) -> Iterator[HadProcessor]:
        """Yield who had each processor between two times for a part of it that matters, the longest first."""
        begin_ns, end_ns = (each - self.tai_minus_monotonic_ns for each in (begin_tai_ns, end_tai_ns))
        least_ns = max(TOLD_MIN_NS, TOLD_SHARE * (end_ns - begin_ns))
        for track in self.tracks:
            from_ns = np.clip(track.tai_ns, begin_ns, end_ns)
            until_ns = np.clip(track.tai_ns + track.duration_ns, begin_ns, end_ns)
            ran = np.flatnonzero(until_ns > from_ns)
            whose = np.stack([track.name[ran], track.tag[ran]])
            told: list[HadProcessor] = []
            for pair in np.unique(whose, axis=1).T:
                name, number = int(pair[0]), int(pair[1])
                own = ran[(track.name[ran] == name) & (track.tag[ran] == number)]
                ran_ns = int((until_ns[own] - from_ns[own]).sum())
                if ran_ns >= least_ns and not track.names[name].startswith(IDLE):
                    first, last = int(from_ns[own].min()), int(until_ns[own].max())
                    back = self.tai_minus_monotonic_ns
                    told.append(
                        HadProcessor(track.lane, track.names[name], number, first + back, last + back, ran_ns)
                    )
            yield from sorted(told, key=lambda each: -each.ran_ns)[:TOLD_MAX]


def kernel_events(folder: Path, replay: ReplayResults, problems: list[str]) -> RecordedKernel | None:
    """Return what the target's kernel recorded of a replay; None: nothing, or a problem more."""
    path = folder / KERNEL_RING
    if not path.exists():
        return None
    known = replay.recv.tai_minus_monotonic_ns
    if known is None or any(each.clock == "local" for each in replay.recv.clock_steps):
        problems.append(f"{KERNEL_RING}: by how much the target's clocks differ is not known, or it changed")
        return None
    try:
        recording = load_recording(path)
        tracks = tuple(track_of_ring("target", ring) for _, ring in sorted(recording.rings.items()))
    except RecordError as error:
        problems.append(f"{KERNEL_RING}: {error}")
        return None
    damages = [f"CPU {ring.cpu}: {each}" for ring in recording.rings.values() for each in ring.damages]
    problems += [f"{KERNEL_RING}: {each}" for each in damages]
    return RecordedKernel(tracks, known[0])
