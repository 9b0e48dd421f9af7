# SPDX-License-Identifier: Apache-2.0
"""What a trial of a clock says of its offset, and what it comes to: docs/clock-sync.md, `Verdict`."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.arithmetic import TOLERANCE
from reports.rejudge.machine import machine_of
from reports.rejudge.rule import beyond, outcome_of, part_discrepancies, value_discrepancies
from reports.rejudge.summary import summary_discrepancies

TRIAL = "trial.json"
FILTERED = "filtered.ndjson"
WITNESS = "witness.ndjson"
SAYS = "the comparison says"
COLUMNS = ["time_tai_ns", "n", "mean_ns", "min_ns", "max_ns"]
ROUNDED_NS = 1
"""What rounding a mean to a whole ns can make of it, and of a mean of such."""
NAMED = 3
"""So many rows of a series that are wrong are named."""
DISTURBING_NS = 2_000_000
"""A shorter pause of the machine disturbs no servo; pauses less than this apart are one."""

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Offset:
    """How a clock stood against its reference; times in ns.

    Attributes:
        value: The offset farthest from 0; None: no sample.
        n: Samples.
        parts: Of U, all of them bounds.
        is_doubtful: The answer is not valid, or not whole, or the server was silent.
        is_stepped: A clock stepped meanwhile.
    """

    value: int | None
    n: int
    parts: Mapping[str, float]
    is_doubtful: bool
    is_stepped: bool


def facts_of(folder: Path) -> Json:
    """Return what is known of a trial beside its answers; raises OSError, ValueError."""
    return dict(json.loads((folder / TRIAL).read_text("utf-8")))


def comparison_of(folder: Path, name: str = FILTERED) -> Json:
    """Return the answer of `bw-clock compare`; raises ValueError where the tool came to none."""
    answer = read_result(folder / name)
    if answer is None:
        raise ValueError(f"{name}: no result")
    return answer


def by_timecard(answer: Json, facts: Json) -> Offset:
    """Return what a comparison with a timecard says."""
    offset = answer["offset"]
    parts: dict[str, float] = {}
    if answer["reference_bound_ns"] is not None:
        parts["reference"] = answer["reference_bound_ns"]
    if facts["timecard"]["bound_ns"]:
        parts["timecard_certificate"] = facts["timecard"]["bound_ns"]
    parts["bracket"] = (answer["window"]["max_ns"] or 0) // 2
    return Offset(
        value=max((offset["min_ns"], offset["max_ns"]), key=abs) if offset["n"] else None,
        n=offset["n"],
        parts=parts,
        is_doubtful=is_doubtful(answer) or _tai_differs(answer),
        is_stepped=bool(answer["steps"]),
    )


def is_doubtful(answer: Json) -> bool:
    """Say whether a tool says of its answer that it is not valid, or ended early."""
    return not (answer["valid"] and answer["complete"]) or bool(answer.get("invalid_reasons"))


def _tai_differs(answer: Json) -> bool:
    known = {answer.get(name, {}).get("tai_utc_s") for name in ("device", "reference")} - {None}
    return len(known) > 1


def comparison_discrepancies(answer: Json) -> Iterator[str]:
    """Say where a comparison contradicts itself: distributions, series, counts."""
    for name in ("offset", "window"):
        yield from (f"{name}: {discrepancy}" for discrepancy in summary_discrepancies(answer[name]))
    n = answer["offset"]["n"]
    if n != answer["window"]["n"] or n + answer["discarded"] != answer["iterations"]:
        yield f"{answer['iterations']} iterations, {answer['discarded']} discarded, {n} kept"
    yield from series_discrepancies(answer)


def series_discrepancies(answer: Json) -> Iterator[str]:
    """Say where the series of a comparison contradicts itself or the distribution."""
    series = answer["series"]
    if list(series["columns"]) != COLUMNS:
        yield f"the series has the columns {series['columns']}"
    elif series["rows"]:
        yield from (f"the series: {each}" for each in _series_discrepancies(answer, series["rows"]))


def _series_discrepancies(answer: Json, rows: Sequence[Sequence[float]]) -> Iterator[str]:
    """Say where the series is not of the samples that the distribution is of."""
    offset = answer["offset"]
    n = sum(row[1] for row in rows)
    if n != offset["n"]:
        yield f"it holds {n} samples of {offset['n']}"
    for name, found in (("min_ns", min(row[3] for row in rows)), ("max_ns", max(row[4] for row in rows))):
        if offset[name] != found:
            yield f"offset.{name} is {offset[name]}, it has {found}"
    mean_ns = math.fsum(row[1] * row[2] for row in rows) / n
    if offset["mean_ns"] is None or abs(offset["mean_ns"] - mean_ns) > ROUNDED_NS + TOLERANCE * abs(mean_ns):
        yield f"offset.mean_ns is {offset['mean_ns']}, its rows have {mean_ns:.0f}"
    if rows[0][0] < answer["start_tai_ns"]:
        yield f"it begins at {rows[0][0]}, the comparison at {answer['start_tai_ns']}"
    yield from itertools.islice(_row_discrepancies(rows, answer["series"]["interval_ns"]), NAMED)


def _row_discrepancies(rows: Sequence[Sequence[float]], interval_ns: int) -> Iterator[str]:
    """Say which rows do not stand for an interval, counted from the first, or have an impossible mean."""
    before_ns = rows[0][0] - interval_ns
    for time_ns, _n, mean_ns, min_ns, max_ns in rows:
        if time_ns <= before_ns or (time_ns - rows[0][0]) % interval_ns:
            yield f"no interval begins at {time_ns}"
        if not min_ns - ROUNDED_NS <= mean_ns <= max_ns + ROUNDED_NS:
            yield f"at {time_ns} the mean {mean_ns} is not from {min_ns} to {max_ns}"
        before_ns = time_ns


def subject_discrepancies(record: Record, facts: Json) -> Iterator[str]:
    """Say where a record is of another clock, phase, load or impairment than its trial."""
    conditions = record["conditions"]
    interval_s = facts["interval_s"]
    phase = facts["kind"] if interval_s is None else f"{facts['kind']} {interval_s:g} s"
    for name, said, found in (
        ("clock", record["subject"].get("clock"), facts["clock"]),
        ("phase", conditions.get("phase", phase), phase),
        ("load", conditions.get("load", facts["load"]), facts["load"]),
        ("impairment", conditions.get("impairment", facts["impairment"]), facts["impairment"]),
    ):
        if said != found:
            yield f"{name} is {said}, the trial is of {found}"


def offset_discrepancies(record: Record, found: Offset, folder: Path) -> Iterator[str]:
    """Say where a record differs from what its trial says: value, samples, U, outcome."""
    yield from value_discrepancies(record, found.value, found.n, SAYS)
    yield from part_discrepancies(record, found.parts, SAYS)
    if record["outcome"] == "pass" and (found.is_doubtful or found.is_stepped):
        yield "pass, though the comparison is not valid, the clock stepped, or its server was silent"
        return
    wanted = outcomes_of(record, found, read_result(folder / WITNESS))
    if record["outcome"] not in wanted:
        yield f"{record['outcome']}, the comparison comes to {' or '.join(sorted(wanted))}"


def outcomes_of(record: Record, found: Offset, witness: Json | None) -> set[str]:
    """Return what an offset comes to: by its value, its answer, and what the machine took meanwhile.

    A witness of the version before does not say how early a pause may have begun: any pause of its may have
    left a fail open.
    """
    outcome = outcome_of(record, found.value, found.n)
    if outcome in ("pass", "inconclusive") and (found.is_doubtful or found.is_stepped):
        return {"inconclusive"}
    if outcome != "fail" or found.value is None:
        return {outcome}
    if found.is_doubtful:
        return {"inconclusive"}
    if witness is not None and "period_ns" not in witness:
        return {"fail", "inconclusive"} if witness["windows"] else {"fail"}
    excess_ns = beyond(record, found.value) - record["uncertainty"]["expanded"]
    longest_ns = longest_pause_ns(witness)
    return {"inconclusive"} if longest_ns and excess_ns <= longest_ns // 2 else {"fail"}


def longest_pause_ns(witness: Json | None) -> int:
    """Return the longest pause that can have disturbed a servo, in ns; 0: none.

    Pauses close to each other are one, as long as they are together.
    """
    lengths_ns = [0]
    until_ns: int | None = None
    for begin_ns, end_ns in machine_of(witness, Path(WITNESS) / "none").pauses:
        if until_ns is None or begin_ns > until_ns + DISTURBING_NS:
            lengths_ns.append(0)
        lengths_ns[-1] += end_ns - begin_ns
        until_ns = end_ns
    longest_ns = max(lengths_ns)
    return longest_ns if longest_ns >= DISTURBING_NS else 0
