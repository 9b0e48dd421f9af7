# SPDX-License-Identifier: Apache-2.0
"""Pictures on the wire, by captures on both sides of the router: each datagram, and each picture of many.

A segment behind the router is matched with that before it which brought its last byte, by their places in the
stream: cards may join or split them. Captures keep the beginning of each frame, which is enough for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.control_loops.camera_evidence import CameraFacts, Truth
from reports.errors import RecordError, ReportError
from reports.paths.pcap import Integers
from reports.paths.tcp_segments import read_tcp_segments

HEADER_BYTES = 40
PATH_FOLDER = "path"
_TURN = 1 << 32


@dataclass(frozen=True, eq=False)
class PicturesOnTheWire:
    """What became of the stream of pictures.

    Attributes:
        end_byte: Of each segment behind the router that brought new bytes: how many have come, shape (n,).
        inside_ns: From the one side of the router to the other, shape (n,).
        number: Of the pictures that came whole, shape (p,).
        first_to_last_ns: Of each: from its first datagram to its last, behind the router, shape (p,).
        last_ns: When the last came there, by the clock of the capture (UTC), shape (p,).
    """

    end_byte: Integers
    inside_ns: Integers
    number: Integers
    first_to_last_ns: Integers
    last_ns: Integers


def pictures_on_the_wire(
    folder: Path, facts: CameraFacts, truth: Truth, sent: Integers
) -> PicturesOnTheWire | None:
    """Return what captures beside `camera.json` show; None: there are none.

    Args:
        folder: Of `camera.json`.
        facts: What that says.
        truth: For the size of pictures.
        sent: Numbers of the pictures that the camera has sent whole, in their order.

    Raises:
        RecordError: A capture cannot be read.
    """
    if facts.wire is None:
        return None
    before, behind = (
        _stream(folder / PATH_FOLDER / name, facts.wire.address, facts.wire.port)
        for name in (facts.wire.before, facts.wire.behind)
    )
    at = np.searchsorted(before[0], behind[0])
    known = at < before[0].size
    ends, times_ns = behind
    inside_ns = times_ns[known] - before[1][at[known]]
    size = HEADER_BYTES + truth.width_px * truth.height_px
    begin = np.arange(sent.size, dtype=np.int64) * size
    whole = begin + size <= (int(ends[-1]) if ends.size else 0)
    first = times_ns[np.searchsorted(ends, begin[whole], "right")]
    last = times_ns[np.searchsorted(ends, begin[whole] + size)]
    return PicturesOnTheWire(ends[known], inside_ns, sent[whole], last - first, last)


def _stream(path: Path, address: str, port: int) -> tuple[Integers, Integers]:
    """Return how many bytes of the stream have come with each segment that brings new ones, and when."""
    try:
        every = read_tcp_segments(path)
        own = every.chosen(every.of(address, port))
    except (OSError, ReportError) as error:
        raise RecordError(f"{path.name}: {error}") from error
    if not own.is_syn.any():
        raise RecordError(f"{path.name}: has no beginning of the stream of pictures")
    first = int(own.sequence[np.flatnonzero(own.is_syn)[0]])
    relative = (own.sequence - first) % _TURN
    # Behind 2^32 the numbers begin anew; a segment that comes late is no turn.
    turns = np.cumsum(np.diff(relative, prepend=relative[:1]) < -(_TURN // 2))
    end = relative + turns * _TURN + own.data_bytes
    end = np.where(own.data_bytes > 0, end, 0)
    brings_new = end > np.maximum.accumulate(np.concatenate(([0], end[:-1])))
    return end[brings_new], own.time_ns[brings_new]
