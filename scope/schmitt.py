# SPDX-License-Identifier: Apache-2.0
"""Where a signal goes from one level to the other: two thresholds with hysteresis, over whole blocks.

A sample at or below the lower code is *low*, one at or above the upper code is *high*, others are on their
way. An edge goes from the last low sample to the next high one, or the other way round. An excursion that
leaves a level and comes back to it without the other in between is a runt, if it goes far enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scope.errors import WaveformError
from scope.waveform import Codes

CHUNK_SAMPLES = 1 << 17
"""How many samples are compared together: few enough for a processor's cache."""
BLOCK_SAMPLES = 1 << 20
"""How many samples edges are collected from together: few enough for the memory that each change takes."""

Places = NDArray[np.int64]


@dataclass(frozen=True)
class Transits:
    """Edges and runts of a block of samples, in the order of time.

    Attributes:
        before: The last sample at the old level of each edge.
        after: The first sample at the new level.
        upward: Whether the codes rise.
        runt: The last sample of each runt before it leaves its level.
        runt_upward: Whether a runt goes towards higher codes.
    """

    before: Places
    after: Places
    upward: NDArray[np.bool_]
    runt: Places
    runt_upward: NDArray[np.bool_]


def find_transits(
    codes: Codes, frame_samples: int, low: int, high: int, runt_codes: float, block: int = BLOCK_SAMPLES
) -> Transits:
    """Find all edges and runts of frames that lie one behind the other.

    Args:
        codes: Shape (frames * frame_samples,).
        frame_samples: Length of each frame; nothing goes on from one to the next.
        low: This code and those below are low.
        high: This code and those above are high.
        runt_codes: How far beyond its level, in codes, an excursion has to go to be a runt.
        block: Samples that are looked at together.

    Raises:
        WaveformError: Thresholds that leave no room between them or lie outside the codes' type.
    """
    limits = np.iinfo(codes.dtype)
    if not limits.min <= low < high <= limits.max or high - low < 2:
        raise WaveformError(
            f"thresholds at codes {low} and {high}: must be 2 apart and within {limits.min} .. {limits.max}"
        )
    total = len(codes)
    parts: list[Transits] = []
    start, length = 0, block
    while start < total - 1:
        stop = min(start + length, total)
        changes = _changes(codes[start:stop], low, high) + start
        found, last = _of_changes(codes, changes, frame_samples, (low, high, runt_codes))
        on_its_way = low < int(codes[stop - 1]) < high
        if stop < total and on_its_way and last <= start:
            length *= 2  # one edge fills the block
            continue
        parts.append(found)
        if stop == total:
            break
        # What is on its way at the end is looked at again, from where it began.
        start, length = (last if on_its_way else stop - 1), block
    if not parts:
        nothing = np.empty(0, np.int64)
        return Transits(nothing, nothing, np.empty(0, bool), nothing, np.empty(0, bool))
    if len(parts) == 1:
        return parts[0]
    return Transits(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("before", "after", "upward", "runt", "runt_upward")
        )
    )


def _changes(codes: Codes, low: int, high: int) -> Places:
    """Return after which samples the codes, held between two thresholds, change."""
    size = min(CHUNK_SAMPLES, len(codes) - 1)
    held, changed = np.empty(size + 1, codes.dtype), np.empty(size, bool)
    found: list[Places] = []
    for start in range(0, len(codes) - 1, size):
        count = min(size, len(codes) - 1 - start)
        view, flags = held[: count + 1], changed[:count]
        np.clip(codes[start : start + count + 1], low, high, out=view)
        np.not_equal(view[1:], view[:-1], out=flags)
        places = np.flatnonzero(flags)
        if len(places):
            found.append(places + start)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _of_changes(
    codes: Codes, changes: Places, frame_samples: int, limits: tuple[int, int, float]
) -> tuple[Transits, int]:
    """Return edges and runts among changes, and where a level was last touched; -1: nowhere."""
    low, high, runt_codes = limits
    changes = changes[(changes + 1) % frame_samples != 0]
    # Each change touches two samples; those at a level are what the course of the signal is told from.
    values = np.empty(2 * len(changes), codes.dtype)
    values[0::2] = codes[changes]
    values[1::2] = codes[changes + 1]
    is_high = values >= high
    touches = np.flatnonzero(is_high | (values <= low))
    up = is_high[touches]
    places = changes[touches >> 1] + (touches & 1)
    here, there = places[:-1], places[1:]
    same_frame = here // frame_samples == there // frame_samples
    edges = np.flatnonzero((up[1:] != up[:-1]) & same_frame)
    back = np.flatnonzero((up[1:] == up[:-1]) & same_frame & (touches[1:] - touches[:-1] > 1))
    if len(back):
        level = np.where(up[back], float(high), float(low))
        bounds = np.stack([touches[back] + 1, touches[back + 1]], axis=1).ravel()
        far_up = np.maximum.reduceat(values, bounds)[::2] - level
        far_down = level - np.minimum.reduceat(values, bounds)[::2]
        back = back[np.maximum(far_up, far_down) >= runt_codes]
    found = Transits(here[edges], there[edges], up[1:][edges], here[back], ~up[back])
    return found, int(places[-1]) if len(places) else -1
