# SPDX-License-Identifier: Apache-2.0
"""The check that a step of the clock is seen, worked out again: docs/clock-sync.md, `A step of the clock`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.lock_time import DISTURBANCE
from reports.rejudge.rule import limit_discrepancies, outcome_of, part_discrepancies, value_discrepancies
from reports.rejudge.trial import (
    FILTERED,
    SAYS,
    by_timecard,
    comparison_discrepancies,
    comparison_of,
    facts_of,
    subject_discrepancies,
)

QUANTITY = "clock_step"
SMALLEST_NS = 100_000
"""The smallest step that `bw-clock` looks for: so much may be missed of one."""
SET = re.compile(r"clock put ahead by ([-+.e\d]+) us")
DIGITS = 1e-5
"""Relative: the note of what was set has six digits."""


def clock_step_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out the step that was found, its limits, U and outcome; see `judge_each`."""
    return judge_each(run, records, QUANTITY, FILTERED, _judge)


def _judge(record: Record, file: Path) -> list[str]:
    answer, facts = comparison_of(file.parent), facts_of(file.parent)
    return [
        *comparison_discrepancies(answer),
        *subject_discrepancies(record, facts),
        *_differences(record, answer, facts),
        *_set_discrepancies(record, file.parent / DISTURBANCE),
    ]


def _differences(record: Record, answer: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    set_ns = _middle(record)
    steps_ns = [step["step_ns"] for step in answer["steps"]]
    found_ns = min(steps_ns, key=lambda step_ns: abs(step_ns - set_ns), default=None)
    yield from value_discrepancies(record, found_ns, len(steps_ns), SAYS)
    # A step is the difference of two offsets: each part counts twice.
    parts = {name: 2 * value for name, value in by_timecard(answer, facts).parts.items()}
    yield from part_discrepancies(record, parts, SAYS)
    allowed_ns = SMALLEST_NS + sum(parts.values())
    yield from limit_discrepancies(
        record, set_ns + allowed_ns, set_ns - allowed_ns, "the smallest step and U give"
    )
    # The bench that does not see a step has not shown that the target fails.
    wanted = "pass" if outcome_of(record, found_ns, len(steps_ns)) == "pass" else "inconclusive"
    if record["outcome"] != wanted:
        yield f"{record['outcome']}, its steps come to {wanted}"


def _middle(record: Record) -> float:
    """Return the step that was set, in ns: the limits lie around it."""
    return (record["limit"]["upper"] + record["limit"]["lower"]) / 2


def _set_discrepancies(record: Record, disturbance: Path) -> Iterator[str]:
    """Say where the limits lie around another step than the one that was noted; older trials have no note."""
    if not disturbance.exists():
        return
    events = json.loads(disturbance.read_text("utf-8"))["events"]
    noted = [float(found[1]) * 1000 for event in events if (found := SET.match(event["what"]))]
    set_ns = _middle(record)
    if noted and all(abs(each - set_ns) > 1 + DIGITS * abs(set_ns) for each in noted):
        yield f"the limits lie around a step of {set_ns:g} ns, {DISTURBANCE} says {noted[0]:g} ns"
