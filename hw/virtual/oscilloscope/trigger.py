# SPDX-License-Identifier: Apache-2.0
"""The edge trigger: when the waveform of the trigger channel crosses the level."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from hw.virtual.oscilloscope.front_end import InputSignal, waveform_v
from hw.virtual.oscilloscope.timeline import Arrivals

_GRID_POINTS = 1025
SEARCH_SIGMAS = 6.0


class Slope(Enum):
    """Which crossings count."""

    RISING = "rising"
    FALLING = "falling"
    EITHER = "either"

    def accepts(self, rising: bool) -> bool:
        """Tell whether a crossing in this direction counts."""
        return self is Slope.EITHER or (self is Slope.RISING) == rising


@dataclass(frozen=True)
class TriggerSetup:
    """What starts a record.

    Attributes:
        channel: Trigger source.
        slope: Direction of the crossing.
        level_v: At the input, probe ratio taken off.
        automatic: Take a record without a trigger when none comes.
        holdoff_s: Shortest time from trigger to trigger.
    """

    channel: int
    slope: Slope
    level_v: float
    automatic: bool
    holdoff_s: float


def find_crossing(
    arrivals: Arrivals, edge_ps: float, rising: bool, trigger: TriggerSetup, signal: InputSignal, sigma: float
) -> float | None:
    """Return when the waveform crosses the trigger level around an edge, or None.

    Neighbouring edges are part of the waveform: a pulse too short to reach the level does not trigger.

    Args:
        arrivals: Edges in picoseconds from any zero, those within SEARCH_SIGMAS and REACH_SIGMAS of the edge.
        edge_ps: Arrival of the edge.
        rising: Level after it.
        trigger: Level and direction.
        signal: Levels of the input.
        sigma: Width of the edges in picoseconds.
    """
    upwards = rising == (signal.high_v > signal.low_v)
    if not trigger.slope.accepts(upwards):
        return None
    reach_ps = SEARCH_SIGMAS * sigma
    times_ps = np.linspace(edge_ps - reach_ps, edge_ps + reach_ps, _GRID_POINTS)
    above = waveform_v(times_ps, arrivals, signal, sigma) - trigger.level_v
    if not upwards:
        above = -above
    crossings = np.flatnonzero((above[:-1] < 0) & (above[1:] >= 0))
    if crossings.size == 0:
        return None
    first = int(crossings[0])
    share = above[first] / (above[first] - above[first + 1])
    return float(times_ps[first] + share * (times_ps[first + 1] - times_ps[first]))
