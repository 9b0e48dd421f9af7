# SPDX-License-Identifier: Apache-2.0
"""From the replays of a run to one outcome of each stream.

On real hardware there is one replay, and what it says holds. A simulated bench shares its machine, and of a
single late message machine and target cannot always be told apart. There a miss that nothing explains has to
come again, and a stream that had one has to show more than a stream without:

- **fail**: a stream has missed without explanation, and so did some stream of the same target in
  `CONFIRMATIONS` replays in all (in each replay, where fewer are allowed);
- **pass**: it was clean in one replay more than it has others that count against it. A replay whose misses
  the machine explains in full counts neither way, nor does a clean one that was too short for it; where there
  is one that the machine explains, one clean replay is luck, and it takes two;
- **no verdict** otherwise, and never a pass.

docs/latency.md says how often each happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reports.daq_replay.verdict import (
    ReplayResults,
    Standing,
    StreamRequirement,
    StreamVerdict,
    judge_latency,
)
from reports.record.verdict import Verdict

CONFIRMATIONS = 3
"""Replays with an unexplained miss that make a fail, on a simulated bench."""

EXPLAINED_MAX = 2
"""Replays that are made besides, on a simulated bench, for those that the machine explains."""

AGAINST: tuple[Standing, ...] = ("over", "marginal", "undecided")
"""Standings of a replay that count against a stream."""

Decided = Literal["pass", "fail"]


def decide(standings: Sequence[Standing], replays_over: int, allowed: int) -> Decided | None:
    """Decide one stream; None: there is no verdict yet.

    Args:
        standings: Of the stream, replay by replay.
        replays_over: Replays in which a stream of this target, this one or another, has missed unexplained.
        allowed: Replays that there may be at most; 1 on real hardware.
    """
    if "over" in standings and replays_over >= min(CONFIRMATIONS, allowed):
        return "fail"
    against = sum(standing in AGAINST for standing in standings)
    against = max(against, int("explained" in standings))
    return "pass" if standings.count("clean") > against else None


@dataclass(frozen=True, slots=True)
class DecidedStream:
    """A stream after all replays so far.

    Attributes:
        judged: What each replay says by itself.
        outcome: `pass`, `fail`, or None: no verdict.
        allowed: Replays that there may be at most, those not counted that the machine explains.
    """

    judged: tuple[StreamVerdict, ...]
    outcome: Decided | None
    allowed: int

    @property
    def deciding(self) -> int:
        """Return the number, from 0, of the replay whose record counts.

        Without a verdict it is the last that counts against the stream, else the last that the machine
        explains: it says why there is none, as one that was too short for the stream does not.
        """
        standings = [each.standing for each in self.judged]
        if self.outcome is not None:
            return standings.index("clean" if self.outcome == "pass" else "over")
        for wanted in (AGAINST, ("explained",)):
            found = [number for number, standing in enumerate(standings) if standing in wanted]
            if found:
                return found[-1]
        return len(standings) - 1

    @property
    def open(self) -> bool:
        """Tell whether a further replay could bring a verdict: none whose cause the machine cannot be."""
        standings = {each.standing for each in self.judged}
        may_help = "undecided" not in standings and standings != {"short"}
        explained = sum(each.standing == "explained" for each in self.judged)
        besides = min(explained, EXPLAINED_MAX) if self.allowed > 1 else 0
        return self.outcome is None and len(self.judged) < self.allowed + besides and may_help

    @property
    def explained(self) -> bool:
        """Tell whether the machine explains in amounts, in every replay, why there is no verdict."""
        standings = {each.standing for each in self.judged}
        return self.outcome is None and "explained" in standings <= {"explained", "short"}

    @property
    def verdict(self) -> Verdict:
        """Return the verdict after all replays."""
        return self.recorded(self.deciding)

    @property
    def recorded_replays(self) -> list[int]:
        """Return the numbers of the replays that have a record, the one that counts last.

        A replay that was made for other streams, after this one had its verdict, has none, unless it is over.
        """
        standings: list[Standing] = [each.standing for each in self.judged]
        needed = next((i for i in range(len(standings)) if decide(standings[: i + 1], 0, self.allowed)), None)
        until = len(standings) if needed is None else needed + 1
        numbers = [i for i, standing in enumerate(standings) if i < until or standing == "over"]
        return [*(number for number in numbers if number != self.deciding), self.deciding]

    def recorded(self, number: int) -> Verdict:
        """Return what is recorded of one replay, number from 0, in the light of all of them."""
        each = self.judged[number]
        verdict = each.verdict
        if self.outcome != "fail" and each.standing == "over":
            over = sum(one.standing == "over" for one in self.judged)
            reason = (
                f"{verdict.reason}; not confirmed: so in {over} of {len(self.judged)} replays,"
                f" a fail of a simulated bench needs {min(CONFIRMATIONS, self.allowed)}"
            )
            return replace(verdict, outcome="inconclusive", reason=reason)
        if self.outcome is None and verdict.outcome == "pass":
            reason = "clean in one replay alone, beside one that the machine explains"
            if any(one.standing in AGAINST for one in self.judged):
                reason = "clean, but not in one replay more than it was not"
            return replace(verdict, outcome="inconclusive", reason=reason)
        return verdict


def decide_streams(
    requirements: Mapping[int, StreamRequirement], replays: Sequence[ReplayResults], allowed: int
) -> dict[int, DecidedStream]:
    """Judge streams by all replays of them; see the module for the rule.

    Args:
        requirements: By stream id; of one target.
        replays: In their order; at least one.
        allowed: Replays that there may be at most; 1 on real hardware.

    Raises:
        RecordError: The consumer did not report a stream.
    """
    judged = {
        stream: tuple(judge_latency(stream, requirement, replay) for replay in replays)
        for stream, requirement in requirements.items()
    }
    return decide_judged(judged, allowed)


def decide_judged(judged: Mapping[int, Sequence[StreamVerdict]], allowed: int) -> dict[int, DecidedStream]:
    """Decide streams whose replays have been judged; as `decide_streams`."""
    of_replays: Iterator[tuple[StreamVerdict, ...]] = zip(*judged.values(), strict=True)
    over = sum(any(each.standing == "over" for each in of_replay) for of_replay in of_replays)
    return {
        stream: DecidedStream(
            tuple(verdicts), decide([each.standing for each in verdicts], over, allowed), allowed
        )
        for stream, verdicts in judged.items()
    }
