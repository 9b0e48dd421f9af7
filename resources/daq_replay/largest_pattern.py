# SPDX-License-Identifier: Apache-2.0
"""How many producers a target takes within its budgets: found by bisection over replays of the first n.

Producers are added in one order, `producer_order`. That a target which is over its budgets with n producers
is over them with more, too, is assumed and not measured. A trial on the way is short: one message beyond its
budget shows that n is too many. What a short trial shows to be within is only a hope, and the number that is
found in the end is shown by a trial of whole length, as the next one is shown to be over. What an earlier run
has found of the target is tried first; else all producers are.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hw.errors import CapabilityError, ConfigError, MeasurementError
from reports import Conditions, Evidence, RunFolder, Subject
from reports.daq_replay.verdict import StreamRequirement
from reports.errors import ReportError
from reports.largest_pattern.search import (
    FILE,
    FOLDER,
    LargestPattern,
    Trial,
    TrialOutcome,
    judge_trial,
    read_largest_pattern,
)
from reports.quantities import producer_of
from reports.record.context import Context
from reports.record.document import write_document
from reports.record.sampling import required_samples
from resources.daq_replay.evidence import LatencyEvidence
from resources.daq_replay.largest_pattern_times import TIMES, LargestPatternTimes, largest_pattern_times
from resources.daq_replay.pattern import Pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Progress
from resources.daq_replay.requirements import StreamRequirements
from resources.profiles import has_times, times_of

BUDGETS = "budgets.toml"
"""Copy of the requirements that trials are judged by."""

LOOKED_AT = 20
"""Runs, the newest ones, in which the last answer is looked for."""

Ask = Callable[[int, bool], TrialOutcome]
"""Make a trial of n producers, of whole length or short."""


@dataclass(frozen=True)
class Boundary:
    """Where a search ended; `found` None: a trial had no verdict.

    Attributes:
        low: The largest number shown within by a trial of whole length; 0: none.
        high: The smallest number shown over; one more than are on offer: none.
        undecided: The number whose trial had no verdict.
    """

    found: int | None
    low: int
    high: int
    undecided: int | None = None


def search(
    offered: int,
    ask: Ask,
    boundary_trials: int = 1,
    first: tuple[int, TrialOutcome] | None = None,
    expected: int | None = None,
) -> Boundary:
    """Find the largest number of producers that is within, where the next one is over.

    Args:
        offered: How many producers there are.
        ask: Makes a trial.
        boundary_trials: So many trials of whole length have to show the number within, one after the other;
            where one of them does not, the number is over.
        first: A trial of whole length that was made before: number and outcome. Where it shows all producers
            within, no further trial is made.
        expected: What the last search has found: this number and the next one are tried first. Where there
            was none, all producers are: most targets take them.
    """
    low, high = 0, offered + 1
    shown: dict[int, int] = {}
    hoped: set[int] = set()
    if first is not None:
        size, outcome = first
        if outcome == "no verdict":
            return Boundary(None, low, high, size)
        if outcome == "over":
            high = size
        elif size == offered:
            return Boundary(size, size, high)
        else:
            low, shown = size, {size: 1}
    hints = [(offered, False)] if expected is None else [(expected, True), (expected + 1, False)]
    while True:
        candidate = max([low, *(size for size in hoped if size < high)])
        bisect = high - candidate > 1
        hints = [(size, whole) for size, whole in hints if low < size < high]
        if not bisect and candidate == low and (low == 0 or shown[low] >= boundary_trials):
            return Boundary(low, low, high)
        size, whole = ((candidate + high) // 2, False) if bisect else (candidate, True)
        hinted = bool(hints)
        if hinted:
            size, whole = hints.pop(0)
        outcome = ask(size, whole)
        if outcome == "no verdict" and hinted and bisect:
            continue  # it was a guess; the answer may lie elsewhere
        if outcome == "no verdict":
            return Boundary(None, low, high, size)
        if outcome == "over":
            high = size
        elif whole:
            shown[size] = shown.get(size, 0) + 1
        else:
            hoped.add(size)
        low = max((size for size in shown if size < high), default=0)


def last_answer(run: RunFolder, place: Path, order: Sequence[int]) -> int | None:
    """Return the number of producers that the newest earlier run of the same bench has found of a target.

    Args:
        run: The run that asks: of the same bench and profile, and beside the earlier ones.
        place: File of the search in a run folder: that of the target, of several network stacks of the same.
        order: Of the producers; a search in another order says nothing.

    Returns:
        None: no run of the last `LOOKED_AT` has an answer.
    """
    for folder in sorted(run.path.parent.glob("2*"), reverse=True)[:LOOKED_AT]:
        file = folder / place
        if folder.name == run.path.name or not file.exists():
            continue
        try:
            found = read_largest_pattern(file)
            manifest = RunFolder.open(folder).manifest
        except ReportError:
            continue
        same = (manifest.bench, manifest.profile) == (run.manifest.bench, run.manifest.profile)
        if same and found.order == tuple(order) and found.found is not None:
            return found.found
    return None


def producer_order(pattern: Pattern, own: Sequence[int], offered: Sequence[int]) -> tuple[int, ...]:
    """Return the order in which producers are added: those of the suite's own replay first, then the others.

    Each part begins with the producer that sends least, in bytes a second; equal ones go by their number.

    Args:
        pattern: The pattern.
        own: Producers of the suite's own replay.
        offered: Those that there are at all.
    """
    rates = {
        number: sum(s.size_bytes / s.period_ns for s in pattern.streams if s.producer == number)
        for number in offered
    }
    return tuple(sorted(offered, key=lambda number: (number not in own, rates[number], number)))


class LargestPatternSearch:
    """The search for one target, after the suite's own replay, on the same open bench."""

    def __init__(
        self,
        evidence: LatencyEvidence,
        pattern: Pattern,
        settings: ReplaySettings,
        budgets: StreamRequirements,
        run: RunFolder,
        progress: Progress,
    ) -> None:
        """Prepare the search.

        Args:
            evidence: That of the suite's own replay, which is the first trial.
            pattern: What is replayed, in the phase of the suite's own replay.
            settings: As of the suite's own replay.
            budgets: What each stream is judged by, also of producers that the suite does not replay.
            run: The run that the evidence belongs to.
            progress: Called with a line of text now and then.

        Raises:
            CapabilityError: The profile does not say how long a trial is.
            ConfigError: No producer has a budget.
            MeasurementError: Nothing was replayed.
        """
        profile = evidence.profile.name
        if not has_times(profile, TIMES):
            raise CapabilityError(f"profile {profile}: {TIMES.name} has no table {profile}")
        if not evidence.attempts:
            raise MeasurementError("nothing has been replayed")
        self._evidence = evidence
        self._settings = settings
        self._times: LargestPatternTimes = times_of(profile, TIMES, largest_pattern_times)
        self._run = run
        self._progress = progress
        pattern = evidence.network.carried(pattern)
        carried = {stream.id for stream in pattern.streams}
        budgets = replace(budgets, by_stream={n: e for n, e in budgets.by_stream.items() if n in carried})
        self._pattern, self._budgets = pattern, budgets
        self._own = evidence.requirements.producers or pattern.producers
        with_budget = {producer_of(stream) for stream in budgets.by_stream}
        offered = [n for n in pattern.producers if n in with_budget and n in evidence.bench.spec.producers]
        if not offered:
            raise ConfigError(f"{budgets.path}: no producer of the bench has a stream with a requirement")
        self._order = producer_order(pattern, self._own, offered)
        self._trials: list[Trial] = []
        self._replayed: list[LatencyEvidence] = []
        self._folder = evidence.folder / FOLDER

    def run(self) -> LargestPattern:
        """Search, and write what was found into the evidence.

        Raises:
            BenchError: A node died, a tool did not start or end.
            MeasurementError: A tool came to no result.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._budgets.path, self._folder / BUDGETS)
        own = self._own_trial()
        boundary = search(
            len(self._order),
            self._ask,
            self._times.boundary_trials,
            own and (own.size, own.outcome),
            last_answer(self._run, self._folder.relative_to(self._run.path) / FILE, self._order),
        )
        found = LargestPattern(
            order=self._order,
            found=boundary.found,
            low=boundary.low,
            high=boundary.high,
            n_required=required_samples(self._probability(True)),
            boundary_trials=self._times.boundary_trials,
            reason=""
            if boundary.undecided is None
            else f"no verdict on {boundary.undecided} producers: {self._trials[-1].reason}",
            trials=tuple(self._trials),
        )
        write_document(self._folder / FILE, found)
        return found

    def context(self, test: str) -> Context:
        """Return what the record says besides the number; its evidence are the files of all trials."""
        evidence = self._evidence
        spec = evidence.bench.spec
        subject = Subject(spec.name, evidence.target.kind, evidence.stack, evidence.clock)
        conditions = Conditions(evidence.profile.name, evidence.attempts[-1].judged.recv.phase)
        return Context(self._run.run_id, test, subject, conditions, spec.simulated, self._files())

    def _files(self) -> tuple[Evidence, ...]:
        own = [self._run.evidence(self._folder / name) for name in (FILE, BUDGETS)]
        attempts = [attempt for each in self._replayed for attempt in each.attempts]
        return (*own, *(file for attempt in attempts for file in attempt.evidence(self._run)))

    def _own_trial(self) -> Trial | None:
        """Return the suite's own replay as a trial; None: none of its producers has a budget."""
        producers = [number for number in self._order if number in self._own]
        return self._judged(self._evidence, producers, True) if producers else None

    def _ask(self, size: int, whole: bool) -> TrialOutcome:
        """Make a trial, on a simulated bench again while it has no verdict, as often as the profile says."""
        producers = self._order[:size]
        by_stream = {n: each for n, each in self._budgets.by_stream.items() if producer_of(n) in producers}
        evidence = LatencyEvidence(
            self._evidence.bench,
            self._evidence.target,
            self._evidence.stack,
            self._evidence.clock,
            replace(
                self._evidence.profile,
                replay_attempts=self._times.trial_attempts,
                excluded_miss_probability=self._probability(whole),
            ),
            replace(self._budgets, by_stream=by_stream),
            self._folder / f"trial-{len(self._trials) + 1}",
        )
        settings = self._settings_of(producers, whole)
        self._progress(f"the first {size} producers, for {settings.duration_ms / 1000:g} s")
        evidence.replay(self._pattern, settings, self._progress)
        trial = self._judged(evidence, producers, whole)
        self._progress(f"{size} producers: {trial.outcome}")
        return trial.outcome

    def _judged(self, evidence: LatencyEvidence, producers: Sequence[int], whole: bool) -> Trial:
        is_own = evidence is self._evidence
        place = evidence.attempts[-1].folder if is_own else evidence.folder
        self._replayed.append(evidence)
        trial = judge_trial(
            [attempt.judged for attempt in evidence.attempts],
            producers,
            self._requirements(producers, whole),
            place.relative_to(self._run.path).as_posix(),
            required_samples(self._probability(whole)),
            allowed=evidence.allowed,
            is_own=is_own,
        )
        self._trials.append(trial)
        return trial

    def _requirements(self, producers: Sequence[int], whole: bool) -> dict[int, StreamRequirement]:
        return {
            stream: StreamRequirement(
                requirement.id,
                requirement.limit,
                required_samples(self._probability(whole)),
                requirement.lost or 0,
            )
            for stream, requirement in self._budgets.by_stream.items()
            if producer_of(stream) in producers
        }

    def _probability(self, whole: bool) -> float:
        """Return the miss probability that a trial excludes, with 95 %, of each stream."""
        return self._times.excluded_miss_probability if whole else self._times.probe_miss_probability

    def _settings_of(self, producers: Sequence[int], whole: bool) -> ReplaySettings:
        """Return the replay that lasts until the slowest stream with a budget has its messages."""
        judged = [
            stream
            for stream in self._pattern.streams
            if stream.producer in producers and stream.id in self._budgets.by_stream
        ]
        messages = required_samples(self._probability(whole)) + 1
        duration_ms = -(-messages * max(stream.period_ns for stream in judged) // 1_000_000)
        settings = self._settings.shortened(self._times.warmup_ms, duration_ms)
        return replace(settings, only_producers=tuple(sorted(producers)))
