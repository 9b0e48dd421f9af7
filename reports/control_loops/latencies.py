# SPDX-License-Identifier: Apache-2.0
"""Series of rings and of loops of a camera: the whole and each part, by when a message or picture began."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from reports.control_loops.camera_evidence import CAMERA_FILE
from reports.control_loops.camera_loop import load_camera_loop
from reports.control_loops.capability import WHOLE
from reports.control_loops.case import Case
from reports.control_loops.clock import clock_course
from reports.control_loops.loop import Stretch
from reports.control_loops.ring import Ring, load_ring
from reports.control_loops.ring_evidence import FOLDER, RING_FILE
from reports.latencies import Latencies, PolledAt, latencies_by_folder
from reports.timeline.clock_record import Times
from reports.timeline.recorded_end import RecordedEnd
from reports.units import NS_PER_US

PPB_PER_PPM = 1000


def latencies_of(run: Path) -> tuple[list[Latencies], list[str]]:
    """Return the series of a run, and in words what cannot be read."""
    rings, no_rings = latencies_by_folder(run, FOLDER, RING_FILE, _of_ring)
    cameras, no_cameras = latencies_by_folder(run, FOLDER, CAMERA_FILE, _of_camera)
    return [*rings, *cameras], [*no_rings, *no_cameras]


def _of_ring(place: str, folder: Path) -> Iterator[Latencies]:
    ring = load_ring(folder)
    polled = _polled(ring, folder)
    for each in _of(place, ring.stretches, ring.whole.number, ring.whole.sent.tai_ns):
        waits = ring.facts.poll is not None and each.name in (WHOLE, f"hop {ring.facts.poll.node}")
        yield replace(each, polled=polled) if waits else each


def _polled(ring: Ring, folder: Path) -> PolledAt | None:
    """Return whose clocks decide how long messages wait for a node that polls; None: nobody does."""
    poll = ring.facts.poll
    if poll is None:
        return None
    source, polling = ring.facts.ends[0], ring.facts.ends[poll.node]
    (rate_ppm, u_ppm), (poll_ppm, poll_u_ppm) = (_rate(folder, each) for each in (source, polling))
    return PolledAt(
        poll.poll_us * NS_PER_US,
        source.node,
        polling.node,
        rate_ppm - poll_ppm,
        math.hypot(u_ppm, poll_u_ppm),
    )


def _rate(folder: Path, end: RecordedEnd) -> tuple[float, float]:
    """Return the rate of a node's clock and its U, in ppm: by how much U allows at both ends."""
    course = clock_course(folder, Case(), end)
    if course is None:
        return 0.0, 0.0
    passed_s = float(course.at_s[-1] - course.at_s[0])
    return course.rate_ppb / PPB_PER_PPM, 2 * course.u_ns / passed_s / PPB_PER_PPM


def _of_camera(place: str, folder: Path) -> Iterator[Latencies]:
    """Give those of all pictures: what a warm-up leaves is a pattern, too."""
    loop = load_camera_loop(folder, run_up=0)
    captured_ns = loop.truth.captured_ns
    return _of(place, loop.stretches, np.arange(captured_ns.size), captured_ns)


def _of(place: str, stretches: Iterable[Stretch], number: Times, begun_ns: Times) -> Iterator[Latencies]:
    for each in stretches:
        _, one, other = np.intersect1d(number, each.number, assume_unique=True, return_indices=True)
        yield Latencies(place, each.name, begun_ns[one], each.time_ns[other].astype(np.float64))
