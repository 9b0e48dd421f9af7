# SPDX-License-Identifier: Apache-2.0
"""The known-delay check, worked out again from every message of its three sections (docs/latency.md)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.arithmetic import expanded
from reports.rejudge.each import judge_each

QUANTITY = "known_delay_error"
SECTIONS = ("without", "with", "again")


def known_delay_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out the delays that were found; see `judge_each`.

    What was applied, and U, are taken from `known_delay.json`.
    """
    return judge_each(run, records, QUANTITY, "known_delay.json", _judge)


def _judge(record: Record, file: Path) -> list[str] | None:
    folder = file.with_suffix("")
    if (folder / "sections.json").exists():
        said = json.loads((folder / "sections.json").read_text("utf-8"))["scheduled_tai_ns"]
        latencies = {name: _under_way_ns(folder / "messages.csv", *said[name]) for name in SECTIONS}
    else:  # of the version before: a replay for each section
        messages = {name: folder / name / "messages.csv" for name in SECTIONS}
        if not all(path.exists() for path in messages.values()):
            return None  # of the one before that, with two replays
        latencies = {name: _under_way_ns(path) for name, path in messages.items()}
    return list(_differences(record, json.loads(file.read_text("utf-8")), latencies))


def _under_way_ns(path: Path, begin_tai_ns: float = -inf, end_tai_ns: float = inf) -> list[int]:
    with path.open(newline="") as file:
        return [
            int(row["received_minus_scheduled_ns"]) - int(row["lateness_ns"])
            for row in csv.DictReader(file)
            if begin_tai_ns <= int(row.get("scheduled_tai_ns") or 0) < end_tai_ns
        ]


def _differences(record: Record, found: dict[str, Any], latencies: dict[str, list[int]]) -> Iterator[str]:
    without, delayed, again = (median(latencies[name]) for name in SECTIONS)
    n = min(len(each) for each in latencies.values())
    measured = round(delayed - (without + again) / 2)
    u = expanded(found["uncertainty"]["parts"])
    for name, said, worked_out in (
        ("the delay found", found["measured_ns"], measured),
        ("value", record["value"], measured - found["applied_ns"]),
        ("n", record["n"], n),
        ("limit", record["limit"]["upper"], u),
        ("lower limit", record["limit"]["lower"], -u),
    ):
        if said != worked_out:
            yield f"{name} is {said}, the messages say {worked_out}"
    fits = abs(measured - found["applied_ns"]) <= u
    outcome = "fail" if not fits else "pass" if u < found["applied_ns"] else "inconclusive"
    if "reason" in found and (found["outcome"], not found["reason"]) != (
        record["outcome"],
        outcome == "pass",
    ):
        yield f"known_delay.json says {found['outcome']} with the reason {found['reason']!r}"
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, an error of {measured - found['applied_ns']} with U = {u:g}"
