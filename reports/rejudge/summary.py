# SPDX-License-Identifier: Apache-2.0
"""Whether what the consumer says of a stream agrees with itself: its counts, its distributions, its log."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = Mapping[str, Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


EXACT = 2048
"""Magnitudes below have buckets of 1 ns; above, each octave has 1024 of them."""


def summary_discrepancies(summary: Json) -> Iterator[str]:
    """Say where figures and buckets of a distribution differ; docs/native-tools.md, *summary*."""
    rows: Sequence[Sequence[int]] = summary["buckets"]
    low, width, count = np.array(rows, np.int64).reshape(-1, 3).T
    for place in np.flatnonzero(~_are_buckets(low, width)).tolist():
        yield f"there is no bucket {low[place]} + {width[place]}"
    counted = int(count.sum()) + summary["overflow"]
    if counted != summary["n"]:
        yield f"n is {summary['n']}, its buckets hold {counted}"
    if (count <= 0).any():
        yield "a bucket holds nothing"
        return
    if (low[:-1] + width[:-1] > low[1:]).any():
        yield "buckets overlap"
    if not rows or summary["overflow"]:
        return
    for name, place in (("min_ns", 0), ("max_ns", -1)):
        value = summary[name]
        if value is None or not low[place] <= value < low[place] + width[place]:
            which = "first" if name == "min_ns" else "last"
            yield f"{name} is {value}, its {which} bucket {low[place]} + {width[place]}"
    lowest, highest = float(low @ (count / counted)), float((low + width) @ (count / counted))
    mean = summary["mean_ns"]
    if mean is None or not lowest - 1 <= mean <= highest + 1:
        yield f"mean_ns is {mean}, its buckets allow {lowest:.0f} to {highest:.0f}"
    yield from _spread_discrepancies(summary, low, width, count / counted, counted)
    for name, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99), ("p999_ns", 0.999)):
        value = summary[name]
        if value is None or not summary["min_ns"] <= value <= summary["max_ns"]:
            yield f"{name} is {value}, not between minimum and maximum"
            continue
        below, under = int(count[low <= value].sum()), int(count[low + width <= value].sum())
        if below < share * counted - 1 or under > share * counted + 1:
            yield f"{name} is {value}: {below} of {counted} lie there or below"


def _are_buckets(low: Ints, width: Ints) -> Bools:
    """Say which are buckets of the tools' histograms; negative ones mirror positive ones."""
    smallest = np.where(low >= 0, low, -(low + width - 1))
    octaves = np.frexp(smallest.astype(np.float64))[1] - EXACT.bit_length() + 1
    wide = np.left_shift(np.int64(1), np.maximum(octaves, 0))
    return ((smallest < EXACT) & (width == 1)) | (
        (smallest >= EXACT) & (width == wide) & (smallest % wide == 0)
    )


def _spread_discrepancies(
    summary: Json, low: Ints, width: Ints, share: Floats, counted: int
) -> Iterator[str]:
    """The standard deviation differs from that of the buckets' middles by half of the widest at most."""
    middles = low + (width - 1) / 2
    found = math.sqrt(float(share @ (middles - middles @ share) ** 2))
    slack, said = int(width.max()) / 2 + 1, summary["stddev_ns"]
    if said is None or abs(said - found) > slack + found / counted:
        yield f"stddev_ns is {said}, that of its buckets {found:.0f}"


def stream_discrepancies(
    stream: Json, misses: Sequence[Json], dropped: int, last_progress: Json | None
) -> Iterator[str]:
    """Say where counts of a stream, its log of misses and what it said on the way differ."""
    if stream["expected"] - stream["lost"] != stream["received"]:
        yield f"expected {stream['expected']}, lost {stream['lost']}, received {stream['received']}"
    whole = stream["received_minus_scheduled"]
    if "receive_stack" in stream:
        yield from (f"receive_stack: {each}" for each in summary_discrepancies(stream["receive_stack"]))
    for name in ("received_minus_scheduled", "received_minus_sent", "sent_minus_scheduled"):
        yield from (f"{name}: {discrepancy}" for discrepancy in summary_discrepancies(stream[name]))
        if (
            stream[name]["n"] + stream["invalid_samples"] != stream["received"]
            and name != "received_minus_scheduled"
        ):
            yield f"{name}: n is {stream[name]['n']} of {stream['received']} received"
    late = [miss["received_minus_scheduled_ns"] for miss in misses]
    over = sum(each > stream["budget_ns"] for each in late)
    if over + dropped < stream["misses"] or over > stream["misses"]:
        yield f"misses is {stream['misses']}, the log has {over}"
    if late and not dropped and max(late) != whole["max_ns"]:
        yield f"max_ns is {whole['max_ns']}, the log of misses has {max(late)}"
    logged_above_ns = stream.get("logged_above_ns", stream["budget_ns"])
    if not late and not dropped and (whole["max_ns"] or 0) > logged_above_ns:
        yield f"max_ns is {whole['max_ns']}, the log of misses has no message"
    for miss in misses:
        if miss["received_minus_scheduled_ns"] <= logged_above_ns:
            yield f"message {miss['sequence']} of the log was in time"
        arrived = miss.get("received_reference_tai_ns", miss["received_local_tai_ns"])
        if (
            "scheduled_tai_ns" in miss
            and arrived - miss["scheduled_tai_ns"] != miss["received_minus_scheduled_ns"]
        ):
            yield f"message {miss['sequence']} of the log: received - scheduled is not that of its times"
        late_ns = miss.get("lateness_ns")
        if (
            late_ns is not None
            and miss["received_minus_sent_ns"] + late_ns != miss["received_minus_scheduled_ns"]
        ):
            yield f"message {miss['sequence']} of the log: sent does not lie between"
    if last_progress is not None:
        yield from _progress_discrepancies(stream, last_progress)


def _progress_discrepancies(stream: Json, progress: Json) -> Iterator[str]:
    """The last progress comes before the end: its counts are no larger than those of the result."""
    for number, received, _lost, max_ns, missed in progress["streams"]:
        if number != stream["id"]:
            continue
        largest = stream["received_minus_scheduled"]["max_ns"] or 0
        for name, before, after in (
            ("received", received, stream["received"]),
            ("misses", missed, stream["misses"]),
            ("max_ns", max_ns or 0, max(0, largest)),
        ):
            if before > after:
                yield f"{name} is {after}, {before} before the end"
