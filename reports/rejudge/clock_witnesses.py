# SPDX-License-Identifier: Apache-2.0
"""Reference against two-way transfer, worked out again: docs/clock-sync.md, `Who says so`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import judge_each
from reports.rejudge.rule import limit_discrepancies, outcome_of, part_discrepancies, value_discrepancies
from reports.rejudge.trial import (
    FILTERED,
    by_timecard,
    comparison_discrepancies,
    comparison_of,
    facts_of,
    subject_discrepancies,
)

QUANTITY = "clock_witness_difference"
ANSWERS = "two-way"
"""Folder of the answers of both clocks, asked at the same time."""
SAYS = "the witnesses say"
WHOLE_NS = 100_000_000
"""The exchanges last a whole number of these."""
PPB = 1_000_000_000
REFERENCE_CLOCK: Mapping[str, Any] = {"at_local_tai_ns": 0, "offset_ns": 0, "rate_ppb": 0, "bound_ns": 0}
"""The line of the clock that both were held against, which nobody asks."""

Json = Mapping[str, Any]


def clock_witness_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out how far both witnesses are apart, and how far they may be; see `judge_each`."""
    return judge_each(run, records, QUANTITY, FILTERED, _judge)


def _judge(record: Record, file: Path) -> list[str]:
    answer, facts = comparison_of(file.parent), facts_of(file.parent)
    two_way = facts["two_way"]
    if two_way is None:
        return ["there was no two-way transfer"]
    told = [
        *comparison_discrepancies(answer),
        *subject_discrepancies(record, facts),
        *_differences(record, answer, facts),
        *_two_way_discrepancies(two_way, file.parent / ANSWERS),
    ]
    return [f"{record['subject'].get('clock')}: {each}" for each in told]


def _differences(record: Record, answer: Json, facts: Json) -> Iterator[str]:
    two_way = facts["two_way"]
    rows = [
        row for row in answer["series"]["rows"] if two_way["from_tai_ns"] <= row[0] <= two_way["to_tai_ns"]
    ]
    n = sum(row[1] for row in rows)
    if not n:
        yield "the comparison has no sample while the exchanges lasted"
        return
    mean_ns = sum(Fraction(row[2]) * row[1] for row in rows) / n
    difference_ns = round(mean_ns) - two_way["offset_ns"]
    if record["value"] is not None and abs(record["value"] - difference_ns) <= 1:
        difference_ns = record["value"]  # rounded the other way
    yield from value_discrepancies(record, difference_ns, len(rows), SAYS)
    yield from part_discrepancies(record, {}, SAYS)
    wander_ns = max(row[4] for row in rows) - min(row[3] for row in rows)
    allowed_ns = sum(by_timecard(answer, facts).parts.values()) + two_way["bound_ns"] + wander_ns
    yield from limit_discrepancies(record, allowed_ns, -allowed_ns, "both bounds and the clock's wander give")
    # Witnesses that contradict each other are the bench's fault, not the target's.
    wanted = "pass" if outcome_of(record, difference_ns, len(rows)) == "pass" else "inconclusive"
    if record["outcome"] != wanted:
        yield f"{record['outcome']}, its witnesses come to {wanted}"


def _two_way_discrepancies(two_way: Json, folder: Path) -> Iterator[str]:
    """Say where the answers of both clocks give another offset than the trial has; it may have none."""
    files = [file for file in folder.glob("offset-*.ndjson") if not file.name.startswith("offset-serve-")]
    lines = [line for line in map(read_result, sorted(files)) if line is not None]
    if len(lines) == 1:
        lines.append(REFERENCE_CLOCK)
    duration_ns = round((two_way["to_tai_ns"] - two_way["from_tai_ns"]) / WHOLE_NS) * WHOLE_NS
    found = [_between(own, server, duration_ns) for own, server in permutations(lines, 2)]
    if found and not any(all(abs(each[name] - two_way[name]) <= 1 for name in each) for each in found):
        nearest = min(found, key=lambda each: abs(each["to_tai_ns"] - two_way["to_tai_ns"]))
        yield f"two-way transfer is {dict(two_way)}, its answers give {nearest}"


def _between(own: Json, server: Json, duration_ns: int) -> dict[str, int]:
    """Return where a clock stands against the server's in the middle of the exchanges, ns, and its bound."""
    end_ns = max(own["at_local_tai_ns"], server["at_local_tai_ns"])
    begin_ns = end_ns - duration_ns
    middle_ns = (begin_ns + end_ns) // 2
    return {
        "offset_ns": _shows(own, middle_ns) - _shows(server, middle_ns),
        "bound_ns": own["bound_ns"] + server["bound_ns"],
        "from_tai_ns": _shows(server, begin_ns),
        "to_tai_ns": _shows(server, end_ns),
    }


def _shows(line: Json, reference_tai_ns: int) -> int:
    """Return what a clock shows at a time of the clock that asked it."""
    gained = Fraction((reference_tai_ns - line["at_local_tai_ns"]) * line["rate_ppb"], PPB)
    return reference_tai_ns + line["offset_ns"] + round(gained)
