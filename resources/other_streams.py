# SPDX-License-Identifier: Apache-2.0
"""What became of a replay's streams that the target under test has no part in: it produced others.

They have no requirement there, and no record: the consumer is judged by them in its own replay. Here they
show that the pattern was whole, and that nothing that the target sent kept the others back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from reports import Limit, Requirement
from reports.latency import Replay, judge_latency
from resources.pattern import Pattern, Stream


@dataclass(frozen=True)
class OtherStreams:
    """Streams by what became of them; the reason is that of the attempt that decides.

    Attributes:
        within: All messages came, each within the pattern's budget by more than U.
        failed: In any attempt.
        disturbed: No verdict in any attempt, for no other reason than that the bench stood still.
        undecided: No verdict for another reason.
    """

    within: tuple[int, ...]
    failed: dict[int, str]
    disturbed: dict[int, str]
    undecided: dict[int, str]

    def __str__(self) -> str:
        """Return it in words, with every stream that was not within its budget by name."""
        total = len(self.within) + len(self.failed) + len(self.disturbed) + len(self.undecided)
        words = [f"{len(self.within)} of {total} other streams within their budgets"]
        for what in (self.failed, self.undecided, self.disturbed):
            words += [f"stream {stream}: {reason}" for stream, reason in what.items()]
        return "; ".join(words)


def judge_other_streams(pattern: Pattern, own: Collection[int], attempts: Sequence[Replay]) -> OtherStreams:
    """Hold the streams of a pattern against its budgets, except some; one message suffices.

    Args:
        pattern: What was replayed.
        own: Streams that are judged by requirements.
        attempts: Replays of it, the first undisturbed of which decides.
    """
    within: list[int] = []
    failed: dict[int, str] = {}
    disturbed: dict[int, str] = {}
    undecided: dict[int, str] = {}
    for stream in pattern.streams:
        if stream.id in own:
            continue
        outcome, reason, is_disturbed = _judge(pattern, stream, attempts)
        if outcome == "pass":
            within.append(stream.id)
        else:
            place = failed if outcome == "fail" else disturbed if is_disturbed else undecided
            place[stream.id] = f"{outcome}: {reason}"
    return OtherStreams(tuple(within), failed, disturbed, undecided)


def _judge(pattern: Pattern, stream: Stream, attempts: Sequence[Replay]) -> tuple[str, str, bool]:
    """Return outcome and reason of the attempt that decides, and whether the bench stood still in each."""
    limit = Limit(stream.budget_ns, None, pattern.source)
    requirement = Requirement(f"stream {stream.id}", limit, n_required=1)
    judged = [judge_latency(stream.id, requirement, attempt) for attempt in attempts]
    order = sorted(judged, key=lambda each: (each.verdict.outcome != "fail", each.disturbed))
    first = order[0]
    return first.verdict.outcome, first.verdict.reason, first.disturbed
