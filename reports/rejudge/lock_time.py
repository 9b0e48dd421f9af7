# SPDX-License-Identifier: Apache-2.0
"""The time to lock, worked out again from what was noted of each lock: docs/clock-sync.md, `Disturbances`.

Times are those of the bench's own clock: no raw data hold them twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.kept import kept_requirements
from reports.rejudge.rule import outcome_of, part_discrepancies, value_discrepancies
from reports.rejudge.trial import TRIAL, facts_of, subject_discrepancies

QUANTITY = "lock_time"
DISTURBANCE = "disturbance.json"
ROUNDED_S = 0.2
"""What two rounded times and their sum can be off."""
SAYS = "its locks say"

Json = Mapping[str, Any]


def lock_time_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out the longest time to lock, in s, U and outcome; see `judge_each`."""

    def judge(record: Record, file: Path) -> list[str] | None:
        names = {Path(each["path"]).name for each in record["evidence"]}
        if not names & {DISTURBANCE, TRIAL}:
            return None
        told: list[str] = []
        if TRIAL in names:
            told += subject_discrepancies(record, facts_of(file.parent))
        if DISTURBANCE in names:
            done: Json = json.loads((file.parent / DISTURBANCE).read_text("utf-8"))
            told += _disturbance_discrepancies(record, done)
            locks = [event["lock"] for event in done["events"] if event["lock"] is not None]
        else:
            locks = [each for each in (facts_of(file.parent)["lock"],) if each is not None]
        told += [*_lock_discrepancies(record, locks), *_deadline_discrepancies(run, record)]
        return [f"{QUANTITY}: {record['subject'].get('clock')}: {each}" for each in told]

    return judge_each(run, records, QUANTITY, "*.json", judge)


def _lock_discrepancies(record: Record, locks: Sequence[Json]) -> Iterator[str]:
    longest = max(locks, key=lambda lock: lock["after_s"], default=None)
    value = None if longest is None else longest["after_s"]
    yield from value_discrepancies(record, value, len(locks), SAYS, "s")
    parts: dict[str, float] = {}
    if longest is not None:
        # Where it is not known when the log was looked at before, the lock may have been at any time.
        bound_s = longest.get("bound_s")
        parts = {"poll_interval": longest["after_s"] if bound_s is None else bound_s}
    yield from part_discrepancies(record, parts, SAYS)
    wanted = outcome_of(record, value, len(locks))
    if record["outcome"] != wanted:
        yield f"{record['outcome']}, its locks come to {wanted}"


def _disturbance_discrepancies(record: Record, done: Json) -> Iterator[str]:
    """Say where events are not of the record's clock, or one came before the lock after the one before."""
    if done["clock"] != record["subject"].get("clock"):
        yield f"clock is {record['subject'].get('clock')}, {DISTURBANCE} is of {done['clock']}"
    kind = str(record["conditions"].get("phase", done["kind"])).partition(" ")[0]
    if kind != done["kind"]:
        yield f"phase is {kind}, {DISTURBANCE} is of {done['kind']}"
    for event in done["events"]:
        lock = event["lock"]
        if event["at_s"] < 0 or (lock and (lock.get("bound_s") or 0) > lock["after_s"]):
            yield f"{event['what']!r} came at {event['at_s']} s, its lock {lock}"
    for before, after in pairwise(done["events"]):
        lock = before["lock"]
        if after["at_s"] and lock and after["at_s"] < before["at_s"] + lock["after_s"] - ROUNDED_S:
            yield f"{after['what']!r} came at {after['at_s']} s, before the lock after {before['what']!r}"


def _deadline_discrepancies(run: Path, record: Record) -> Iterator[str]:
    """Hold the limit against the requirement files that the run kept; damaged ones are named with them."""
    own = kept_requirements(run).get(record["requirement"], [])
    asked = [each["lock_within_s"] for each in own if "lock_within_s" in each]
    if asked and record["limit"]["upper"] not in asked:
        yield f"judged against {record['limit']['upper']} s, lock_within_s is {asked[0]}"
