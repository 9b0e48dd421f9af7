# SPDX-License-Identifier: Apache-2.0
"""Times of the edges of one channel, from its frames as they were digitised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scope.crossing import find_crossings, fit_samples
from scope.errors import WaveformError
from scope.levels import Levels, code_of, fault_of, same_vertical
from scope.schmitt import BLOCK_SAMPLES, Transits, find_transits
from scope.waveform import Codes, Frame, Scaling

LOWER, UPPER = 0.3, 0.7
"""Hysteresis: shares of the amplitude that a sample has to be below or above to be at a level."""
RUNT_BEYOND = 0.05  # of the amplitude, so that a sample at the threshold is no runt
RUNT_SIGMAS = 6.0
LOWER_TO_UPPER_OF_RISE = 0.40
"""Time from 30 to 70 % as a share of that from 10 to 90 %: 0.41 of a Gaussian, 0.39 of a single pole."""

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class EdgeSettings:
    """How one channel's edges are found.

    Attributes:
        levels: Both levels and the noise, from `estimate_levels`.
        fit: Samples of the fit of a crossing, from `settle_fit`.
        threshold: Of the amplitude; an edge is where the signal crosses it.
    """

    levels: Levels
    fit: int
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not LOWER < self.threshold < UPPER:
            raise WaveformError(f"threshold: {self.threshold}, must be between {LOWER} and {UPPER}")


@dataclass(frozen=True)
class Edges:
    """Edges of some frames of one channel, in the order of frames and of time.

    Attributes:
        frame: Which of the frames, from 0.
        time_s: After that frame's trigger.
        rising: Whether volts rise.
        slope_v_s: Slew rate at the crossing, in V/s; negative of a falling edge.
        curvature_v_s2: Second derivative there, in V/s².
        phase: Place within a sample interval, 0 to 1.
        runt_frame: Of each runt, which of the frames.
        runt_time_s: Of each runt, where it leaves its level.
        runt_rising: Of each runt, whether it goes up.
        start_s: Of each frame, time of its first sample.
        end_s: Of each frame, time of its last sample.
        at_border: Edges too near to the ends of a frame to be timed.
        faults: What is wrong with a frame, "clipped" or "hole"; such a frame has no edges here.
    """

    frame: Places
    time_s: Floats
    rising: NDArray[np.bool_]
    slope_v_s: Floats
    curvature_v_s2: Floats
    phase: Floats
    runt_frame: Places
    runt_time_s: Floats
    runt_rising: NDArray[np.bool_]
    start_s: Floats
    end_s: Floats
    at_border: int
    faults: Mapping[int, str]


_ARRAYS = {
    "frame": np.int64,
    "time_s": np.float64,
    "rising": np.bool_,
    "slope_v_s": np.float64,
    "curvature_v_s2": np.float64,
    "phase": np.float64,
    "runt_frame": np.int64,
    "runt_time_s": np.float64,
    "runt_rising": np.bool_,
    "start_s": np.float64,
    "end_s": np.float64,
}


def find_edges(frames: Sequence[Frame], settings: EdgeSettings) -> Edges:
    """Find all edges of frames of one channel, both ways.

    Frames of one length are worked off together; memory is that of a few tens of thousands of samples, and of
    the edges.

    Raises:
        WaveformError: Frames of different channels or vertical scalings.
    """
    _check(frames)
    parts = [_of_equals(some, begin, settings) for begin, some in _groups(frames)]
    if len(parts) == 1:
        return parts[0]
    arrays: list[NDArray[Any]] = [
        np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)])
        for name, kind in _ARRAYS.items()
    ]
    return Edges(
        *arrays,
        at_border=sum(part.at_border for part in parts),
        faults={frame: fault for part in parts for frame, fault in part.faults.items()},
    )


def settle_fit(frames: Sequence[Frame], levels: Levels) -> int:
    """Return how many samples a crossing of these edges is fitted to, by their median rise time.

    Raises:
        WaveformError: No edge in any of the frames, or frames that do not go together.
    """
    return fit_samples(rise_samples(frames, levels))


def rise_samples(frames: Sequence[Frame], levels: Levels) -> float:
    """Return the median time from 10 to 90 %, in samples, told from where the thresholds are crossed.

    Raises:
        WaveformError: No edge in any of the frames, or frames that do not go together.
    """
    _check(frames)
    spans: list[Floats] = []
    for _, some in _groups(frames):
        scaling, length, codes = some[0].scaling, len(some[0].codes), _joined(some)
        if length < 2:
            continue
        low, high = sorted(code_of(levels.at(part), scaling) for part in (LOWER, UPPER))
        found = _transits(codes, length, scaling, levels)
        first = np.where(found.upward, low, high)
        last = np.where(found.upward, high, low)
        leaves = found.before + _share(codes, found.before, first)
        arrives = found.after - 1 + _share(codes, found.after - 1, last)
        faulty = np.array(list(_faults(codes, some, scaling)), np.int64)
        spans.append((arrives - leaves)[~np.isin(found.before // length, faulty)])
    times = np.concatenate(spans) if spans else np.empty(0)
    if not len(times):
        channel = frames[0].channel if frames else "?"
        raise WaveformError(f"channel {channel}: no edge in {len(frames)} frames")
    return float(np.median(times)) / LOWER_TO_UPPER_OF_RISE


def _share(codes: Codes, places: Places, level: Floats) -> Floats:
    """Return how far between a sample and the next a level is crossed, 0 to 1."""
    here, there = codes[places].astype(np.float64), codes[places + 1].astype(np.float64)
    return np.clip((level - here) / np.where(there == here, 1.0, there - here), 0.0, 1.0)


_VERTICAL = attrgetter(
    "volts_per_code", "code_reference", "offset_v", "sample_interval_s", "code_low", "code_high", "code_hole"
)


def _kind(frame: Frame) -> int:
    """Return what is the same for samples of one type; most often the other way round, too."""
    return id(frame.codes.dtype)


def _groups(frames: Sequence[Frame]) -> Iterator[tuple[int, Sequence[Frame]]]:
    """Yield runs of frames of one length, not too many samples at once, with the number of the first."""
    lengths = list(map(len, map(attrgetter("codes"), frames)))
    begin = 0
    while begin < len(frames):
        end = min(len(frames), begin + max(1, BLOCK_SAMPLES // max(lengths[begin], 1)))
        if lengths[begin:end].count(lengths[begin]) < end - begin:
            end = next(place for place in range(begin, end) if lengths[place] != lengths[begin])
        yield begin, frames[begin:end]
        begin = end


def _joined(frames: Sequence[Frame]) -> Codes:
    """Return the codes of frames, one behind the other."""
    return frames[0].codes if len(frames) == 1 else np.concatenate(list(map(attrgetter("codes"), frames)))


def _check(frames: Sequence[Frame]) -> None:
    """Refuse frames that one set of thresholds does not fit."""
    if not frames:
        return
    first = frames[0]
    same_vertical(first.scaling, first.scaling, f"channel {first.channel}, segment {first.index}")
    if len(set(map(_VERTICAL, map(attrgetter("scaling"), frames)))) > 1:
        for frame in frames:
            where = f"channel {frame.channel}, segment {frame.index}"
            same_vertical(first.scaling, frame.scaling, where)
        raise WaveformError(f"channel {first.channel}: segments differ in codes of clipped samples or holes")
    channels = set(map(attrgetter("channel"), frames))
    if len(channels) > 1:
        raise WaveformError(f"edges: frames of channels {', '.join(map(str, sorted(channels)))}")
    if len(set(map(_kind, frames))) > 1:
        kinds = sorted({str(one.codes.dtype) for one in frames})
        if len(kinds) > 1:
            raise WaveformError(f"channel {first.channel}: samples of types {', '.join(kinds)}")


def _transits(codes: Codes, frame_samples: int, scaling: Scaling, levels: Levels) -> Transits:
    """Find edges and runts in codes by the hysteresis of the levels."""
    low, high = sorted(code_of(levels.at(part), scaling) for part in (LOWER, UPPER))
    beyond_v = max(RUNT_BEYOND * levels.amplitude_v, RUNT_SIGMAS * levels.noise_v)
    return find_transits(
        codes, frame_samples, int(np.floor(low)), int(np.ceil(high)), beyond_v / abs(scaling.volts_per_code)
    )


def _of_equals(frames: Sequence[Frame], begin: int, settings: EdgeSettings) -> Edges:
    """Find the edges of frames of equal length; `begin` is the number of the first of them."""
    scaling, length = frames[0].scaling, len(frames[0].codes)
    codes = _joined(frames)
    faults = _faults(codes, frames, scaling)
    if length < 2:
        found = _transits(np.empty(0, np.int16), 1, scaling, settings.levels)
    else:
        found = _transits(codes, length, scaling, settings.levels)
    threshold = code_of(settings.levels.at(settings.threshold), scaling)
    edges = find_crossings(codes, length, found.before, found.after, threshold, settings.fit)
    frame = found.before // max(length, 1)
    runt_frame = found.runt // max(length, 1)
    usable = np.ones(len(frames), bool)
    usable[list(faults)] = False
    clean = usable[frame]
    kept = clean & edges.inside
    runts = usable[runt_frame]
    first_s = np.fromiter(map(attrgetter("scaling.first_sample_s"), frames), float, len(frames))
    step_s = scaling.sample_interval_s
    upwards = scaling.volts_per_code > 0
    place = edges.position[kept] - frame[kept] * length
    runt_place = (found.runt[runts] - runt_frame[runts] * length).astype(np.float64)
    return Edges(
        frame=frame[kept] + begin,
        time_s=first_s[frame[kept]] + place * step_s,
        rising=found.upward[kept] == upwards,
        slope_v_s=edges.slope[kept] * (scaling.volts_per_code / step_s),
        curvature_v_s2=edges.curvature[kept] * (scaling.volts_per_code / step_s**2),
        phase=place % 1.0,
        runt_frame=runt_frame[runts] + begin,
        runt_time_s=first_s[runt_frame[runts]] + step_s * runt_place,
        runt_rising=found.runt_upward[runts] == upwards,
        start_s=first_s,
        end_s=first_s + step_s * max(length - 1, 0),
        at_border=int((clean & ~edges.inside).sum()),
        faults={frame + begin: fault for frame, fault in faults.items()},
    )


def _faults(codes: Codes, frames: Sequence[Frame], scaling: Scaling) -> dict[int, str]:
    """Return what is wrong with which frame; one look at the extremes tells that nothing is."""
    if not len(codes):
        return {}
    least, most = int(codes.min()), int(codes.max())
    suspect = (
        (scaling.code_hole is not None and least <= scaling.code_hole <= most)
        or (scaling.code_low is not None and least <= scaling.code_low)
        or (scaling.code_high is not None and most >= scaling.code_high)
    )
    found = [fault_of(frame.codes, scaling) for frame in frames] if suspect else []
    return {place: fault for place, fault in enumerate(found) if fault}
