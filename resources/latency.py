# SPDX-License-Identifier: Apache-2.0
"""Evidence of a latency measurement: what is known of one subject, and the records that are made from it."""

from __future__ import annotations

from pathlib import Path

import reports.answers as answers
from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.session import Bench
from reports import (
    Conditions,
    Evidence,
    Limit,
    Measurement,
    Requirement,
    RunFolder,
    Subject,
    latency_measurement,
)
from reports.known_delay import KnownDelay
from reports.latency import Replay as JudgedReplay
from reports.record_context import Context
from reports.replay_evidence import read_stalls
from reports.sampling import required_samples
from resources.known_delay import known_delay_record
from resources.profiles import Profile
from resources.replay import ReplayAnswers
from resources.requirements import Requirements

CORRECTION_OF_CLOCK = {"two-way": "two-way", "free-run": "two-way"}
"""How the stamps of a target with this clock are corrected."""


class LatencyEvidence:
    """Collects what a verdict on latency rests on, for one subject (target, stack, clock)."""

    def __init__(
        self,
        bench: Bench,
        target: TargetSpec,
        stack: str,
        clock: str,
        profile: Profile,
        requirements: Requirements,
        folder: Path,
    ) -> None:
        """Begin with no evidence.

        Raises:
            CapabilityError: The stack or the clock cannot be put on this target.
        """
        if stack != "kernel":
            raise CapabilityError(f"stack {stack!r}: must be one of kernel")
        if clock not in CORRECTION_OF_CLOCK:
            raise CapabilityError(f"clock {clock!r}: must be one of {', '.join(CORRECTION_OF_CLOCK)}")
        self.bench = bench
        self.target = target
        self.stack = stack
        self.clock = clock
        self.profile = profile
        self.requirements = requirements
        self.folder = folder
        self.correction = CORRECTION_OF_CLOCK[clock]
        self.answers: ReplayAnswers | None = None
        self._judged: JudgedReplay | None = None
        self._references: tuple[Evidence, ...] = ()

    @property
    def n_required(self) -> int:
        """Samples that the profile asks for."""
        return required_samples(self.profile.excluded_miss_probability)

    def measurement(self, stream: int, run: RunFolder, test: str) -> Measurement:
        """Judge one stream of the replay.

        Raises:
            MeasurementError: Nothing was replayed, or the stream has no requirement.
        """
        if stream not in self.requirements.by_stream:
            raise MeasurementError(f"stream {stream}: no requirement in {self.requirements.name}")
        requirement = self.requirements.by_stream[stream]
        return latency_measurement(
            stream,
            Requirement(
                requirement.id,
                Limit(requirement.upper_ns, None, requirement.source),
                self.n_required,
                requirement.allowed_lost,
            ),
            self._judged_replay(run),
            self._context(run, test, str(stream), self._references),
        )

    def known_delay_measurement(self, found: KnownDelay, run: RunFolder) -> Measurement:
        """Return the record of the known-delay check."""
        path = self.folder / "known_delay.json"
        path.write_text(found.to_text())
        return known_delay_record(found, self._context(run, "known-delay check", "", (run.evidence(path),)))

    def _judged_replay(self, run: RunFolder) -> JudgedReplay:
        if self.answers is None:
            raise MeasurementError("nothing has been replayed")
        if self._judged is None:
            spec = self.bench.spec
            replayed = self.answers
            self._judged = JudgedReplay(
                recv=answers.recv_result(replayed.recv),
                clock_of_producer={
                    number: spec.nodes[producer.node].clock for number, producer in spec.producers.items()
                },
                sends=[answers.send_result(result) for result in replayed.sends.values()],
                witness=read_stalls(self.folder) if replayed.witness is not None else None,
                witness_clock=spec.nodes[spec.witness.node].clock if spec.witness is not None else "",
                misses=self._misses(),
                faults=replayed.faults,
            )
            names = ("plan.toml", "recv.ndjson", "misses.ndjson", "witness.ndjson", "backlog.ndjson")
            self._references = tuple(
                run.evidence(self.folder / name) for name in names if (self.folder / name).exists()
            )
        return self._judged

    def _misses(self) -> list[answers.Miss]:
        path = self.folder / "misses.ndjson"
        return answers.read_misses(path.read_text().splitlines()) if path.exists() else []

    def _context(self, run: RunFolder, test: str, stream: str, evidence: tuple[Evidence, ...]) -> Context:
        subject, conditions = self._subject(stream), self._conditions()
        return Context(run.run_id, test, subject, conditions, self.bench.spec.simulated, evidence)

    def _subject(self, stream: str) -> Subject:
        return Subject(
            bench=self.bench.spec.name,
            target=self.target.kind,
            stack=self.stack,
            clock=self.clock,
            stream=stream or None,
        )

    def _conditions(self) -> Conditions:
        phase = str(self.answers.recv.get("phase", "")) if self.answers is not None else "single-producer"
        return Conditions(profile=self.profile.name, phase=phase, load="idle", impairment="none")
