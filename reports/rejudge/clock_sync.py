# SPDX-License-Identifier: Apache-2.0
"""The offset of a clock, worked out again from the answers of the tools (docs/clock-sync.md).

By the answer of `bw-clock compare` where the target has a timecard, whatever was done to the clock meanwhile,
or else by those of `bw-traffic offset`. Offsets by edges are none of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.server_replies import by_timecard_and_replies, in_light_of_replies
from reports.rejudge.trial import (
    FILTERED,
    comparison_discrepancies,
    comparison_of,
    facts_of,
    offset_discrepancies,
    subject_discrepancies,
)
from reports.rejudge.two_way import TARGET_FILE, by_two_way, two_way_span

QUANTITY = "sync_offset"
STATISTIC = "max_abs"


def clock_sync_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out the offset farthest from 0, its samples, U and outcome; see `judge_each`."""
    problems, count = judge_each(run, records, QUANTITY, FILTERED, _by_timecard)
    more, count_more = judge_each(run, records, QUANTITY, TARGET_FILE, _by_two_way)
    return [*problems, *more], count + count_more


def _by_timecard(record: Record, file: Path) -> list[str] | None:
    if record["statistic"] != STATISTIC:
        return None
    answer, facts = comparison_of(file.parent), facts_of(file.parent)
    found = by_timecard_and_replies(answer, facts, file.parent)
    told = [
        *comparison_discrepancies(answer),
        *subject_discrepancies(record, facts),
        *offset_discrepancies(record, found, file.parent),
    ]
    return [f"{record['subject'].get('clock')}: {each}" for each in told]


def _by_two_way(record: Record, file: Path) -> list[str] | None:
    if record["statistic"] != STATISTIC:
        return None
    facts = facts_of(file.parent)
    found = in_light_of_replies(by_two_way(file.parent), facts, two_way_span(file.parent), file.parent)
    told = [
        *subject_discrepancies(record, facts),
        *offset_discrepancies(record, found, file.parent),
    ]
    return [f"{record['subject'].get('clock')}: {each}" for each in told]
