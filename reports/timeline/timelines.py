# SPDX-License-Identifier: Apache-2.0
"""Stimulus and response as timelines: what both programs recorded of each message, and the ways between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from reports.errors import RecordError
from reports.timeline.clock_record import Times
from reports.timeline.leg import Leg
from reports.timeline.legs import Legs, load_stimulus_response
from reports.timeline.legs_evidence import FOLDER, LEGS_FILE
from reports.timeline.placed_events import Flows, Timeline, Track, placed_track


def timelines_of(run: Path) -> tuple[list[Timeline], list[str]]:
    """Return a timeline for each measurement of a run, and in words what cannot be read."""
    return timelines_by_folder(
        run, FOLDER, LEGS_FILE, lambda place, folder: timeline_of_legs(place, load_stimulus_response(folder))
    )


def timelines_by_folder(
    run: Path, capability: str, document: str, timeline_of: Callable[[str, Path], Timeline]
) -> tuple[list[Timeline], list[str]]:
    """Return a timeline for each folder of evidence with a document, and in words what cannot be read.

    Args:
        run: The run folder.
        capability: Folder of the evidence.
        document: Name of the file that a measurement has.
        timeline_of: Returns the timeline of a measurement by its place in the evidence, and its folder;
            raises RecordError.
    """
    found: list[Timeline] = []
    problems: list[str] = []
    evidence = run / "evidence"
    for path in sorted((evidence / capability).rglob(document)):
        place = path.parent.relative_to(evidence).as_posix()
        try:
            found.append(timeline_of(place, path.parent))
        except RecordError as error:
            problems.append(f"{place}: {error}")
    return found, problems


def timeline_of_legs(place: str, legs: Legs) -> Timeline:
    """Return both ends of each leg as tracks, and a flow for each message; raises RecordError."""
    tracks: list[Track] = []
    flows: list[tuple[Times, Times, Times, Times]] = []
    for leg in legs.legs:
        add_leg(leg, tracks, flows)
    columns = [np.concatenate(each) for each in zip(*flows, strict=True)] if flows else []
    missing = {leg.name: legs.missing(leg) for leg in legs.legs}
    return Timeline(
        place,
        "tai",
        "the bench's reference clock",
        tuple(tracks),
        Flows(*columns),
        {f"{name}: no place at both ends": count for name, count in missing.items() if count},
        legs.facts.tai_utc_s,
    )


def add_leg(leg: Leg, tracks: list[Track], flows: list[tuple[Times, Times, Times, Times]]) -> None:
    """Add both ends of a leg as tracks, and a flow for each message."""
    names = np.zeros(len(leg), np.int64)
    sent, out = placed_track(leg.sender, f"{leg.name}: sent", ("sent",), leg.sent, names, leg.number)
    received, back = placed_track(
        leg.receiver, f"{leg.name}: received", ("received",), leg.received, names, leg.number
    )
    at = len(tracks)
    tracks += [sent, received]
    flows.append((np.full(len(leg), at), out, np.full(len(leg), at + 1), back))
