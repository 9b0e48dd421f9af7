# SPDX-License-Identifier: Apache-2.0
"""The known-delay check, worked out again from every message of its three replays (docs/latency.md)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from reports.rejudge.arithmetic import Record, expanded
from reports.rejudge.each import judge_each

QUANTITY = "known_delay_error"
REPLAYS = ("without", "with", "again")


def known_delay_objections(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out the delays that were found; see `judge_each`.

    What was applied, and U, are taken from `known_delay.json`.
    """
    return judge_each(run, records, QUANTITY, "known_delay.json", _judge)


def _judge(record: Record, file: Path) -> list[str] | None:
    messages = {name: file.with_suffix("") / name / "messages.csv" for name in REPLAYS}
    if not all(path.exists() for path in messages.values()):
        return None  # of the version before, with two replays
    latencies = {name: _under_way_ns(path) for name, path in messages.items()}
    return list(_differences(record, json.loads(file.read_text()), latencies))


def _under_way_ns(path: Path) -> list[int]:
    with path.open(newline="") as file:
        return [
            int(row["received_minus_scheduled_ns"]) - int(row["lateness_ns"]) for row in csv.DictReader(file)
        ]


def _differences(record: Record, found: dict[str, Any], latencies: dict[str, list[int]]) -> Iterator[str]:
    without, delayed, again = (median(latencies[name]) for name in REPLAYS)
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
    if record["outcome"] != ("pass" if fits else "fail"):
        yield f"{record['outcome']}, an error of {measured - found['applied_ns']} with U = {u:g}"
