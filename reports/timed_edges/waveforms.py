# SPDX-License-Identifier: Apache-2.0
"""Some segments of a trial of timed edges, as volts over time: what the page lays over each other.

A trace keeps every sample near an edge; elsewhere, of each of some columns, the smallest and the largest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reports.errors import RecordError
from reports.record.document import read_document, write_document
from reports.record.measurement import Number

SCHEMA = "benchwright.edge_waveforms/1"
WAVEFORMS = "waveforms.json"
SEGMENTS_MAX = 32
"""How many segments are worth keeping: more cannot be told apart on the page."""

_NEAR = 24
_COLUMNS = 60


@dataclass(frozen=True)
class Trace:
    """One channel of one segment: times in ns after the trigger, and volts; as many of each."""

    time_ns: tuple[Number, ...]
    volts: tuple[Number, ...]


@dataclass(frozen=True)
class Segment:
    """Both channels of one segment."""

    reference: Trace
    edge: Trace


@dataclass(frozen=True)
class Waveforms:
    """What `waveforms.json` holds: the first segments of a trial."""

    segments: tuple[Segment, ...]
    schema: str = SCHEMA


def trace_of(volts: ArrayLike, first_ns: float, interval_ns: float) -> Trace:
    """Return a trace of a record, with as few samples as its shape needs.

    Args:
        volts: All samples, in V.
        first_ns: Time of the first after the trigger.
        interval_ns: Time from one sample to the next.

    Raises:
        RecordError: There are fewer than two samples, or one of them is not a finite number.
    """
    values = np.asarray(volts, np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise RecordError("waveform: need two or more samples in V, each a finite number")
    places = _kept(values)
    times = first_ns + places * interval_ns
    return Trace(
        tuple(round(float(time), 4) for time in times),
        tuple(round(float(value), 5) for value in values[places]),
    )


def _kept(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return which samples are kept, ascending: those near a passage through the middle, and extremes."""
    count = len(values)
    kept = np.zeros(count, bool)
    kept[[0, -1]] = True
    high = values > (values.min() + values.max()) / 2
    turns = np.flatnonzero(high[1:] != high[:-1])
    # Noise alone turns at every other sample: then the columns have to do.
    for turn in turns[:8].tolist():
        kept[max(0, turn - _NEAR) : turn + _NEAR + 2] = True
    edges = np.unique(np.linspace(0, count, _COLUMNS + 1).astype(np.intp)).tolist()
    for start, end in itertools.pairwise(edges):
        part = values[start:end]
        kept[start + int(part.argmin())] = True
        kept[start + int(part.argmax())] = True
    return np.flatnonzero(kept)


def write_waveforms(folder: Path, segments: Sequence[Segment]) -> Path:
    """Write at most SEGMENTS_MAX segments, the first of those given, and return the file's path."""
    return write_document(folder / WAVEFORMS, Waveforms(tuple(segments[:SEGMENTS_MAX])))


def load_waveforms(path: Path) -> Waveforms:
    """Read a file of waveforms; raises RecordError, which names file and key."""
    found = read_document(Waveforms, path, SCHEMA)
    for number, segment in enumerate(found.segments):
        for key, trace in (("reference", segment.reference), ("edge", segment.edge)):
            if len(trace.time_ns) != len(trace.volts) or len(trace.volts) < 2:
                raise RecordError(
                    f"{path.name}.segments[{number}].{key}: need as many times as volts, at least 2; "
                    f"found {len(trace.time_ns)} and {len(trace.volts)}"
                )
    return found
