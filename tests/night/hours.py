# SPDX-License-Identifier: Apache-2.0
"""A night of some hours: what fits into it, and what the next begins with, so that each part has its turn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from hw.errors import ConfigError
from tests.night.machine import machine
from tests.night.parts import Part
from tests.night.result import Result, write_text

NEXT = "next"
"""The file in results/night with the name of the part that the next night of some hours begins with."""


def hours_of(text: str | None) -> float:
    """Return how long a night may take, in hours; for ever where nothing is said.

    Raises:
        ConfigError: It is no such number.
    """
    try:
        hours = math.inf if text is None else float(text)
    except ValueError:
        hours = math.nan
    if not hours > 0:
        raise ConfigError(f"night: HOURS: need a number of hours above 0, got {text!r}")
    return hours


def in_turn(nights: Path, wanted: Sequence[Part]) -> Sequence[Part]:
    """Return the parts, beginning with the one that the last such night left in this folder."""
    try:
        first = (nights / NEXT).read_text(encoding="utf-8").strip()
    except OSError:
        return wanted
    names = [part.name for part in wanted]
    at = names.index(first) if first in names else 0
    return (*wanted[at:], *wanted[:at])


def fits(part: Part, left_s: float, results: Iterable[Result]) -> bool:
    """Say whether a part ends in time, by how long it took on this machine last; one that never ran does.

    Args:
        part: The part.
        left_s: How long the night goes on, in s.
        results: Of all nights.
    """
    here = machine()
    same = [r for r in results if (r.part, r.commands, r.machine) == (part.name, part.commands, here)]
    last = max(same, key=lambda result: result.began_utc, default=None)
    return left_s > 0 and (last is None or last.seconds <= left_s)


def leave(nights: Path, left: Sequence[str], whole_night: str) -> None:
    """Let the next night begin with the first part that this one has left.

    Args:
        nights: The folder of all nights.
        left: The parts without a result of this night, in its order.
        whole_night: The part that this night began with: a whole night is too short for it where it is left,
            and would be again.

    Raises:
        BenchError: The file cannot be written.
    """
    others = [name for name in left if name != whole_night]
    write_text(nights / NEXT, (others[0] if others else "") + "\n")
