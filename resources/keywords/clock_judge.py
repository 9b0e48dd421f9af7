# SPDX-License-Identifier: Apache-2.0
"""Records of trials of clocks: what every suite that measures one has in common."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from shutil import copyfile

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from hw.errors import MeasurementError
from reports import Conditions, Evidence, Limit, Measurement, Subject, current_run
from reports.clock_trial import FILTERED, MASK, SEQUENTIAL, TRIAL, WITNESS, ClockTrial
from reports.mask_verdict import MASKED_KINDS, is_masked, mask_measurements, unset_mask_measurements
from reports.record_context import Context
from reports.sampling import required_samples
from reports.sync_offset import sync_measurement, unset_measurement, witness_measurement
from resources.clock_requirements import ClockRequirement
from resources.clock_sync import ClockLab

WITNESS_REQUIREMENT = "BENCH-CLOCK-WITNESSES"


class ClockJudge:
    """Judges trials by their requirements and writes the records of the test that runs."""

    def __init__(self, lab: ClockLab) -> None:
        """Take the lab in which the trials are measured."""
        self._lab = lab

    @contextmanager
    def unset_on_error(self, requirement: ClockRequirement, phase: str) -> Generator[None, None, None]:
        """Leave a record of a clock that could not be measured: what has no value is not forgotten."""
        try:
            yield
        except MeasurementError as error:
            lab = self._lab
            subject = Subject(lab.bench.spec.name, lab.target.kind, clock=requirement.clock)
            context = self._context(subject, Conditions(lab.profile.name, phase), ())
            limit, n_required = self._limit(requirement)
            records = [unset_measurement(requirement.id, limit, n_required, str(error), context)]
            if requirement.mask is not None and phase in MASKED_KINDS:
                wanted = requirement.mask.range
                records += unset_mask_measurements(wanted, requirement.id, n_required, str(error), context)
            for record in records:
                current_run().append(record)
            raise

    def judge(self, trials: list[ClockTrial], requirement: ClockRequirement) -> None:
        """Write a record for each trial; raise AssertionError unless all of them pass."""
        records: list[Measurement] = []
        for trial in trials:
            records += self._records(trial, requirement)
        left = [record for record in records if record.outcome != "pass"]
        if left:
            raise AssertionError(
                "; ".join(
                    f"{record.outcome.upper()}: {record.requirement}: {record.reason}" for record in left
                )
            )

    def _records(self, trial: ClockTrial, requirement: ClockRequirement) -> list[Measurement]:
        run = current_run()
        lab = self._lab
        names = (TRIAL, FILTERED, SEQUENTIAL, WITNESS)
        facts = trial.facts
        phase = facts.kind if facts.interval_s is None else f"{facts.kind} {facts.interval_s:g} s"
        subject = Subject(lab.bench.spec.name, lab.target.kind, clock=facts.clock)
        conditions = Conditions(lab.profile.name, phase, facts.load, facts.impairment)
        files = tuple(run.evidence(trial.folder / name) for name in names if (trial.folder / name).exists())
        context = self._context(subject, conditions, files)
        limit, n_required = self._limit(requirement)
        records = [sync_measurement(trial, requirement.id, limit, n_required, context)]
        witnesses = witness_measurement(trial, WITNESS_REQUIREMENT, context)
        if witnesses is not None:
            records.append(witnesses)
        records += self._mask_records(trial, requirement, n_required, context)
        for record in records:
            run.append(record)
            logger.info(f"{record.requirement}: {record.outcome}: {record.reason or 'within its limit'}")
        return records

    def _mask_records(
        self, trial: ClockTrial, requirement: ClockRequirement, n_required: int, context: Context
    ) -> list[Measurement]:
        """Judge by the stack's mask, where it has one; a copy of the mask stays with the trial."""
        mask = requirement.mask
        if mask is None or not is_masked(trial):
            return []
        copyfile(mask.path, trial.folder / MASK)
        evidence = (*context.evidence, current_run().evidence(trial.folder / MASK))
        context = replace(context, evidence=evidence)
        return mask_measurements(trial, mask.range, requirement.id, n_required, context)

    def _limit(self, requirement: ClockRequirement) -> tuple[Limit, int]:
        limit = Limit(requirement.limit_ns, -requirement.limit_ns, requirement.source)
        return limit, required_samples(self._lab.profile.excluded_miss_probability)

    def _context(self, subject: Subject, conditions: Conditions, evidence: tuple[Evidence, ...]) -> Context:
        test = str(BuiltIn().get_variable_value("${TEST NAME}"))
        simulated = self._lab.bench.spec.simulated
        return Context(current_run().run_id, test, subject, conditions, simulated, evidence)
