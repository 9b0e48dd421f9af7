# SPDX-License-Identifier: Apache-2.0
"""Pairs of edges: an edge of the reference and the one of the other channel that belongs to it.

Both edges of a pair lie in one frame, so that the trigger's jitter, which shifts all of a frame, is in
neither delay. A reference edge without a partner is told apart: the other edge is missing, is a runt, or may
lie outside the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from scope.edges import Edges
from scope.errors import WaveformError

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class Polarity(Enum):
    """Which edges count."""

    RISING = "rising"
    FALLING = "falling"
    EITHER = "either"

    def chosen(self, rising: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say of each edge whether it counts."""
        if self is Polarity.EITHER:
            return np.ones(len(rising), bool)
        return rising == (self is Polarity.RISING)


@dataclass(frozen=True)
class PairSettings:
    """Which edges belong together.

    Attributes:
        reference: Edges of the reference that count.
        other: Edges of the other channel that count.
        expected_s: Where the partner is looked for, after the reference edge.
        within_s: How far from there it may lie; None: anywhere in the record.
    """

    reference: Polarity = Polarity.RISING
    other: Polarity = Polarity.RISING
    expected_s: float = 0.0
    within_s: float | None = None

    def __post_init__(self) -> None:
        if self.within_s is not None and not self.within_s > 0:
            raise WaveformError(f"within_s: {self.within_s}, must be above 0")


@dataclass(frozen=True)
class Pairs:
    """Pairs of some frames.

    Attributes:
        reference: Places in the reference's edges.
        other: Places of their partners in the other channel's edges.
        delay_s: Other less reference: positive where the other edge is later.
        missing: Reference edges without a partner, and without a runt in its place.
        runt: Reference edges with a runt in the partner's place.
        at_border: Reference edges without a partner, which may lie outside the record.
        extra: Edges of the other channel that belong to no reference edge.
    """

    reference: Places
    other: Places
    delay_s: Floats
    missing: int
    runt: int
    at_border: int
    extra: int


def pair_edges(reference: Edges, other: Edges, settings: PairSettings) -> Pairs:
    """Pair the edges of two channels, frame by frame; frames of both are the same segments in the same order.

    Partners are the nearest to where they are expected, each to the other.

    Raises:
        WaveformError: Both channels have not the same number of frames.
    """
    if len(reference.start_s) != len(other.start_s):
        raise WaveformError(
            f"pairs: {len(reference.start_s)} frames of the reference, {len(other.start_s)} of the other"
        )
    sound = np.ones(len(reference.start_s), bool)
    sound[[*reference.faults, *other.faults]] = False
    ours = np.flatnonzero(settings.reference.chosen(reference.rising) & sound[reference.frame])
    theirs = np.flatnonzero(settings.other.chosen(other.rising) & sound[other.frame])
    line = _Line(reference, other, settings)
    key = line.place(reference.frame[ours], reference.time_s[ours] + settings.expected_s)
    partner_key = line.place(other.frame[theirs], other.time_s[theirs])
    partner = _nearest(key, partner_key, line.within_s)
    back = _nearest(partner_key, key, line.within_s)
    paired = partner >= 0
    paired[paired] = back[partner[paired]] == np.flatnonzero(paired)
    alone = ~paired
    chosen = settings.other.chosen(other.runt_rising)
    runts = np.sort(line.place(other.runt_frame[chosen], other.runt_time_s[chosen]))
    is_runt = alone.copy()
    is_runt[alone] = _nearest(key[alone], runts, line.within_s) >= 0
    outside = alone & ~is_runt
    if settings.within_s is None:
        outside[:] = False
    else:
        frame, expected = reference.frame[ours], reference.time_s[ours] + settings.expected_s
        outside &= (expected - settings.within_s < other.start_s[frame]) | (
            expected + settings.within_s > other.end_s[frame]
        )
    first, second = ours[paired], theirs[partner[paired]]
    return Pairs(
        first,
        second,
        other.time_s[second] - reference.time_s[first],
        missing=int((alone & ~is_runt & ~outside).sum()),
        runt=int(is_runt.sum()),
        at_border=int(outside.sum()),
        extra=len(theirs) - len(second),
    )


class _Line:
    """Times of all frames on one line, so far apart that no edge finds a partner in another frame."""

    def __init__(self, reference: Edges, other: Edges, settings: PairSettings) -> None:
        times = [reference.start_s, other.start_s, reference.end_s, other.end_s]
        self._start_s = min((float(part.min()) for part in times if len(part)), default=0.0)
        longest_s = max((float(part.max()) for part in times if len(part)), default=0.0) - self._start_s
        longest_s += 2 * abs(settings.expected_s)
        self.within_s = longest_s if settings.within_s is None else settings.within_s
        self._apart_s = 4 * (longest_s + self.within_s)

    def place(self, frame: Places, time_s: Floats) -> Floats:
        return frame * self._apart_s + (time_s - self._start_s)


def _nearest(places: Floats, candidates: Floats, within: float) -> Places:
    """Return which candidate, of ascending ones, is nearest to each place; -1 where none is near enough."""
    if not len(candidates):
        return np.full(len(places), -1)
    above = np.searchsorted(candidates, places).clip(0, len(candidates) - 1)
    below = (above - 1).clip(0)
    nearer = np.where(places - candidates[below] <= candidates[above] - places, below, above)
    nearer = np.where(candidates[above] <= places, above, nearer)
    return np.where(np.abs(candidates[nearer] - places) <= within, nearer, -1)
