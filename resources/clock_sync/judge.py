# SPDX-License-Identifier: Apache-2.0
"""Records of trials of clocks: what every suite that measures one has in common."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copyfile

from hw.errors import MeasurementError
from reports import Conditions, Evidence, Limit, Measurement, Subject, current_run
from reports.clock_sync.disturbance import lock_time_measurement, step_measurement
from reports.clock_sync.mask_verdict import (
    MASKED_KINDS,
    is_masked,
    mask_measurements,
    unset_mask_measurements,
)
from reports.clock_sync.path_shift import path_shift, shift_measurement
from reports.clock_sync.reported_bound import reported_bound_measurement, unset_reported_bound_measurement
from reports.clock_sync.trial import EVIDENCE_FILES, FILTERED, MASK, TRIAL, ClockTrial, Lock
from reports.clock_sync.verdict import judge_sync, sync_measurement, unset_measurement, witness_measurement
from reports.record.context import Context
from reports.record.sampling import required_samples
from reports.requirements import Requirement
from reports.units import format_value
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.requirements import ClockMask
from resources.keywords.judged import keep, require_passed, running_test

WITNESS_REQUIREMENT = "BENCH-CLOCK-WITNESSES"
KNOWN_ERROR_SHARE = 0.5
"""A guest's clock is off by up to a second before it is set wrong, and then runs at a rate of its own."""


class ClockJudge:
    """Judges trials by their requirements and writes the records of the test that runs."""

    def __init__(self, lab: ClockLab, masks: Mapping[str, ClockMask] | None = None) -> None:
        """Take the lab in which the trials are measured, and the masks of requirements by their ids."""
        self._lab = lab
        self._masks = masks or {}

    @contextmanager
    def unset_on_error(
        self, requirement: Requirement, phase: str, *, offset: bool = True, locks: bool = False
    ) -> Generator[None, None, None]:
        """Leave records of a clock that could not be measured: what has no value is not forgotten.

        Args:
            requirement: On the clock.
            phase: What was measured.
            offset: Leave one of the offset.
            locks: Leave one of the time to lock.
        """
        try:
            yield
        except MeasurementError as error:
            conditions = Conditions(self._lab.profile.name, phase)
            context = self._context(self._subject(requirement.of), conditions, ())
            limit, n_required = self._limit(requirement)
            records: list[Measurement] = []
            if offset:
                records.append(unset_measurement(requirement.id, limit, n_required, str(error), context))
            if locks:
                deadline = _deadline(requirement)
                records.append(lock_time_measurement([], requirement.id, deadline, 1, context, str(error)))
            if offset and requirement.id in self._masks and phase in MASKED_KINDS:
                wanted = self._masks[requirement.id].range
                records += unset_mask_measurements(wanted, requirement.id, n_required, str(error), context)
            keep(records)
            raise

    def judge(
        self,
        trials: Sequence[ClockTrial],
        requirement: Requirement,
        others: Sequence[Measurement] = (),
    ) -> None:
        """Write a record for each trial, and other records; raise AssertionError unless all of them pass."""
        records = list(others)
        keep(records)
        for trial in trials:
            records += self._records(trial, requirement)
        require_passed(records)

    def lock_record(
        self,
        locks: Sequence[Lock],
        requirement: Requirement,
        n_required: int,
        conditions: Conditions,
        files: Sequence[Path],
    ) -> Measurement:
        """Return the record of the longest time to lock.

        Args:
            locks: All of them, under the same conditions.
            requirement: Says by when.
            n_required: Locks that were to be seen.
            conditions: See `conditions_of`.
            files: What they were read from.
        """
        context = self._context(self._subject(requirement.of), conditions, self._evidence(files))
        return lock_time_measurement(locks, requirement.id, _deadline(requirement), n_required, context)

    def step_record(self, trial: ClockTrial, step_ns: int, requirement: Requirement) -> Measurement:
        """Return the record of the check that a step of this size is seen, and lets nothing pass."""
        files = [trial.folder / name for name in (TRIAL, FILTERED)]
        context = self._context(
            self._subject(requirement.of), self.conditions_of(trial), self._evidence(files)
        )
        limit, n_required = self._limit(requirement)
        return step_measurement(trial, step_ns, limit, n_required, context)

    def require_known_error(self, trial: ClockTrial, requirement: Requirement, error_ns: int) -> None:
        """Check that a clock of a known error fails its limit, by that error.

        Raises:
            MeasurementError: It does not: the bench does not see errors of clocks.
        """
        limit, n_required = self._limit(requirement)
        verdict, uncertainty = judge_sync(trial, limit, n_required)
        found_ns = trial.filtered.extreme_ns
        clock = f"a clock that is {format_value(error_ns, 'ns')} off"
        if found_ns is None or verdict.outcome != "fail":
            raise MeasurementError(f"{clock} was judged {verdict.outcome}, not fail")
        if abs(found_ns - error_ns) > KNOWN_ERROR_SHARE * abs(error_ns) + uncertainty.expanded:
            raise MeasurementError(f"{clock} was found {format_value(found_ns, 'ns')} off")

    def shift_record(
        self, pairs: Sequence[tuple[ClockTrial, ClockTrial]], set_ns: int, requirement: Requirement
    ) -> Measurement:
        """Return the record of the check that the reference shows what an asymmetric path does."""
        disturbed = [trial for _without, trial in pairs]
        files = [trial.folder / name for pair in pairs for trial in pair for name in (TRIAL, FILTERED)]
        conditions = self.conditions_of(disturbed[0])
        context = self._context(self._subject(requirement.of), conditions, self._evidence(files))
        return shift_measurement(path_shift(pairs, set_ns), context)

    def reported_bound_record(self, trial: ClockTrial, requirement: Requirement, limit: Limit) -> Measurement:
        """Return the record of what a clock told of its own error (reports/clock_sync/reported_bound.py)."""
        files = self._evidence([trial.folder / name for name in EVIDENCE_FILES])
        context = self._context(self._subject(trial.facts.clock), self.conditions_of(trial), files)
        wanted = (requirement.quantity, requirement.id, limit, requirement.samples, context)
        return reported_bound_measurement(trial, *wanted)

    def unset_bound_record(
        self, requirement: Requirement, limit: Limit, phase: str, reason: str
    ) -> Measurement:
        """Return the record of one that could not be measured."""
        context = self._context(self._subject(requirement.of), self.conditions(phase), ())
        wanted = (requirement.quantity, requirement.id, limit, requirement.samples, reason, context)
        return unset_reported_bound_measurement(*wanted)

    def conditions(self, phase: str) -> Conditions:
        """Return the conditions of what was not measured in a trial."""
        return Conditions(self._lab.profile.name, phase)

    def conditions_of(self, trial: ClockTrial) -> Conditions:
        """Return the conditions of a trial, as its records say them."""
        facts = trial.facts
        phase = facts.kind if facts.interval_s is None else f"{facts.kind} {facts.interval_s:g} s"
        return Conditions(self._lab.profile.name, phase, facts.load, facts.impairment)

    def _subject(self, clock: str) -> Subject:
        return Subject(self._lab.bench.spec.name, self._lab.target.kind, clock=clock)

    def _evidence(self, files: Sequence[Path]) -> tuple[Evidence, ...]:
        return tuple(current_run().evidence(file) for file in files if file.exists())

    def _records(self, trial: ClockTrial, requirement: Requirement) -> list[Measurement]:
        files = self._evidence([trial.folder / name for name in EVIDENCE_FILES])
        context = self._context(self._subject(trial.facts.clock), self.conditions_of(trial), files)
        limit, n_required = self._limit(requirement)
        records = [sync_measurement(trial, requirement.id, limit, n_required, context)]
        witnesses = witness_measurement(trial, WITNESS_REQUIREMENT, context)
        if witnesses is not None:
            records.append(witnesses)
        records += self._mask_records(trial, requirement, n_required, context)
        keep(records)
        return records

    def _mask_records(
        self, trial: ClockTrial, requirement: Requirement, n_required: int, context: Context
    ) -> list[Measurement]:
        """Judge by the stack's mask, where it has one; a copy of the mask stays with the trial."""
        mask = self._masks.get(requirement.id)
        if mask is None or not is_masked(trial):
            return []
        copyfile(mask.path, trial.folder / MASK)
        evidence = (*context.evidence, current_run().evidence(trial.folder / MASK))
        context = replace(context, evidence=evidence)
        return mask_measurements(trial, mask.range, requirement.id, n_required, context)

    def _limit(self, requirement: Requirement) -> tuple[Limit, int]:
        limit = Limit(requirement.upper_ns, -requirement.upper_ns, requirement.limit.source)
        return limit, required_samples(self._lab.profile.excluded_miss_probability)

    def _context(self, subject: Subject, conditions: Conditions, evidence: tuple[Evidence, ...]) -> Context:
        test = running_test()
        simulated = self._lab.bench.spec.simulated
        return Context(current_run().run_id, test, subject, conditions, simulated, evidence)


def _deadline(requirement: Requirement) -> Limit:
    return Limit(requirement.lock_within_s, None, f"lock_within_s of {requirement.id}")
