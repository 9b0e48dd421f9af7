# SPDX-License-Identifier: Apache-2.0
"""A known time that was put into every second turn, and by how much it shows: docs/timeline.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.quantiles import SLACK_NS

Error = tuple[float, float, int]
"""By how much what was found is off, in ns; its standard uncertainty in ns; turns."""


def middle_ns(summary: Mapping[str, Any]) -> float:
    """Return the middle of the bucket that holds the median."""
    rank, seen = -(-summary["n"] // 2), 0
    for low, width, count in summary["buckets"]:
        seen += count
        if seen >= rank:
            return low + (width - 1) / 2
    raise ValueError("an empty histogram")


def turn_error(took_ns: Mapping[int, int], turn: int, count: int, put_ns: float) -> Error:
    """Return by how much the turns with a known time took longer than it, against both neighbours.

    Args:
        took_ns: By the number of the message.
        turn: Messages of one.
        count: Messages of all.
        put_ns: What was put in; 0: nothing here.
    """
    turns: dict[int, list[int]] = {}
    for number, ns in took_ns.items():
        turns.setdefault(number // turn, []).append(ns)
    later = [
        median(turns[at]) - (median(turns[at - 1]) + median(turns[at + 1])) / 2
        for at in range(1, count // turn - 1, 2)
        if turns.keys() >= {at - 1, at, at + 1}
    ]
    middle = median(later)
    spread = 1.4826 * median([abs(each - middle) for each in later])
    return middle - put_ns, 1.25 * math.sqrt(2 / len(later)) * spread, len(later)


def turn_problems(record: Record, errors: Sequence[Error], way: str) -> Iterator[str]:
    """Hold a record, which has the worst of all ways, against what each comes to.

    Args:
        record: Of `turns` as the part of U.
        errors: Of each way. Places by simple lines scatter more than the timeline's: each one's own scatter
            is allowed for.
        way: What a message names one.
    """
    [part] = record["uncertainty"]["parts"]
    u = 2 * part["value"] + SLACK_NS
    near = [
        turns
        for error, standard, turns in errors
        if abs(record["value"] - error) <= u + 2 * standard and part["value"] >= standard / 3 - SLACK_NS
    ]
    if part["name"] != "turns" or part["kind"] != "standard" or record["n"] not in near:
        yield f"value is {record['value']} of {record['n']} turns, the streams say {errors}"
    for error, standard, _ in errors:
        if abs(error) > abs(record["value"]) + u + 2 * standard:
            yield f"value is {record['value']}, a {way} is {error:.0f} off"
