# SPDX-License-Identifier: Apache-2.0
"""Disturbances in the section on clocks: what was done, when, how far off the clock was, when it locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.clock_sync.disturbance import DISTURBANCE, Disturbance, Event, load_disturbance
from reports.clock_sync.trial import TRIAL, ClockTrial, load_trial
from reports.errors import RecordError
from reports.units import NS_PER_S

DISTURBANCE_KINDS = {
    "relock": "started on a wrong clock",
    "oscillator": "oscillator changed",
    "step": "clock stepped",
    "grandmaster": "grandmaster changed",
    "impaired": "impaired path",
    "events": "what happens in mid-run",
    "server-stepped": "server's time stepped",
    "paused": "target paused",
    "rebooted": "target rebooted",
}


@dataclass(frozen=True)
class DisturbanceRow:
    """One event; the offset farthest from 0 is that since the event and before the next one, in ns."""

    title: str
    event: Event
    farthest_ns: int | None


def gather_disturbances(folder: Path, evidence: Path) -> tuple[list[DisturbanceRow], list[str]]:
    """Read all disturbances of a run.

    Args:
        folder: The run folder.
        evidence: Its folder of the clocks' trials.

    Returns:
        The rows, and what is damaged.
    """
    rows: list[DisturbanceRow] = []
    problems: list[str] = []
    for path in sorted(evidence.glob(f"**/{DISTURBANCE}")):
        try:
            disturbance = load_disturbance(path.parent)
            trial = load_trial(path.parent) if (path.parent / TRIAL).exists() else None
        except (RecordError, OSError) as error:
            problems.append(f"{path.parent.relative_to(folder).as_posix()}: {error}")
            continue
        if disturbance is not None:
            rows += rows_of(disturbance, trial)
    return rows, problems


def rows_of(disturbance: Disturbance, trial: ClockTrial | None) -> list[DisturbanceRow]:
    """Return a row for each event; without a trial no offset was measured."""
    title = f"{disturbance.clock}, {DISTURBANCE_KINDS.get(disturbance.kind, disturbance.kind)}"
    ends_s = [float(event.at_s) for event in disturbance.events[1:]] + [float("inf")]
    return [
        DisturbanceRow(title, event, None if trial is None else farthest_ns(trial, float(event.at_s), end_s))
        for event, end_s in zip(disturbance.events, ends_s, strict=True)
    ]


def farthest_ns(trial: ClockTrial, from_s: float, to_s: float) -> int | None:
    """Return the offset farthest from 0 between two times since a trial began; None without a sample."""
    start_ns = trial.filtered.start_tai_ns
    found: Sequence[int] = [
        offset_ns
        for point in trial.filtered.series
        if from_s <= (point.time_tai_ns - start_ns) / NS_PER_S < to_s
        for offset_ns in (point.min_ns, point.max_ns)
    ]
    return max(found, key=abs, default=None)
