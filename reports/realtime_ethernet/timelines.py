# SPDX-License-Identifier: Apache-2.0
"""Kernel recordings of real-time Ethernet as timelines, each by the clock of its machine.

No run holds that clock against TAI: a recording has an axis of its own, ns of CLOCK_MONOTONIC
(`reports/timeline/kernel_tracks.py`).
"""

from __future__ import annotations

from pathlib import Path

from reports.errors import RecordError
from reports.realtime_ethernet.evidence import RING
from reports.timeline.kernel_recording import load_recording
from reports.timeline.kernel_tracks import timeline_of_recording
from reports.timeline.placed_events import Timeline

TARGET = "target"


def timelines_of(run: Path) -> tuple[list[Timeline], list[str]]:
    """Return a timeline for each recording of a run, and in words what cannot be read."""
    found: list[Timeline] = []
    problems: list[str] = []
    evidence = run / "evidence"
    for path in sorted((evidence / "realtime_ethernet").rglob(f"*{RING}")):
        place = path.relative_to(evidence).as_posix().removesuffix(RING)
        try:
            recording = load_recording(path)
            found.append(timeline_of_recording(place, TARGET, recording))
        except RecordError as error:
            problems.append(f"{place}: {error}")
            continue
        for ring in recording.rings.values():
            problems += [f"{place}: {path.name}: CPU {ring.cpu}: {each}" for each in ring.damages]
    return found, problems
