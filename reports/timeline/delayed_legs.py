# SPDX-License-Identifier: Apache-2.0
"""A known delay by turns in one leg: how much longer both legs were in the turns that had it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.timeline.capability import FROM_TARGET, TO_TARGET
from reports.timeline.leg import Leg
from reports.timeline.legs import Legs, load_stimulus_response
from reports.timeline.turns import later_by_turns

DELAY_FOLDERS = {"delayed-to-target": TO_TARGET, "delayed-from-target": FROM_TARGET}
"""Beside `legs.json`, each with the leg that is delayed."""


@dataclass(frozen=True, slots=True)
class FoundDelay:
    """What a delay of one leg came to in one of both.

    Attributes:
        delayed: The leg that had the delay.
        leg: The one that this is of.
        put_ns: What the delay really took, on average.
        found_ns: By how much the delayed turns of the leg took longer: median of all pairs of turns.
        standard_ns: Standard deviation of that.
        turns: Delayed turns between two others.
    """

    delayed: str
    leg: str
    put_ns: int
    found_ns: int
    standard_ns: int
    turns: int

    @property
    def wanted_ns(self) -> int:
        """Return what it has to come to."""
        return self.put_ns if self.leg == self.delayed else 0

    @property
    def error_ns(self) -> int:
        """Return by how much it is off."""
        return self.found_ns - self.wanted_ns

    @property
    def u_ns(self) -> int:
        """Return U of the error (k = 2)."""
        return 2 * self.standard_ns


def found_delay(folder: Path) -> tuple[FoundDelay, FoundDelay]:
    """Return what the delay of one leg came to in each; raises RecordError: names the file."""
    legs = load_stimulus_response(folder)
    if legs.facts.delay is None or legs.put_ns is None:
        raise RecordError(f"{folder.name}: legs.json: no leg had a delay")
    delay = legs.facts.delay
    one, other = (_found(legs, each, delay.leg, legs.put_ns, delay.turn) for each in legs.legs)
    return one, other


def found_delays(folder: Path) -> list[FoundDelay]:
    """Return what the delays of both legs came to in each; raises RecordError: names the file."""
    return [each for name in DELAY_FOLDERS for each in found_delay(folder / name)]


def _found(legs: Legs, leg: Leg, delayed: str, put_ns: int, turn: int) -> FoundDelay:
    later = later_by_turns(leg.name, leg.number, leg.time_ns, turn, legs.facts.count)
    return FoundDelay(delayed, leg.name, put_ns, later.found_ns, later.standard_ns, later.turns)
