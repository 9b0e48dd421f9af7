# SPDX-License-Identifier: Apache-2.0
"""A clock by two-way time transfer alone: docs/clock-sync.md, `Two-way transfer as the reference`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

from reports.rejudge.answers import read_result
from reports.rejudge.server_replies import Span
from reports.rejudge.trial import Offset, is_doubtful

TARGET_FILE = "two-way-target.ndjson"
SERVER_FILE = "two-way-server.ndjson"
HELD_UP = 2
"""Exchanges wider than so many times the median were held up."""
PPB = 1_000_000_000

Json = Mapping[str, Any]


def by_two_way(folder: Path) -> Offset:
    """Return what the exchanges with a target say, less what those with its time server say, if any.

    Raises:
        OSError, KeyError, TypeError, ValueError: An answer is missing or damaged.
    """
    target = read_result(folder / TARGET_FILE)
    server = read_result(folder / SERVER_FILE)
    if target is None or (server is None and (folder / SERVER_FILE).exists()):
        raise ValueError(f"{TARGET_FILE if target is None else SERVER_FILE}: no result")
    answers = [target] if server is None else [target, server]
    if len({answer["tai_utc_s"] for answer in answers}) > 1:
        raise ValueError(f"{SERVER_FILE}: another TAI - UTC than in {TARGET_FILE}")
    kept = _kept(target)
    offsets_ns = [row[1] - (server_offset_ns(server, row[0]) if server else 0) for row in kept]
    parts: dict[str, float] = {"two_way": max((row[2] for row in kept), default=0)}
    if server and kept:
        parts["two_way_time_server"] = max(_bound_ns(server, row[0]) for row in kept)
    return Offset(
        value=max((min(offsets_ns), max(offsets_ns)), key=abs) if kept else None,
        n=len(kept),
        parts=parts,
        is_doubtful=any(is_doubtful(answer) for answer in answers),
        is_stepped=any(answer["clock_steps"] for answer in answers),
    )


def two_way_span(folder: Path) -> Span:
    """Return when the exchanges with a target were; raises as `by_two_way`."""
    target = read_result(folder / TARGET_FILE)
    if target is None:
        raise ValueError(f"{TARGET_FILE}: no result")
    times_ns = [row[0] for row in _kept(target)] or [target["at_local_tai_ns"]]
    return Span(times_ns[0], None, times_ns[-1] - times_ns[0], target["tai_utc_s"])


def _kept(target: Json) -> list[Sequence[int]]:
    """Return the exchanges that nothing has held up: time, offset, half of the round trip, in ns."""
    widest_ns = HELD_UP * median([row[2] for row in target["series"]] or [0])
    return [row for row in target["series"] if row[2] <= widest_ns]


def server_offset_ns(answer: Json, time_ns: int) -> int:
    """Return where a line is at a time of the machine that asked, ns; positive: its peer is ahead."""
    distance_ns = time_ns - answer["at_local_tai_ns"]
    return answer["offset_ns"] + round(Fraction(distance_ns * answer["rate_ppb"], PPB))


def _bound_ns(answer: Json, time_ns: int) -> int:
    """Return the bound of the line there, rounded up: it grows with the distance from where it holds."""
    distance_ns = abs(time_ns - answer["at_local_tai_ns"])
    return answer["bound_ns"] - (-distance_ns * answer["bound_growth_ppb"] // PPB)
