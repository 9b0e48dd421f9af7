# SPDX-License-Identifier: Apache-2.0
"""Records held against the requirement files that the run kept."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record, kinds, of_suites
from reports.rejudge.kept import KEPT
from reports.rejudge.masks import QUANTITIES as MASK_QUANTITIES

SCHEMA = re.compile(r"benchwright\.(requirements/2|([a-z_]+_)?requirements/1)")
UPPER = {
    "upper_us": 1000,
    "upper_ns": 1,
    "limit_ns": 1,
    "upper_facts": 1,
    "upper_ppm": 1,
    "upper_ppb": 1,
    "upper_ratio": 1,
    "upper_percent": 1,
}
LOWER = {"lower_producers": 1, "lower_bytes_per_s": 1}
SAMPLES = ("samples", "n_required", "reads_min")
LOST = ("lost", "allowed_lost")
LOST_PERCENT = ("lost_percent", "lost_percent_max")
SUBJECTS = ("stream", "clock", "method")
NO_SUBJECTS = ("id", "quantity", "statistic", "source", "mask")
"""Texts of a requirement that do not say what it is of."""


def requirement_discrepancies(
    run: Path, records: Sequence[Record], manifest: Mapping[str, Any]
) -> Iterator[str]:
    """Say which records were judged by something else than their requirement, and which files are damaged.

    Where several files have a requirement of one id, it is that of the files that the target's suites ask by.
    """
    asked: dict[str, list[Mapping[str, Any]]] = {}
    file_of: dict[int, str] = {}
    files_of_target: dict[str, set[str]] = {}
    for suite in manifest.get("asked") or ():
        files = {each["file"] for each in suite.get("asks") or ()}
        files_of_target.setdefault(suite["target"], set()).update(files)
    for file in sorted((run / KEPT).glob("*.toml")):
        try:
            document = tomllib.loads(file.read_text(encoding="utf-8-sig"))
            schema = document.get("requirements", {}).get("schema")
            if schema is not None and not SCHEMA.fullmatch(str(schema)):
                yield f"{KEPT / file.name}: schema is {schema!r}"
            for item in document["requirement"]:
                asked.setdefault(str(item["id"]), []).append(item)
                file_of[id(item)] = file.name
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            yield f"{KEPT / file.name}: {type(error).__name__}: {error}"
    for record in records if asked else ():
        if record["quantity"] in of_suites():
            continue
        items = asked.get(record["requirement"], [])
        own = files_of_target.get(record["subject"]["target"], set())
        items = [item for item in items if file_of[id(item)] in own] or items
        told = [list(_differences(item, record)) for item in items if _is_of(item, record)]
        if not items:
            yield f"{record['requirement']}: no requirements file of the run has it"
        elif not told and not any(_stands_beside(item, record) for item in items):
            yield f"{record['requirement']}: asks for something else than {_what(record)}"
        elif told and all(told):
            yield from (f"{record['requirement']}: {difference}" for difference in told[0])
    for name, item in ((name, item) for name, items in asked.items() for item in items):
        known = kinds().get(str(item.get("quantity")))
        if "quantity" in item and item.get("statistic") not in (known.statistics if known else ()):
            why = "" if known else ": no again.py of a capability knows this quantity"
            yield f"{file_of[id(item)]}: {name}: there is no {_what(item)}{why}"
    judged = {record["requirement"] for record in records}
    for name in asked:
        if name not in judged:
            continue
        found = {_what(record) for record in records if record["requirement"] == name}
        for item in asked[name]:
            wanted = _what(item)
            if wanted not in found and len(asked[name]) == 1:
                yield f"{name}: asks for {wanted}, its records are of {', '.join(sorted(found))}"


def _what(record: Record) -> str:
    """Name what a record or a requirement is of."""
    return f"{record.get('quantity')} {record.get('statistic')}"


def _is_of(item: Mapping[str, Any], record: Record) -> bool:
    return item.get("quantity") == record["quantity"] and item.get("statistic") in (record["statistic"], "")


def _stands_beside(item: Mapping[str, Any], record: Record) -> bool:
    """Say whether a record is of the lock time or the mask that a requirement asks for besides."""
    is_lock = "lock_within_s" in item and record["quantity"] == "lock_time"
    return is_lock or (bool(item.get("mask")) and record["quantity"] in MASK_QUANTITIES)


def _differences(item: Mapping[str, Any], record: Record) -> Iterator[str]:
    for side, factors in (("upper", UPPER), ("lower", LOWER)):
        for name, factor in factors.items():
            if name in item and record["limit"][side] != item[name] * factor:
                yield f"judged against {record['limit'][side]}, {name} is {item[name]}"
    if "source" in item and record["limit"]["source"] != item["source"]:
        yield f"the source of its limit is {record['limit']['source']!r}"
    for name in LOST:
        if isinstance(item.get(name), int) and record["allowed_lost"] != item[name]:
            yield f"judged with {record['allowed_lost']} lost allowed, {name} is {item[name]}"
    for name in SAMPLES:
        if name in item and record["n_required"] < item[name]:
            yield f"judged from {record['n_required']} samples, {name} is {item[name]}"
    measured = {each["axis"]: each["value"] for each in record["subject"].get("axes") or ()}
    measured |= {name: record["subject"].get(name) for name in SUBJECTS}
    others = [name for name in item if isinstance(item[name], str) and name not in (*NO_SUBJECTS, *SUBJECTS)]
    for name in (*SUBJECTS, *others):
        if item.get(name) and measured.get(name) != str(item[name]):
            yield f"measured of {name} {measured.get(name)}, the requirement is on {item[name]}"
