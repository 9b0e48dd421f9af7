# SPDX-License-Identifier: Apache-2.0
"""What became of a replay's streams that the target under test has no part in: it produced others.

They have no requirement there, and no record: the consumer is judged by them in its own replay. Here they
show that the pattern was whole, and that nothing that the target sent kept the others back. The rule of
`reports.daq_replay.attempts` decides them, too: on a simulated bench a miss that nothing explains has to come
again. Where the machine explains all of it, nothing is replayed for them, and they are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reports import Limit, StreamRequirement
from reports.daq_replay.attempts import DecidedStream
from resources.daq_replay.pattern import Pattern


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


def budgets_of_others(pattern: Pattern, own: Collection[int]) -> dict[int, StreamRequirement]:
    """Return the pattern's budgets as requirements of its streams, except some; one message suffices.

    Args:
        pattern: What is replayed.
        own: Streams that are judged by requirements.
    """
    return {
        stream.id: StreamRequirement(
            f"stream {stream.id}", Limit(stream.budget_ns, None, pattern.source), n_required=1
        )
        for stream in pattern.streams
        if stream.id not in own
    }


def sort_other_streams(others: Mapping[int, DecidedStream]) -> OtherStreams:
    """Sort the streams of `budgets_of_others` by what became of them, after all replays."""
    within: list[int] = []
    failed: dict[int, str] = {}
    disturbed: dict[int, str] = {}
    undecided: dict[int, str] = {}
    for stream, decided in others.items():
        if decided.outcome == "pass":
            within.append(stream)
            continue
        verdict = decided.verdict
        place = failed if decided.outcome == "fail" else disturbed if decided.explained else undecided
        place[stream] = f"{verdict.outcome}: {verdict.reason}"
    return OtherStreams(tuple(within), failed, disturbed, undecided)
