# SPDX-License-Identifier: Apache-2.0
"""What messages took between two programs of one machine, by the points that both recorded.

Both streams have the machine's counter, so that no clock is asked: tags tell which message it is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reports.dependence import Floats
from reports.errors import ReportError
from reports.timeline.clock_record import Times
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_stream
from reports.timeline.processing.stream_events import frequency_hz, readings_of


def between_points(sent: str, received: str) -> tuple[Floats, Floats]:
    """Return when messages were sent, in s from the first one, and what they took, in s, both of shape (n,).

    Args:
        sent: File and point, `source.bwevents:ring.write`; the name may be a pattern of one file, `source*`.
        received: Likewise; of a tag that comes again the first event counts.

    Raises:
        ReportError: A file or a point is missing, the counters differ, or no message has both.
    """
    (source, began), (sink, ended) = _events(sent), _events(received)
    if (source.counter, source.counter_hz) != (sink.counter, sink.counter_hz):
        raise ReportError(f"{sent}, {received}: not of one counter: recorded on two machines")
    (one, sent_ticks), (other, received_ticks) = _firsts(source, began), _firsts(sink, ended)
    tags, first, last = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    if not len(tags):
        raise ReportError(f"{sent}, {received}: no message has both points")
    hz, _ = frequency_hz(source, readings_of(source, "realtime"))
    at, until = sent_ticks[first], received_ticks[last]
    if (until < at).any():
        raise ReportError(
            f"{sent}, {received}: a message was received before it was sent: swapped, or on two machines"
        )
    order = np.argsort(at, kind="stable")
    at, until = at[order], until[order]
    return (at - at[0]) / hz, (until - at) / hz


def _events(what: str) -> tuple[EventStream, str]:
    file, colon, point = what.rpartition(":")
    if not colon:
        raise ReportError(f"{what}: must be FILE:GROUP.NAME, such as source.bwevents:ring.write")
    path = Path(file)
    if "*" in path.name:
        found = sorted(path.parent.glob(path.name))
        if len(found) != 1:
            raise ReportError(f"{file}: {len(found)} files, must be one")
        [path] = found
    stream = read_event_stream(path)
    stream.number(point)
    return stream, point


def _firsts(stream: EventStream, point: str) -> tuple[Times, Times]:
    """Return each tag of a point, and the counter at the first event that has it, both of shape (n,)."""
    events = stream.of(point)
    tags, first = np.unique(stream.tag[events], return_index=True)
    return tags.astype(np.int64), stream.ticks[events][first].astype(np.int64)
