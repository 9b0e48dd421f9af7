# SPDX-License-Identifier: Apache-2.0
"""The known-delay check, worked out again from every message of its three sections (docs/latency.md)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.arithmetic import expanded
from reports.rejudge.each import judge_each

QUANTITY = "known_delay_error"
SECTIONS = ("without", "with", "again")
KEYS = {"schema", "producers", "applied_ns", "measured_ns", "n", "uncertainty", "outcome", "reason"}
SET_DELAY_NS = 1_000_000
"""Tolerance of a delay that no capture has seen."""
FAR_NS = 100_000_000_000
"""Sections lie within the time of their replay, which takes less than this."""


def known_delay_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out the delays that were found; see `judge_each`.

    What was applied is taken from `known_delay.json`; and of the versions before sections, its parts of U.
    """
    return judge_each(run, records, QUANTITY, "known_delay.json", _judge)


def _judge(record: Record, file: Path) -> list[str] | None:
    folder = file.with_suffix("")
    if (folder / "sections.json").exists():
        said = json.loads((folder / "sections.json").read_text("utf-8"))["scheduled_tai_ns"]
        latencies = {name: _under_way_ns(folder / "messages.csv", *said[name]) for name in SECTIONS}
        found = json.loads(file.read_text("utf-8"))
        replay = read_result(folder / "recv.ndjson")
        if replay is None:
            return ["its replay has no answer, recv.ndjson"]
        missing = KEYS - found.keys()
        return [
            *([f"known_delay.json has no {', '.join(sorted(missing))}"] if missing else []),
            *_misplaced(folder / "messages.csv", said),
            *_differences(record, found, latencies),
            *_parts_that_differ(found, latencies, replay),
        ]
    # Of the version before: a replay for each section.
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


def _misplaced(path: Path, said: dict[str, list[int]]) -> Iterator[str]:
    """Say which sections are not where the replay was, or not one behind the other."""
    with path.open(newline="") as file:
        scheduled = [int(row["scheduled_tai_ns"]) for row in csv.DictReader(file)]
    ends = [moment for name in SECTIONS for moment in said[name]]
    if ends != sorted(ends):
        yield "its sections are not one behind the other"
    if ends[0] < min(scheduled) - FAR_NS or ends[-1] > max(scheduled) + FAR_NS:
        yield "its sections are not of its replay"


def _parts_that_differ(
    found: dict[str, Any], latencies: dict[str, list[int]], replay: Mapping[str, Any]
) -> Iterator[str]:
    """Say which parts of U, and which producers, the messages and the replay's answer contradict."""
    without, again = (median(latencies[name]) for name in ("without", "again"))
    known = [clock for clock in replay["clocks"] if clock["bound_ns"] is not None]
    wanted: dict[str, int] = {
        "median_without": max(_half_interval_ns(latencies[name]) for name in ("without", "again")),
        "median_with": _half_interval_ns(latencies["with"]),
        "target_drift": round(abs(without - again) / 2),
        "clock_wander": 2 * max((c["bound_ns"] + (c["residual_ns"] or 0) for c in known), default=0),
    }
    said = {part["name"]: part["value"] for part in found["uncertainty"]["parts"]}
    if "set_delay" in said:
        wanted["set_delay"] = SET_DELAY_NS
    if said != wanted or len(found["uncertainty"]["parts"]) != len(wanted):
        yield f"its parts of U are {said}, the messages and clocks come to {wanted}"
    if any(part["kind"] != "bound" for part in found["uncertainty"]["parts"]):
        yield "a part of U is no bound"
    if found["uncertainty"]["expanded"] != sum(wanted.values()):
        yield f"U is {found['uncertainty']['expanded']}, its parts come to {sum(wanted.values())}"
    producers = sorted({stream["producer"] for stream in replay["streams"]})
    if found["producers"] != producers:
        yield f"its producers are {found['producers']}, the replay had {producers}"


def _half_interval_ns(latencies_ns: list[int]) -> int:
    """Return the larger side of the 95 % interval of a median, by ranks: at most 2.5 % lie beyond each."""
    ordered, n = sorted(latencies_ns), len(latencies_ns)
    below = 0  # the lower rank: P(fewer than so many of n fair coins) is 1/40 at most
    ways = passed = 1
    while 40 * passed <= 2**n:
        below += 1
        ways = ways * (n - below + 1) // below
        passed += ways
    middle = median(ordered)
    return round(max(middle - ordered[below - 1], ordered[n - below] - middle))


def _differences(record: Record, found: dict[str, Any], latencies: dict[str, list[int]]) -> Iterator[str]:
    without, delayed, again = (median(latencies[name]) for name in SECTIONS)
    n = min(len(each) for each in latencies.values())
    measured = round(delayed - (without + again) / 2)
    u = expanded(found["uncertainty"]["parts"])
    for name, said, worked_out in (
        ("the delay found", found["measured_ns"], measured),
        ("value", record["value"], measured - found["applied_ns"]),
        ("n", record["n"], n),
        ("n of known_delay.json", found.get("n", n), n),
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
