# SPDX-License-Identifier: Apache-2.0
"""Series of rings and of loops of a camera: the whole and each part, by when a message or picture began."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from reports.control_loops.camera_evidence import CAMERA_FILE
from reports.control_loops.camera_loop import load_camera_loop
from reports.control_loops.loop import Stretch
from reports.control_loops.ring import load_ring
from reports.control_loops.ring_evidence import FOLDER, RING_FILE
from reports.latencies import Latencies, latencies_by_folder
from reports.timeline.clock_record import Times


def latencies_of(run: Path) -> tuple[list[Latencies], list[str]]:
    """Return the series of a run, and in words what cannot be read."""
    rings, no_rings = latencies_by_folder(run, FOLDER, RING_FILE, _of_ring)
    cameras, no_cameras = latencies_by_folder(run, FOLDER, CAMERA_FILE, _of_camera)
    return [*rings, *cameras], [*no_rings, *no_cameras]


def _of_ring(place: str, folder: Path) -> Iterator[Latencies]:
    ring = load_ring(folder)
    return _of(place, ring.stretches, ring.whole.number, ring.whole.sent.tai_ns)


def _of_camera(place: str, folder: Path) -> Iterator[Latencies]:
    """Give those of all pictures: what a warm-up leaves is a pattern, too."""
    loop = load_camera_loop(folder, run_up=0)
    captured_ns = loop.truth.captured_ns
    return _of(place, loop.stretches, np.arange(captured_ns.size), captured_ns)


def _of(place: str, stretches: Iterable[Stretch], number: Times, begun_ns: Times) -> Iterator[Latencies]:
    for each in stretches:
        _, one, other = np.intersect1d(number, each.number, assume_unique=True, return_indices=True)
        yield Latencies(place, each.name, begun_ns[one], each.time_ns[other].astype(np.float64))
