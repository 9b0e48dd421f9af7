# SPDX-License-Identifier: Apache-2.0
"""Delays between two channels over any number of acquisitions, in bounded memory, and what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from scope.budget import EdgeQuality, edge_quality
from scope.crossing import fit_samples
from scope.edges import Edges, EdgeSettings, find_edges, rise_samples
from scope.errors import WaveformError
from scope.jitter import DelaySummary, DelayTally
from scope.levels import Levels, estimate_levels
from scope.pairs import Pairs, PairSettings, pair_edges
from scope.waveform import Acquisition, Frame


@dataclass(frozen=True)
class Counts:
    """What became of all segments and edges.

    Attributes:
        wanted: Segments asked for.
        segments: Segments of which both channels were read.
        incomplete: Segments of which only one of the channels was read.
        clipped: Segments with clipped samples in either channel; none of their edges count.
        holes: Segments with samples that were not acquired.
        no_reference: Sound segments without an edge of the reference that counts.
        pairs: Delays.
        missing: Reference edges whose partner is missing.
        runt: Reference edges whose partner is a runt.
        at_border: Reference edges whose partner may lie outside the record.
        extra: Edges of the other channel without a reference edge.
    """

    wanted: int = 0
    segments: int = 0
    incomplete: int = 0
    clipped: int = 0
    holes: int = 0
    no_reference: int = 0
    pairs: int = 0
    missing: int = 0
    runt: int = 0
    at_border: int = 0
    extra: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True)
class ChannelFacts:
    """What the edges of one channel are like.

    Attributes:
        levels: Levels and noise, of the first acquisition.
        fit: Samples that a crossing is fitted to.
        rise: From 10 to 90 %, in samples.
        slope_v_s: Mean magnitude of the slew rate at the crossings that were paired.
        phase_lock: How much crossings fall on the same place between samples: 0 spread evenly, 1 all alike.
        quality: What an edge is uncertain by.
    """

    levels: Levels
    fit: int
    rise: float
    slope_v_s: float
    phase_lock: float
    quality: EdgeQuality


@dataclass(frozen=True)
class DelayResult:
    """Delays of the other channel's edges after the reference's, and what they rest on."""

    delays: DelaySummary
    counts: Counts
    reference: ChannelFacts
    other: ChannelFacts


RISE_FRAMES = 64
"""How many frames the rise time is told from."""


class _Channel:
    """What is known of one channel, from its first frames on."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self.levels = estimate_levels(frames)
        self.rise = rise_samples(frames[:RISE_FRAMES], self.levels)
        self.interval_s = frames[0].scaling.sample_interval_s
        self.settings = EdgeSettings(self.levels, fit_samples(self.rise))
        self._slope_v_s, self._curvature_v_s2, self._turns, self._count = 0.0, 0.0, 0j, 0

    def count(self, edges: Edges, paired: NDArray[np.int64]) -> None:
        self._count += len(paired)
        self._slope_v_s += float(np.abs(edges.slope_v_s[paired]).sum())
        self._curvature_v_s2 += float((edges.curvature_v_s2[paired] * np.sign(edges.slope_v_s[paired])).sum())
        self._turns += complex(np.exp(2j * np.pi * edges.phase[paired]).sum())

    def facts(self) -> ChannelFacts:
        n = self._count
        slope_v_s, curvature_v_s2 = self._slope_v_s / n, self._curvature_v_s2 / n
        # The square of the mean resultant, less what evenly spread phases give by chance.
        lock = max(0.0, (abs(self._turns) ** 2 / n - 1) / (n - 1)) if n > 1 else 1.0
        quality = edge_quality(
            self.levels, self.settings.fit, self.rise, slope_v_s, curvature_v_s2, self.interval_s
        )
        return ChannelFacts(self.levels, self.settings.fit, self.rise, slope_v_s, lock, quality)


class DelayMeter:
    """Takes acquisitions one by one and keeps what their delays come to.

    Thresholds are settled by the first acquisition and stay. Memory is that of one acquisition and its edges.
    """

    def __init__(
        self, reference_channel: int, other_channel: int, pairing: PairSettings | None = None
    ) -> None:
        if reference_channel == other_channel:
            raise WaveformError(f"delay: channel {reference_channel} stands for both signals")
        self._numbers = (reference_channel, other_channel)
        self._pairing = pairing or PairSettings()
        self._channels: tuple[_Channel, _Channel] | None = None
        self._tally = DelayTally()
        self._counts = Counts()

    def add(self, acquisition: Acquisition) -> Pairs:
        """Time the edges of an acquisition and count their delays; return its pairs.

        Raises:
            WaveformError: A channel without frames, without two levels or without an edge in the first
                acquisition; a sample interval that is not that of the first acquisition.
        """
        by_channel = [
            {frame.index: frame for frame in acquisition.frames if frame.channel == number}
            for number in self._numbers
        ]
        for number, found in zip(self._numbers, by_channel, strict=True):
            if not found:
                raise WaveformError(f"{acquisition.instrument}: no frame of channel {number}")
        common = sorted(by_channel[0].keys() & by_channel[1].keys())
        if not common:
            raise WaveformError(f"{acquisition.instrument}: no segment of both channels {self._numbers}")
        frames = [[found[index] for index in common] for found in by_channel]
        if self._channels is None:
            self._channels = (_Channel(frames[0]), _Channel(frames[1]))
        for channel, some in zip(self._channels, frames, strict=True):
            if some[0].scaling.sample_interval_s != channel.interval_s:
                raise WaveformError(
                    f"{acquisition.instrument}: sample_interval_s {some[0].scaling.sample_interval_s}, "
                    f"first acquisition {channel.interval_s}"
                )
        edges = [
            find_edges(some, channel.settings) for some, channel in zip(frames, self._channels, strict=True)
        ]
        pairs = pair_edges(edges[0], edges[1], self._pairing)
        self._tally.add(pairs.delay_s)
        for channel, found, paired in zip(self._channels, edges, (pairs.reference, pairs.other), strict=True):
            channel.count(found, paired)
        incomplete = len(by_channel[0].keys() ^ by_channel[1].keys())
        self._counts += self._count(acquisition.wanted, len(common), incomplete, edges, pairs)
        return pairs

    def _count(
        self, wanted: int, segments: int, incomplete: int, edges: Sequence[Edges], pairs: Pairs
    ) -> Counts:
        faults = {**edges[1].faults, **edges[0].faults}
        chosen = self._pairing.reference.chosen(edges[0].rising)
        seen = np.zeros(segments, bool)
        seen[edges[0].frame[chosen]] = True
        seen[list(faults)] = True
        return Counts(
            wanted=wanted,
            segments=segments,
            incomplete=incomplete,
            clipped=sum(fault == "clipped" for fault in faults.values()),
            holes=sum(fault == "hole" for fault in faults.values()),
            no_reference=int((~seen).sum()),
            pairs=len(pairs.delay_s),
            missing=pairs.missing,
            runt=pairs.runt,
            at_border=pairs.at_border,
            extra=pairs.extra,
        )

    @property
    def counts(self) -> Counts:
        """What became of all segments and edges so far."""
        return self._counts

    def result(self) -> DelayResult | None:
        """Return what is known so far; None without a pair."""
        delays = self._tally.summary()
        if delays is None or self._channels is None:
            return None
        reference, other = (channel.facts() for channel in self._channels)
        return DelayResult(delays, self._counts, reference, other)
