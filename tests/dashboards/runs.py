# SPDX-License-Identifier: Apache-2.0
"""Small run folders with records for tests of points and store."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from reports.record.measurement import (
    RULE,
    SCHEMA,
    Conditions,
    Limit,
    Measurement,
    Number,
    Outcome,
    Subject,
    Uncertainty,
    UncertaintyPart,
    margin_of,
)
from reports.run.folder import RunFolder

SUBJECT = Subject("virtual", "linux-rt", stack="kernel", clock="two-way", stream="31")
PARTS = (UncertaintyPart("clock", "bound", 100),)


def record(
    *,
    quantity: str = "one_way_latency",
    requirement: str = "DAQ-031",
    value: Number | None = 1_000_000,
    unit: str = "ns",
    outcome: Outcome = "pass",
    upper: Number = 10_000_000,
    n: int = 600,
    subject: Subject = SUBJECT,
    parts: tuple[UncertaintyPart, ...] = PARTS,
) -> Measurement:
    """Return a record; `make_run` gives it the id of its run."""
    uncertainty = Uncertainty.from_parts(() if unit == "s" else parts)
    limit = Limit(upper, None, "a source")
    return Measurement(
        schema=SCHEMA,
        run_id="none",
        test="a test",
        requirement=requirement,
        quantity=quantity,
        statistic="max",
        value=value,
        unit=unit,
        n=n,
        n_required=99,
        lost=0,
        allowed_lost=0,
        limit=limit,
        uncertainty=uncertainty,
        margin=margin_of(value, limit, uncertainty),
        rule=RULE,
        outcome=outcome,
        reason="" if outcome == "pass" else "a reason",
        subject=subject,
        conditions=Conditions(profile="ci", phase="aligned-12"),
        simulated=True,
        evidence=(),
        time_utc="2026-11-22T00:00:00Z",
    )


def make_run(results: Path, records: Iterable[Measurement]) -> RunFolder:
    """Make a run folder with records in it."""
    results.mkdir(parents=True, exist_ok=True)
    run = RunFolder.create(results, "virtual", "ci")
    for one in records:
        run.append(dataclasses.replace(one, run_id=run.run_id))
    return run
