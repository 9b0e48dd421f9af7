# SPDX-License-Identifier: Apache-2.0
"""The offset of a clock, worked out again from the answer of `bw-clock compare` (docs/clock-sync.md).

Trials under a disturbance, against two-way transfer, or by edges are none of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.arithmetic import Record, expanded
from reports.rejudge.each import judge_each
from reports.rejudge.latency import read_result
from reports.rejudge.summary import summary_objections

QUANTITY = "sync_offset"
STATISTIC = "max_abs"

Json = Mapping[str, Any]


def clock_sync_objections(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out the offset farthest from 0, its samples and U; see `judge_each`."""
    return judge_each(run, records, QUANTITY, "filtered.ndjson", _judge)


def _judge(record: Record, file: Path) -> list[str] | None:
    if record["statistic"] != STATISTIC or (file.parent / "disturbance.json").exists():
        return None
    answer = read_result(file)
    if answer is None:
        raise ValueError(f"{file.name}: no result")
    facts: Json = json.loads((file.parent / "trial.json").read_text())
    told = [*_answer_objections(answer), *_differences(record, answer, facts)]
    return [f"{record['subject'].get('clock')}: {each}" for each in told]


def _answer_objections(answer: Json) -> Iterator[str]:
    """Say where the comparison contradicts itself: distributions, series, counts."""
    for name in ("offset", "window"):
        yield from (f"{name}: {objection}" for objection in summary_objections(answer[name]))
    n = answer["offset"]["n"]
    if n != answer["window"]["n"] or n + answer["discarded"] != answer["iterations"]:
        yield f"{answer['iterations']} iterations, {answer['discarded']} discarded, {n} kept"
    rows: Sequence[Sequence[float]] = answer["series"]["rows"]
    if not rows:
        return
    if sum(row[1] for row in rows) != n:
        yield f"the series holds {sum(row[1] for row in rows)} samples of {n}"
    for name, found in (("min_ns", min(row[3] for row in rows)), ("max_ns", max(row[4] for row in rows))):
        if answer["offset"][name] != found:
            yield f"offset.{name} is {answer['offset'][name]}, the series has {found}"


def _differences(record: Record, answer: Json, facts: Json) -> Iterator[str]:
    offset, card = answer["offset"], facts["timecard"]
    parts: dict[str, float] = {}
    if answer["reference_bound_ns"] is not None:
        parts["reference"] = answer["reference_bound_ns"]
    if card["bound_ns"]:
        parts["timecard_certificate"] = card["bound_ns"]
    parts["bracket"] = (answer["window"]["max_ns"] or 0) // 2
    extreme = max((offset["min_ns"], offset["max_ns"]), key=abs) if offset["n"] else None
    said = {part["name"]: part["value"] for part in record["uncertainty"]["parts"]}
    for name, found, worked_out in (
        ("value", record["value"], extreme),
        ("n", record["n"], offset["n"]),
    ):
        if found != worked_out:
            yield f"{name} is {found}, the comparison says {worked_out}"
    if said != parts:
        yield f"parts of U are {said}, the comparison says {parts}"
    doubtful = not (answer["valid"] and answer["complete"]) or bool(answer["steps"])
    if record["outcome"] == "pass" and doubtful:
        yield "pass, though the comparison is not valid or the clock stepped"
    u, upper, lower = (
        expanded(record["uncertainty"]["parts"]),
        record["limit"]["upper"],
        record["limit"]["lower"],
    )
    beyond = extreme is not None and (extreme - (upper or 0) > u or (lower or 0) - extreme > u)
    if beyond and record["outcome"] not in ("fail", "inconclusive"):
        yield f"{record['outcome']}, {extreme} is beyond the limit"
