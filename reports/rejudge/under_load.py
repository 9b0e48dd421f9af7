# SPDX-License-Identifier: Apache-2.0
"""Load and clock beside what was measured, as a record's axis names them: docs/control-loops.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record

Json = Mapping[str, Any]

LOAD_FILE = "load.json"
WITH = re.compile(r"(.+) with (\S+)")
UNDER = re.compile(r"(.+) under (\S+) load")


def split_beside(text: str) -> tuple[str, str, str]:
    """Return what an axis has before load and clock, and both; empty: there is none."""
    clock = load = ""
    if found := WITH.fullmatch(text):
        text, clock = found.groups()
    if found := UNDER.fullmatch(text):
        text, load = found.groups()
    return text, load, clock


def load_problems(record: Record, facts: Json, folder: Path) -> Iterator[str]:
    """Say where a record, its document and what its load achieved do not go together.

    Args:
        record: Its axis, where it has one, names the load.
        facts: The document, which names it likewise.
        folder: Of both.
    """
    known = facts.get("load")
    for axis in record["subject"].get("axes") or ():
        _, kind, clock = split_beside(axis["value"])
        if clock != facts.get("clock", ""):
            yield f"its axis is {axis['value']}, its evidence of clock {facts.get('clock', 'none')}"
        if kind != (known["kind"] if known else ""):
            yield f"its axis is {axis['value']}, its evidence of load {known or 'none'}"
    conditions = record["conditions"]
    if conditions["load"] != (known["kind"] if known else "idle"):
        yield f"its load is {conditions['load']}, its evidence is of {known or 'none'}"
    numbers: Json = {
        each["name"]: each["value"]
        for each in conditions.get("numbers") or ()
        if each["name"].startswith("load_")
    }
    if not known:
        if numbers:
            yield f"conditions are {numbers}, and there was no load"
        return
    if LOAD_FILE not in {Path(each["path"]).name for each in record["evidence"]}:
        yield f"{LOAD_FILE} is not among its evidence"
    achieved: Json = json.loads((folder / LOAD_FILE).read_text("utf-8"))
    if any(achieved["load"][key] != known[key] for key in ("kind", "node")):
        yield f"{LOAD_FILE} is of {achieved['load']}"
    cpu_s, received = achieved["cpu_s"]["value"], achieved["received_bit_s"]["value"]
    wanted: dict[str, float] = {}
    if cpu_s is not None:
        wanted["load_cpu_ms_s"] = 1000 * cpu_s / achieved["over_s"]
    if known["kind"] == "network" and received is not None:
        wanted["load_received_bit_s"] = received
    if numbers.keys() != wanted.keys() or any(abs(numbers[key] - wanted[key]) > 1 for key in wanted):
        yield f"conditions are {numbers}, {LOAD_FILE} comes to {wanted}"
    counts = [received] if known["kind"] == "network" else [achieved["forks"]["value"], cpu_s]
    if any(each is not None for each in counts) and not any(counts):
        yield f"{LOAD_FILE}: the load did nothing"
