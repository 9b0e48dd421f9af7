# SPDX-License-Identifier: Apache-2.0
"""Evidence of a latency measurement: what is known of one subject, and the records that are made from it.

A simulated bench shares its machine. A stream that has no verdict yet is judged by a further replay, within
the same run; that lasts no longer than the samples of those streams need. The rule by which replays decide
is that of `reports/daq_replay/attempts.py`; every one of them stays in the run. Real hardware never gets a
second one.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from reports import (
    Conditions,
    Evidence,
    Measurement,
    RunFolder,
    StreamRequirement,
    Subject,
    latency_measurement,
)
from reports.daq_replay.attempts import DecidedStream, decide_judged
from reports.daq_replay.emulation import EMULATION, TARGET_WITNESS, keep_emulation
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.known_delay import KnownDelay
from reports.daq_replay.machine_use import MACHINE_USE
from reports.daq_replay.replay_clock import CLOCK_ERROR, REPLAY_CLOCK
from reports.daq_replay.role import REPLAY_ROLE, ReplayRole
from reports.daq_replay.stack_proof import STACK_PROOF
from reports.daq_replay.verdict import ReplayResults, StreamVerdict, judge_latency
from reports.record.context import Context
from reports.record.sampling import required_samples
from resources.clock_sync.settings import FREE_RUN
from resources.daq_replay.clock import ClockOfReplay, clock_of_replay, synchronised_stacks
from resources.daq_replay.known_delay import known_delay_record
from resources.daq_replay.other_streams import budgets_of_others
from resources.daq_replay.pattern import Pattern
from resources.daq_replay.plan import ReplaySettings
from resources.daq_replay.replay import Progress, Replay, ReplayAnswers
from resources.daq_replay.requirements import StreamRequirements
from resources.daq_replay.stack_used import STACK_USED
from resources.network_stack import network_stack_of
from resources.profiles import Profile

CORRECTED = ("two-way", FREE_RUN)
"""Clocks of a target whose stamps two-way transfer corrects; `synchronised_stacks` are taken as they are."""
CLOCK_WATCH_MARGIN_MS = 180_000
"""What a replay may take besides its own time: clocks measured before and after, tools started thrice."""
AGAIN_MIN_MS = 15_000
SPARE = 1.2
"""A further replay has so many times the samples that are required."""
EVIDENCE_FILES = (
    "plan.toml",
    "plan-consumer.toml",
    REPLAY_CLOCK,
    CLOCK_ERROR,
    REPLAY_ROLE,
    "recv.ndjson",
    "misses.ndjson",
    "witness.ndjson",
    TARGET_WITNESS,
    EMULATION,
    MACHINE_USE,
    STACK_USED,
    STACK_PROOF,
)


@dataclass(frozen=True)
class ReplayAttempt:
    """One replay, as it is judged, and where its evidence lies."""

    folder: Path
    judged: ReplayResults
    _verdicts: dict[tuple[int, StreamRequirement], StreamVerdict] = field(
        init=False,
        repr=False,
        compare=False,
        default_factory=dict[tuple[int, StreamRequirement], StreamVerdict],
    )

    def verdict(self, stream: int, requirement: StreamRequirement) -> StreamVerdict:
        """Return what this replay says of a stream; judged once, however often it is asked.

        Raises:
            RecordError: The consumer did not report the stream.
        """
        key = (stream, requirement)
        if key not in self._verdicts:
            self._verdicts[key] = judge_latency(stream, requirement, self.judged)
        return self._verdicts[key]

    def evidence(self, run: RunFolder) -> tuple[Evidence, ...]:
        """Return the files that a verdict rests on."""
        paths = [self.folder / name for name in EVIDENCE_FILES]
        return tuple(run.evidence(path) for path in paths if path.exists())


class LatencyEvidence:
    """Collects what a verdict on latency rests on, for one subject (target, stack, clock)."""

    def __init__(
        self,
        bench: OpenBench,
        target: TargetSpec,
        stack: str,
        clock: str,
        profile: Profile,
        requirements: StreamRequirements,
        folder: Path,
        role: ReplayRole | None = None,
    ) -> None:
        """Begin with no evidence.

        Args:
            bench: An open bench.
            target: The consumer.
            stack: Name of the network stack of the target under test; whoever asks puts it on.
            clock: One of `CORRECTED` or `synchronised_stacks`.
            profile: How long, how sure, and how many attempts.
            requirements: One for each stream that is judged.
            folder: Evidence goes to folders `attempt-N` in it.
            role: The target under test, where it produces and `target` only consumes; None: it consumes.

        Raises:
            CapabilityError: The stack or the clock cannot be put on this target.
            ConfigError: There is no such stack.
        """
        under_test = target if role is None else bench.spec.targets[role.target]
        self.network = network_stack_of(under_test, stack)
        self.stack_node = under_test.node
        clocks = (*CORRECTED, *synchronised_stacks(target))
        if clock not in clocks:
            raise CapabilityError(f"clock {clock!r}: must be one of {', '.join(clocks)}")
        self.bench = bench
        self.target = target
        self.stack = stack
        self.clock = clock
        self.profile = profile
        self.requirements = requirements
        self.folder = folder
        self.role = role
        self.attempts: list[ReplayAttempt] = []
        self.kernel_events = False
        """Record what the target's kernel does during the replays to come."""
        self.not_carried: dict[int, str] = {}
        """Streams with a requirement that the stack does not carry, and why: they are not tested."""
        self._others: dict[int, StreamRequirement] = {}
        """Budgets of the streams that others send while the target produces: without a record."""
        self.further_s = 0.0
        """How long the replays after the first have taken."""

    @property
    def subject(self) -> str:
        """Return the name of the target under test."""
        return self.role.target if self.role is not None else self.target.kind

    @property
    def attempt_folder(self) -> Path:
        """Return where the evidence of the next attempt goes."""
        return self.folder / f"attempt-{len(self.attempts) + 1}"

    def replay(self, pattern: Pattern, settings: ReplaySettings, progress: Progress) -> None:
        """Replay a pattern under the chosen clock, and once more while streams have no verdict.

        Args:
            pattern: What is replayed.
            settings: How, and how long; how stamps are corrected follows from the clock.
            progress: Called with a line of text now and then.

        Raises:
            BenchError: A node died, a tool did not start or end, or this machine's disk is full.
            CapabilityError: The bench cannot say how far off the target's clock is.
            MeasurementError: A tool came to no result, or the clock did not lock.
        """
        asked = [stream for stream in pattern.streams if stream.id in self.requirements.by_stream]
        self.not_carried = {stream.id: why for stream in asked if (why := self.network.why_not(stream))}
        own = None if self.role is None else self.role.producer
        pattern = self.network.carried(pattern, own).with_budgets(self.requirements.budgets_ns)
        if self.role is not None:
            self._others = budgets_of_others(pattern, self.requirements.by_stream)
        with self._clock(progress) as clock:
            while True:
                began_s = time.monotonic()
                self._attempt(pattern, settings, clock, progress)
                if len(self.attempts) > 1:
                    self.further_s += time.monotonic() - began_s
                left = self.undecided()
                if not left:
                    return
                own_left = [stream for stream in left if stream not in self._others]
                counting_ms = self.counting_ms(pattern, own_left or self.requirements.by_stream)
                settings = settings.shortened(settings.warmup_ms, counting_ms)
                streams = "1 stream has" if len(left) == 1 else f"{len(left)} streams have"
                progress(f"{streams} no verdict yet ({', '.join(map(str, left[:6]))}); replaying once more")

    def take(self, found: ReplayAnswers) -> None:
        """Keep what the files of a replay say, as a further attempt.

        Args:
            found: Its answers, with what only who collected them has seen go wrong.

        Raises:
            RecordError: The consumer's result cannot be read back.
        """
        if self.role is not None:
            self.role.write(found.folder)
        spec = self.bench.spec
        witness_clock = spec.nodes[spec.witness.node].clock if spec.witness is not None else ""
        keep_emulation(found.folder, load_replay(found.folder).replay(witness_clock))
        judged = load_replay(found.folder).replay(witness_clock)
        faults = tuple(dict.fromkeys([*found.faults, *judged.faults]))
        self.attempts.append(ReplayAttempt(found.folder, replace(judged, faults=faults)))

    @property
    def allowed(self) -> int:
        """Return how many replays there may be: one on real hardware."""
        return self.profile.replay_attempts if self.bench.spec.simulated else 1

    def decided(self) -> dict[int, DecidedStream]:
        """Return each stream that has a requirement, after all replays so far.

        Raises:
            MeasurementError: Nothing was replayed.
        """
        tested = [stream for stream in self.requirements.by_stream if stream not in self.not_carried]
        return self._decide({stream: self._requirement(stream) for stream in tested})

    def decided_others(self) -> dict[int, DecidedStream]:
        """Return each stream that the target under test does not send, where it produces; else none.

        Raises:
            MeasurementError: Nothing was replayed.
        """
        return self._decide(self._others)

    def _decide(self, requirements: Mapping[int, StreamRequirement]) -> dict[int, DecidedStream]:
        if not self.attempts:
            raise MeasurementError("nothing has been replayed")
        judged = {
            stream: [attempt.verdict(stream, requirement) for attempt in self.attempts]
            for stream, requirement in requirements.items()
        }
        return decide_judged(judged, self.allowed)

    def undecided(self) -> list[int]:
        """Return the streams that a further replay may decide; empty on a bench of real hardware.

        Empty too where a stream has failed: the run has its verdict. Streams that the target does not send
        are among them only where the machine does not explain all that was late: else they are left out.
        """
        own, others = self.decided(), self.decided_others()
        if any(stream.outcome == "fail" for stream in (*own.values(), *others.values())):
            return []
        left = [number for number, stream in own.items() if stream.open]
        return left + [number for number, stream in others.items() if stream.open and not stream.explained]

    def records(self, stream: int, run: RunFolder, test: str) -> list[Measurement]:
        """Judge one stream: a record for each replay that its verdict rests on.

        Args:
            stream: Its id.
            run: The run that the evidence belongs to.
            test: Name of the test.

        Returns:
            The records, the one that counts last; the verdict is that of `reports.run.tally.effective`.

        Raises:
            CapabilityError: The network stack does not carry the stream.
            MeasurementError: Nothing was replayed, or the stream has no requirement.
        """
        decided = self.decided()
        if stream in self.not_carried:
            raise CapabilityError(self.not_carried[stream])
        if stream not in decided:
            raise MeasurementError(f"stream {stream}: no requirement in {self.requirements.name}")
        found = decided[stream]
        requirement = self._requirement(stream)
        return [
            latency_measurement(
                stream,
                requirement,
                self.attempts[number].judged,
                replace(found.judged[number], verdict=found.recorded(number)),
                self._context(run, test, str(stream), self.attempts[number].evidence(run)),
            )
            for number in found.recorded_replays
        ]

    def known_delay_measurement(self, found: KnownDelay, run: RunFolder) -> Measurement:
        """Return the record of the known-delay check, which is made before the first attempt."""
        path = self.attempt_folder / "known_delay.json"
        path.write_text(found.to_text())
        return known_delay_record(found, self._context(run, "known-delay check", "", (run.evidence(path),)))

    @contextmanager
    def _clock(self, progress: Progress) -> Generator[ClockOfReplay | None, None, None]:
        """Put the clock on the target while the context lasts; None where stamps are corrected."""
        if self.clock in CORRECTED:
            yield None
            return
        with clock_of_replay(self.bench, self.target, self.clock, self.folder / "clock", progress) as clock:
            yield clock

    def _attempt(
        self, pattern: Pattern, settings: ReplaySettings, clock: ClockOfReplay | None, progress: Progress
    ) -> None:
        folder = self.attempt_folder
        if clock is not None:
            settings = replace(
                settings,
                correction="none",
                synchronised_to=clock.server_clock,
                consumer_clock=clock.consumer_clock,
            )
        replay = Replay(self.bench, self.target, pattern, settings, folder, progress)
        replay.watch_emulator = True
        replay.kernel_events = self.kernel_events
        replay.stack = (self.stack_node, self.network)
        if clock is None:
            self.take(replay.run())
            return
        with clock.watched(folder, settings.total_ms + CLOCK_WATCH_MARGIN_MS):
            found = replay.run()
        clock.measured(folder, found.lines_before, found.lines_after)
        self.take(found)

    def counting_ms(self, pattern: Pattern, streams: Collection[int]) -> int:
        """Return how long a replay counts that is for these streams alone: until they have their samples."""
        n_required = required_samples(self.profile.excluded_miss_probability)
        period_ns = max(stream.period_ns for stream in pattern.streams if stream.id in streams)
        wanted_ms = round(SPARE * n_required * period_ns / 1e6)
        return min(self.profile.duration_ms, max(AGAIN_MIN_MS, wanted_ms))

    def _requirement(self, stream: int) -> StreamRequirement:
        requirement = self.requirements.by_stream[stream]
        return StreamRequirement(
            requirement.id,
            requirement.limit,
            required_samples(self.profile.excluded_miss_probability),
            requirement.lost or 0,
            of_sender=self.role is not None,
        )

    def _context(self, run: RunFolder, test: str, stream: str, evidence: tuple[Evidence, ...]) -> Context:
        subject = Subject(
            bench=self.bench.spec.name,
            target=self.subject,
            stack=self.stack,
            clock=self.clock,
            stream=stream or None,
        )
        alone = "single-producer" if self.role is None else f"single-producer-{self.role.producer}"
        phase = self.attempts[-1].judged.recv.phase if self.attempts else alone
        conditions = Conditions(profile=self.profile.name, phase=phase, load="idle", impairment="none")
        return Context(run.run_id, test, subject, conditions, self.bench.spec.simulated, evidence)
