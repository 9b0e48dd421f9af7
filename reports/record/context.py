# SPDX-License-Identifier: Apache-2.0
"""How a measurement record is put together: a sample, the verdict on it, and the context that both have."""

from __future__ import annotations

from dataclasses import dataclass

from reports.errors import RecordError
from reports.quantities import AXES, QUANTITIES
from reports.record.measurement import (
    RULE,
    SCHEMA,
    Conditions,
    Evidence,
    Limit,
    Measurement,
    Number,
    Subject,
    Uncertainty,
    utc_now,
)
from reports.record.verdict import Verdict


@dataclass(frozen=True)
class Context:
    """What a record says beside its value: which run, test, subject and conditions, and on which files."""

    run_id: str
    test: str
    subject: Subject
    conditions: Conditions
    simulated: bool
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Sample:
    """A value, in the unit of its quantity, and how many samples and lost messages it rests on.

    Attributes:
        statistic: What the value is of its samples (`max`, `max_abs`, `mean`, …).
        value: None where nothing was measured.
        n_required: Samples that the requirement asks for.
    """

    quantity: str
    statistic: str
    value: Number | None
    n: int
    n_required: int
    lost: int = 0
    allowed_lost: int = 0

    @property
    def unit(self) -> str:
        """Return the unit of the value.

        Raises:
            RecordError: No capability has the quantity.
        """
        if self.quantity not in QUANTITIES:
            raise RecordError(f"quantity {self.quantity!r}: no reports/*/capability.py has it")
        return QUANTITIES[self.quantity].unit


def build_record(
    requirement: str,
    sample: Sample,
    limit: Limit,
    uncertainty: Uncertainty,
    verdict: Verdict,
    context: Context,
) -> Measurement:
    """Return the record of a sample that was judged.

    Args:
        requirement: Its id.
        sample: What was measured.
        limit: What it was held against, in the sample's unit.
        uncertainty: U, in the sample's unit.
        verdict: What came of it.
        context: Of which run, test and subject.

    Raises:
        RecordError: The record would contradict itself, above all a pass that is none; or its subject is on
            an axis that no capability has.
    """
    for each in context.subject.axes or ():
        if each.axis not in AXES:
            raise RecordError(f"axis {each.axis!r}: no reports/*/capability.py has it")
    return Measurement(
        schema=SCHEMA,
        run_id=context.run_id,
        test=context.test,
        requirement=requirement,
        quantity=sample.quantity,
        statistic=sample.statistic,
        value=sample.value,
        unit=sample.unit,
        n=sample.n,
        n_required=sample.n_required,
        lost=sample.lost,
        allowed_lost=sample.allowed_lost,
        limit=limit,
        uncertainty=uncertainty,
        margin=verdict.margin,
        rule=RULE,
        outcome=verdict.outcome,
        reason=verdict.reason,
        subject=context.subject,
        conditions=context.conditions,
        simulated=context.simulated,
        evidence=context.evidence,
        time_utc=utc_now(),
    )
