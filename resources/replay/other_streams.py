# SPDX-License-Identifier: Apache-2.0
"""What became of a replay's streams that the target under test has no part in: it produced others.

They have no requirement there, and no record: the consumer is judged by them in its own replay. Here they
show that the pattern was whole, and that nothing that the target sent kept the others back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from reports import Limit, StreamRequirement
from reports.latency.attempts import decide_streams
from reports.latency.verdict import ReplayResults
from resources.replay.pattern import Pattern


@dataclass(frozen=True)
class OtherStreams:
    """Streams by what became of them; the reason is that of the replay that decides.

    Attributes:
        within: All messages came, each within the pattern's budget by more than U.
        failed: By the rule of all replays.
        disturbed: No verdict, and the time that the machine took explains it in every replay.
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


def judge_other_streams(
    pattern: Pattern, own: Collection[int], replays: Sequence[ReplayResults], allowed: int
) -> OtherStreams:
    """Hold the streams of a pattern against its budgets, except some; one message suffices.

    Args:
        pattern: What was replayed.
        own: Streams that are judged by requirements.
        replays: Of the pattern; `reports.latency.attempts` says how they decide.
        allowed: Replays that there may be at most.
    """
    requirements = {
        stream.id: StreamRequirement(
            f"stream {stream.id}", Limit(stream.budget_ns, None, pattern.source), n_required=1
        )
        for stream in pattern.streams
        if stream.id not in own
    }
    within: list[int] = []
    failed: dict[int, str] = {}
    disturbed: dict[int, str] = {}
    undecided: dict[int, str] = {}
    for stream, decided in decide_streams(requirements, replays, allowed).items():
        if decided.outcome == "pass":
            within.append(stream)
            continue
        verdict = decided.verdict
        place = failed if decided.outcome == "fail" else disturbed if decided.explained else undecided
        place[stream] = f"{verdict.outcome}: {verdict.reason}"
    return OtherStreams(tuple(within), failed, disturbed, undecided)
