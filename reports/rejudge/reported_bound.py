# SPDX-License-Identifier: Apache-2.0
"""What a clock told of its own error, worked out again from the answer of `bw-clock compare`.

How many samples were off by more than they were told, how wide the bounds were, how many readings were left
out, and how fast a clock drifted in holdover.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.rule import outcome_of, part_discrepancies, value_discrepancies
from reports.rejudge.server_replies import by_timecard_and_replies
from reports.rejudge.summary import summary_discrepancies
from reports.rejudge.time_service import service_discrepancies
from reports.rejudge.trial import (
    FILTERED,
    comparison_discrepancies,
    comparison_of,
    facts_of,
    subject_discrepancies,
)

SAYS = "the comparison says"
MILLION, BILLION = 10**6, 10**9
FORMS = ("bound", "u")
"""What is told of an error: the interval, and U, which older answers do not have."""

Json = Mapping[str, Any]


@dataclass(frozen=True)
class _Value:
    """As worked out; open: nothing may pass or fail on it."""

    value: float | None
    n: int
    unit: str
    parts: dict[str, float] = field(default_factory=dict[str, float])
    is_open: bool = False


def reported_bound_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, samples, U and outcome of these quantities; see `judge_each`."""
    problems: list[str] = []
    count = 0
    for quantity, work_out in _WAYS.items():
        found, worked_out = judge_each(run, records, quantity, FILTERED, _judge_by(work_out))
        problems += found
        count += worked_out
    return problems, count


def _judge_by(work_out: Callable[[Json, Json], _Value]) -> Callable[[Record, Path], list[str]]:
    def judge(record: Record, file: Path) -> list[str]:
        answer, facts = comparison_of(file.parent), facts_of(file.parent)
        found = by_timecard_and_replies(answer, facts, file.parent)
        told = [
            *comparison_discrepancies(answer),
            *_reported_bound_discrepancies(answer),
            *service_discrepancies(answer, facts, file.parent),
            *subject_discrepancies(record, facts),
            *_discrepancies(record, work_out(answer, facts), is_doubtful=found.is_doubtful),
        ]
        return [f"{record['subject'].get('clock')}: {each}" for each in told]

    return judge


def _reported_bound_discrepancies(answer: Json) -> Iterator[str]:
    """Say where what is told of the bound contradicts itself, or the offsets."""
    told = answer.get("device_bound")
    if not told:
        return
    checked = told["bound_checked"]
    for form in [form for form in FORMS if form in told]:
        yield from (f"device_bound.{form}: {each}" for each in summary_discrepancies(told[form]))
        missed, beyond = told[f"{form}_missed"], told[f"{form}_missed_beyond_window"]
        if not checked == told[form]["n"] == answer["offset"]["n"]:
            yield f"{checked} bounds checked of {answer['offset']['n']} samples"
        if told["without_bound"] < 0 or not 0 <= beyond <= missed <= checked:
            yield f"{missed} missed of {checked}, {beyond} of them beyond the window"


def _discrepancies(record: Record, found: _Value, *, is_doubtful: bool) -> Iterator[str]:
    yield from value_discrepancies(record, found.value, found.n, SAYS, found.unit)
    yield from part_discrepancies(record, found.parts, SAYS)
    wanted = outcome_of(record, found.value, found.n)
    if wanted != "unset" and (found.is_open or is_doubtful):
        wanted = "inconclusive"
    if record["outcome"] != wanted:
        yield f"{record['outcome']}, the comparison comes to {wanted}"


def _missed(form: str, answer: Json, _facts: Json) -> _Value:
    told = answer.get("device_bound")
    if not told or not told["bound_checked"] or form not in told:
        return _Value(None, 0, "ppm")
    checked, missed = told["bound_checked"], told[f"{form}_missed"]
    undecided = MILLION * (missed - told[f"{form}_missed_beyond_window"]) / checked
    return _Value(MILLION * missed / checked, checked, "ppm", {"undecided": undecided})


def _width(form: str, answer: Json, facts: Json) -> _Value:
    told = answer.get("device_bound")
    if not told or form not in told or not told[form]["n"] or not answer["offset"]["n"]:
        return _Value(None, 0, "")
    middle_ns, error_ns = _middle_ns(told[form]), _median_size_ns(answer["offset"])
    ratio, slack_ns = middle_ns / error_ns, _slack_ns(answer, facts)
    if slack_ns >= error_ns:
        return _Value(ratio, told["bound_checked"], "", {"median_error": ratio}, is_open=True)
    part = middle_ns / (error_ns - slack_ns) - ratio
    return _Value(ratio, told["bound_checked"], "", {"median_error": part})


def _left_out(answer: Json, _facts: Json) -> _Value:
    n = answer["iterations"]
    return _Value(MILLION * answer["discarded"] / n if n else None, n, "ppm")


def _holdover(answer: Json, facts: Json) -> _Value:
    rows = answer["series"]["rows"]
    if len(rows) <= 2:  # any two points lie on a line
        return _Value(None, 0, "ppb")
    times = [row[0] - rows[0][0] for row in rows]
    mean_t = Fraction(sum(times), len(rows))
    rate = sum((t - mean_t) * round(row[2]) for t, row in zip(times, rows, strict=True)) / sum(
        (t - mean_t) ** 2 for t in times
    )
    slope = 3 * BILLION * _slack_ns(answer, facts) / times[-1]
    return _Value(float(rate * BILLION), len(rows), "ppb", {"slope": slope})


_WAYS: dict[str, Callable[[Json, Json], _Value]] = {
    "bound_missed": partial(_missed, "bound"),
    "bound_width": partial(_width, "bound"),
    "u_missed": partial(_missed, "u"),
    "u_width": partial(_width, "u"),
    "reads_left_out": _left_out,
    "holdover_rate": _holdover,
}


def _slack_ns(answer: Json, facts: Json) -> int:
    """What reference and mean bracket leave open of a middle of offsets."""
    bracket_ns = math.ceil((answer["window"]["mean_ns"] or 0) / 2)
    return (answer["reference_bound_ns"] or 0) + facts["timecard"]["bound_ns"] + bracket_ns


def _middle_ns(summary: Json) -> int:
    """The middle of the bucket of the median, within the extremes."""
    rank, seen = (summary["n"] + 1) // 2, 0
    for low, width, count in summary["buckets"]:
        seen += count
        if seen >= rank:
            return max(summary["min_ns"], min(summary["max_ns"], low + round(width / 2)))
    return int(summary["max_ns"])


def _median_size_ns(summary: Json) -> int:
    """The lower edge of the bucket of the median of sizes, 1 at least."""
    sizes: dict[int, int] = {}
    for low, width, count in summary["buckets"]:
        size_ns = low if low >= 0 else 1 - low - width
        sizes[size_ns] = sizes.get(size_ns, 0) + count
    seen = 0
    for size_ns in sorted(sizes):
        seen += sizes[size_ns]
        if 2 * seen >= summary["n"]:
            return max(1, size_ns)
    raise ValueError("offset: fewer samples in its buckets than n")
