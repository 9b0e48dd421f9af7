# SPDX-License-Identifier: Apache-2.0
"""The largest pattern that a target takes within its budgets: what trials of it showed, and how sure that is.

A trial is a replay of the pattern's first n producers, in one fixed order, judged stream by stream by the
rule of latencies (reports/daq_replay/verdict.py). It is `within` where every stream passes, `over` where one
fails, and has `no verdict` where neither holds. Evidence: `evidence/daq_replay/TARGET/largest_pattern/`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reports.clock_sync.verdict import BENCH_STALLED
from reports.daq_replay.attempts import DecidedStream, decide_streams
from reports.daq_replay.verdict import ReplayResults, StreamRequirement
from reports.largest_pattern.capability import QUANTITY, UNIT
from reports.quantities import producer_of
from reports.record.context import Context, Sample, build_record
from reports.record.document import read_document
from reports.record.histogram import merge
from reports.record.measurement import Limit, Measurement, Outcome, Uncertainty
from reports.record.sampling import CONFIDENCE, miss_probability_upper_95
from reports.record.verdict import Verdict, judge
from reports.tools.answers import StreamResult

SCHEMA = "benchwright.largest_pattern/1"
FOLDER = "largest_pattern"
FILE = "largest_pattern.json"
LATENESS_QUANTILE = 0.99

TrialOutcome = Literal["within", "over", "no verdict"]


@dataclass(frozen=True, slots=True)
class TrialStream:
    """What a trial showed of one stream; times in ns.

    Attributes:
        over_budget: Messages that arrived after their budget.
        reason: Why it does not pass; empty: it does.
    """

    id: int
    outcome: Outcome
    n: int
    lost: int
    over_budget: int
    max_ns: int | None
    budget_ns: int
    margin_ns: int | None
    reason: str

    @property
    def margin_share(self) -> float | None:
        """Return the margin after U as a share of the budget."""
        return None if self.margin_ns is None else self.margin_ns / self.budget_ns


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial: the producers that sent, and what came of it.

    Attributes:
        place: Its folder in the run, or that of the suite's own replay.
        is_own: It is the suite's own replay, which its streams' tests judge too.
        n_required: Messages that each stream needs for `within`.
        replays: How many it took; further ones on a simulated bench only.
        lateness_p99_ns: 99 % quantile of sent - scheduled over all messages; then its 95 % interval.
    """

    producers: tuple[int, ...]
    outcome: TrialOutcome
    place: str
    is_own: bool
    n_required: int
    replays: int
    streams: tuple[TrialStream, ...]
    lateness_p99_ns: int | None
    lateness_p99_lower_ns: int | None
    lateness_p99_upper_ns: int | None
    reason: str

    @property
    def size(self) -> int:
        """Return the number of producers."""
        return len(self.producers)

    @property
    def messages(self) -> int:
        """Return how many messages were sent in all, lost ones included."""
        return sum(stream.n + stream.lost for stream in self.streams)

    @property
    def over_budget(self) -> int:
        """Return how many messages arrived after their budget, or not at all."""
        return sum(stream.over_budget + stream.lost for stream in self.streams)

    @property
    def failed(self) -> tuple[int, ...]:
        """Return the streams that failed."""
        return tuple(stream.id for stream in self.streams if stream.outcome == "fail")

    @property
    def worst(self) -> TrialStream | None:
        """Return the stream with the least margin as a share of its budget."""
        rated = [stream for stream in self.streams if stream.margin_share is not None]
        return min(rated, key=lambda stream: stream.margin_share or 0.0, default=None)


@dataclass(frozen=True, slots=True)
class LargestPattern:
    """What the search found.

    Attributes:
        order: All producers that the bench has for the pattern, in the order in which they are added.
        found: Number of producers; None: the search came to no end, `reason` says why.
        low: The largest number that a trial of whole length showed within; 0: none.
        high: The smallest number that a trial showed over; one more than there are: none.
        n_required: Messages of each stream in a trial of whole length.
        boundary_trials: Trials of whole length that the result needs.
        trials: In the order in which they were made.
    """

    order: tuple[int, ...]
    found: int | None
    low: int
    high: int
    n_required: int
    boundary_trials: int
    reason: str
    trials: tuple[Trial, ...]
    schema: str = SCHEMA

    @property
    def shown(self) -> tuple[Trial, ...]:
        """Return the trials of whole length by which `low` is within."""
        return tuple(
            trial
            for trial in self.trials
            if trial.size == self.low and trial.outcome == "within" and trial.n_required >= self.n_required
        )

    @property
    def beyond(self) -> Trial | None:
        """Return the trial that showed `high` over; None: all that there are were taken."""
        return next((t for t in self.trials if t.size == self.high and t.outcome == "over"), None)

    @property
    def worst(self) -> TrialStream | None:
        """Return the stream with the least margin at the largest pattern."""
        rated = [trial.worst for trial in self.shown]
        found = [stream for stream in rated if stream is not None]
        return min(found, key=lambda stream: stream.margin_share or 0.0, default=None)

    @property
    def miss_bound(self) -> float | None:
        """Return the miss probability, of the least sure stream at `low`, that is excluded with 95 %."""
        counts: dict[int, tuple[int, int]] = {}
        for stream in (stream for trial in self.shown for stream in trial.streams):
            misses, total = counts.get(stream.id, (0, 0))
            total += stream.n + stream.lost
            counts[stream.id] = (misses + stream.over_budget + stream.lost, total)
        bounds = [miss_probability_upper_95(min(misses, total), total) for misses, total in counts.values()]
        return max(bounds, default=None)

    @property
    def fewest(self) -> int:
        """Return the messages of the stream that had fewest in the trials that show `low`."""
        counts: dict[int, int] = {}
        for stream in (stream for trial in self.shown for stream in trial.streams):
            counts[stream.id] = counts.get(stream.id, 0) + stream.n
        return min(counts.values(), default=0)

    @property
    def within_least(self) -> float:
        """Return the probability of a trial of `low` to be within, at least, with 95 %.

        Clopper and Pearson (1934), one-sided, from the trials of whole length: one `over` among them would
        have moved the result. The search has chosen the number by them: each of the sizes that it could come
        to has its share of the 5 % (Bonferroni).
        """
        if not self.shown:
            return 0.0
        return float(((1.0 - CONFIDENCE) / len(self.order)) ** (1.0 / len(self.shown)))

    @property
    def confidence(self) -> str:
        """Return in words how sure the number is."""
        words: list[str] = []
        if self.found is None:
            most = "" if self.high > len(self.order) else f", fewer than {self.high}"
            shown, asked = len(self.shown), self.boundary_trials
            so_often = (
                f" (in {shown} of the {asked} trials that it needs)" if self.low and shown < asked else ""
            )
            return f"not found: at least {self.low}{so_often}{most}"
        bound = self.miss_bound
        if self.found and bound is not None:
            words.append(
                f"{self.found}: in at least {self.fewest} messages of each stream, misses of"
                f" more than {100 * bound:.2g} % excluded with 95 %"
            )
            if len(self.shown) > 1:
                trials, least = len(self.shown), 100 * self.within_least
                words.append(
                    f"within in {trials} of {trials} trials, so in at least {least:.0f} % of such trials"
                    f" (95 %, of {len(self.order)} sizes that it could have been)"
                )
        if self.beyond is not None:
            failed = len(self.beyond.failed)
            words.append(
                f"{self.high}: {self.beyond.over_budget} of {self.beyond.messages} messages over budget or"
                f" lost, {'1 stream fails' if failed == 1 else f'{failed} streams fail'}"
            )
        else:
            words.append("all that the bench has")
        return "; ".join(words)


def judge_trial(
    replays: Sequence[ReplayResults],
    producers: Sequence[int],
    requirements: Mapping[int, StreamRequirement],
    place: str,
    n_required: int,
    *,
    allowed: int = 1,
    is_own: bool = False,
) -> Trial:
    """Judge a trial.

    Args:
        replays: One, and on a simulated bench further ones: `reports.daq_replay.attempts` has the rule.
        producers: Those that sent.
        requirements: By stream; only those of the producers count.
        place: Folder of the evidence, in the run.
        n_required: Messages that each stream needs, as the requirements say it.
        allowed: Replays that there may be at most.
        is_own: It is the suite's own replay.

    Raises:
        RecordError: The consumer did not report a stream.
    """
    wanted = {s: requirements[s] for s in sorted(requirements) if producer_of(s) in producers}
    late = [[s.sent_minus_scheduled for s in replay.recv.streams] for replay in replays]
    decided = decide_streams(wanted, replays, allowed)
    streams = [
        _trial_stream(replays[each.deciding].recv.stream(stream), wanted[stream], each)
        for stream, each in decided.items()
    ]
    failed = [stream for stream in streams if stream.outcome == "fail"]
    undecided = {stream: each for stream, each in decided.items() if each.outcome is None}
    outcome: TrialOutcome = "over" if failed else "no verdict" if undecided or not streams else "within"
    lateness = merge([each for of_replay in late for each in of_replay]).quantile(LATENESS_QUANTILE)
    return Trial(
        producers=tuple(producers),
        outcome=outcome,
        place=place,
        is_own=is_own,
        n_required=n_required,
        replays=len(replays),
        streams=tuple(streams),
        lateness_p99_ns=lateness.value_ns if lateness else None,
        lateness_p99_lower_ns=lateness.lower_ns if lateness else None,
        lateness_p99_upper_ns=lateness.upper_ns if lateness else None,
        reason=_why(failed, undecided),
    )


def _trial_stream(found: StreamResult, requirement: StreamRequirement, decided: DecidedStream) -> TrialStream:
    verdict = decided.verdict
    return TrialStream(
        id=found.id,
        outcome=verdict.outcome,
        n=found.received_minus_scheduled.n,
        lost=found.lost,
        over_budget=found.misses,
        max_ns=found.received_minus_scheduled.max_ns,
        budget_ns=int(requirement.limit.upper or 0),
        margin_ns=None if verdict.margin is None else int(verdict.margin),
        reason=verdict.reason,
    )


def _why(failed: Sequence[TrialStream], undecided: Mapping[int, DecidedStream]) -> str:
    if failed:
        return "; ".join(f"stream {stream.id}: {stream.reason}" for stream in failed[:3])
    if not undecided:
        return ""
    many = len(undecided)
    left = "1 stream has no verdict" if many == 1 else f"{many} streams have no verdict"
    if all(each.explained for each in undecided.values()):
        return f"{BENCH_STALLED}: {left}"
    stream, each = next(pair for pair in undecided.items() if not pair[1].explained)
    return f"{left}; stream {stream}: {each.verdict.reason}"


def largest_pattern_measurement(
    found: LargestPattern, requirement: str, limit: Limit, context: Context
) -> Measurement:
    """Judge the number against its lower limit and return the record.

    The number is counted, not measured: its uncertainty is 0. How sure it is, `LargestPattern.confidence`
    says. A search that a trial without a verdict has ended has shown `low` all the same, where so many trials
    of whole length have as the result needs: its record then has that number where it satisfies the limit.
    Else it is inconclusive, without a number.
    """
    uncertainty = Uncertainty.from_parts([])
    number = found.found
    is_shown = len(found.shown) >= found.boundary_trials
    if number is None and is_shown and found.low and found.low >= (limit.lower or 0):
        number = found.low
    sample = Sample(
        quantity=QUANTITY,
        statistic="max",
        value=number,
        n=found.fewest,
        n_required=found.n_required if number else 0,
    )
    if number is None:
        verdict = Verdict("inconclusive", None, f"{found.confidence}; {found.reason}")
        return build_record(requirement, sample, limit, uncertainty, verdict, context)
    if number == 0:
        beyond = found.beyond
        reason = f"not even one producer is taken within its budgets: {beyond.reason if beyond else ''}"
        margin = None if limit.lower is None else -limit.lower
        outcome: Outcome = "fail" if limit.lower else "pass"
        verdict = Verdict(outcome, margin, reason if outcome == "fail" else "")
        return build_record(requirement, sample, limit, uncertainty, verdict, context)
    verdict = judge(
        number, limit, uncertainty, n=sample.n, n_required=sample.n_required, statistic="max", unit=UNIT
    )
    return build_record(requirement, sample, limit, uncertainty, verdict, context)


def read_largest_pattern(path: Path) -> LargestPattern:
    """Read the evidence; raises RecordError, which names the key."""
    return read_document(LargestPattern, path, SCHEMA)
