# SPDX-License-Identifier: Apache-2.0
"""Which streams a producer that ended early takes, worked out again: docs/latency.md, `The decision`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.rejudge.version import WITH_ENDED_PRODUCERS, parsed

TENTHS = 9
"""Of the load, so many have to have come."""

Json = Mapping[str, Any]


def taken_by_ended(recv: Json, sends: Sequence[Json | None]) -> frozenset[int]:
    """Return the streams that have no verdict because a producer ended early.

    Args:
        recv: The consumer's result.
        sends: Those of the producers; None: one left none.
    """
    every = frozenset(stream["id"] for stream in recv["streams"])
    results = [send for send in sends if send is not None]
    whole = {stream["id"] for send in results if send["complete"] for stream in send["streams"]}
    ended = every - whole if sends else frozenset[int]()
    is_early = len(results) < len(sends) or not all(send["complete"] for send in results)
    if parsed(recv["version"]) < WITH_ENDED_PRODUCERS:
        return every if is_early else frozenset()
    is_light = any(_tenths_that_came(recv, name) < TENTHS for name in (None, "size_bytes"))
    return every if (ended and is_light) or (sends and not results) else ended


def _tenths_that_came(recv: Json, weight: str | None) -> float:
    """Return it of the messages, or of what they weigh."""
    due = came = 0
    for stream in recv["streams"]:
        each = stream[weight] if weight else 1
        due += stream["expected"] * each
        came += stream["received"] * each
    return 10 * came / due if due else 10.0
