# SPDX-License-Identifier: Apache-2.0
"""Producers that ended before the counted time did: whose streams that takes, and whether it takes all.

Its own streams have no verdict then. The others stand where nearly all of the load was there, as they
do beside a stream whose messages were lost: docs/latency.md, `The decision`.
"""

from __future__ import annotations

from collections.abc import Sequence

from reports.tools.answers import RecvResult, SendResult

LOAD_MIN = 0.9
"""Of the pattern's messages and of its bytes: below, a producer that ended takes all verdicts."""


def ended_streams(recv: RecvResult, sends: Sequence[SendResult]) -> frozenset[int]:
    """Return the streams of producers that ended early, with a result that says so or without one.

    Args:
        recv: The consumer's result.
        sends: The producers' results; none of them known says nothing.
    """
    if not sends:
        return frozenset()
    whole = {stream.id for send in sends if send.complete for stream in send.streams}
    return frozenset(stream.id for stream in recv.streams if stream.id not in whole)


def load_cause(recv: RecvResult, ended: frozenset[int]) -> str:
    """Return why no stream may pass where producers ended early; '': the load was there, or none ended."""
    if not ended:
        return ""
    share = min(
        _share(recv, [1] * len(recv.streams)), _share(recv, [each.size_bytes for each in recv.streams])
    )
    if share >= LOAD_MIN:
        return ""
    return f"incomplete: a producer ended early, {share:.0%} of the load came, {LOAD_MIN:.0%} are needed"


def _share(recv: RecvResult, weights: Sequence[int]) -> float:
    expected = sum(each.expected * weight for each, weight in zip(recv.streams, weights, strict=True))
    received = sum(each.received * weight for each, weight in zip(recv.streams, weights, strict=True))
    return received / expected if expected else 1.0
