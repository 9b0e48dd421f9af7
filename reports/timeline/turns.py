# SPDX-License-Identifier: Apache-2.0
"""What was different in each second turn of messages: by how much longer they took then.

What a clock is off is the same in neighbouring turns, and goes out of the difference, but for what it moves
from one turn to the next: U takes the scatter of the turns' medians alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reports.errors import RecordError
from reports.timeline.clock_record import Times

TURNS_MIN = 8
"""Pairs of turns, below which their scatter says nothing."""


@dataclass(frozen=True, slots=True)
class Later:
    """By how much each second turn took longer.

    Attributes:
        found_ns: Median of all turns between two others.
        standard_ns: Standard deviation of that.
        turns: How many.
    """

    found_ns: int
    standard_ns: int
    turns: int


def later_by_turns(name: str, number: Times, time_ns: Times, turn: int, count: int) -> Later:
    """Compare each second turn with those before and after it.

    Args:
        name: Of what took the time, for errors.
        number: Shape (n,), of the messages.
        time_ns: Shape (n,): what each took.
        turn: So many messages are one.
        count: So many messages there were.

    Raises:
        RecordError: Too few turns.
    """
    of = number // turn
    turns = [time_ns[of == each] for each in range(count // turn)]
    medians = np.array([np.median(each) if each.size else np.nan for each in turns])
    later = [medians[at] - (medians[at - 1] + medians[at + 1]) / 2 for at in range(1, len(medians) - 1, 2)]
    every = np.array([each for each in later if not math.isnan(each)])
    if every.size < TURNS_MIN:
        raise RecordError(f"{name}: {every.size} turns between two others; needs {TURNS_MIN}")
    middle = float(np.median(every))
    spread_ns = 1.4826 * float(np.median(np.abs(every - middle)))
    # Of a median: its standard deviation is 1.25 times that of a mean; neighbours share a turn.
    standard_ns = math.ceil(1.25 * math.sqrt(2 / every.size) * spread_ns)
    return Later(round(middle), standard_ns, every.size)
