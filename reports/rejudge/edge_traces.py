# SPDX-License-Identifier: Apache-2.0
"""Delays of single edges, read from the waveforms that a trial kept.

A crossing of the middle is found by a straight line between two samples; an edge goes from below 30 % to
above 70 % (docs/timed-edges.md). That is coarser than what was done with all samples, and says by how much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

LOWER, UPPER = 0.3, 0.7
LEVEL_SHARE = 0.1
"""Of the time that an edge takes between the thresholds: so much an error of the levels may shift it."""
WITHIN = 0.45
"""Of the record, about its middle: an edge there is in every window."""

Json = Mapping[str, Any]


@dataclass(frozen=True)
class _Edge:
    time_ns: float
    slack_ns: float


def traced_delays(document: Json) -> Iterator[tuple[float, float]]:
    """Yield each delay that a segment shows without doubt, and by how much it may be wrong, in ns."""
    segments: Sequence[Json] = document["segments"]
    if not segments:
        return
    levels = [_levels([segment[name] for segment in segments]) for name in ("reference", "edge")]
    for segment in segments:
        reference = _rising(segment["reference"], *levels[0])
        edge = _rising(segment["edge"], *levels[1])
        if len(reference) != 1 or len(edge) != 1:
            continue
        delay = edge[0].time_ns - reference[0].time_ns
        first, last = segment["edge"]["time_ns"][0], segment["edge"]["time_ns"][-1]
        if abs(delay - (first + last) / 2) <= WITHIN * (last - first):
            yield delay, reference[0].slack_ns + edge[0].slack_ns


def _levels(traces: Sequence[Json]) -> tuple[float, float]:
    """Return the lower and the upper level of a channel: the middle of what lies on either side."""
    volts = [each for trace in traces for each in trace["volts"]]
    middle = (min(volts) + max(volts)) / 2
    return median(each for each in volts if each <= middle), median(each for each in volts if each >= middle)


def _rising(trace: Json, low: float, high: float) -> list[_Edge]:
    """Return the rising edges of a trace."""
    lower, upper = low + LOWER * (high - low), low + UPPER * (high - low)
    found: list[_Edge] = []
    before: int | None = None
    for place, volts in enumerate(trace["volts"]):
        if volts <= lower:
            before = place
        elif volts >= upper and before is not None:
            found.append(_crossing(trace, before, place, (low + high) / 2))
            before = None
    return found


def _crossing(trace: Json, before: int, after: int, middle: float) -> _Edge:
    """Return where an edge crosses the middle between its last low and its first high sample."""
    samples = list(zip(trace["time_ns"], trace["volts"], strict=True))[before : after + 1]
    (t0, v0), (t1, v1) = next((a, b) for a, b in pairwise(samples) if a[1] < middle <= b[1])
    slack_ns = t1 - t0 + LEVEL_SHARE * (samples[-1][0] - samples[0][0])
    return _Edge(t0 + (middle - v0) * (t1 - t0) / (v1 - v0), slack_ns)
