# SPDX-License-Identifier: Apache-2.0
"""Each direction's round trips, held against what the tool that made them counted (docs/software-latency.md).

A series says each trip, the tool's answer how many there were and how they are distributed: trips that are
cut out of one, or changed in it, are missed in the other.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reports.rejudge.answers import read_result
from reports.rejudge.summary import summary_discrepancies

WAYS = ("round_trip", "residence", "round_trip_without_residence")

Json = Mapping[str, Any]


def series_discrepancies(file: Path) -> Iterator[str]:
    """Say where series and answers of a folder of round trips differ.

    Args:
        file: `round_trips.json`, which names both of each direction.
    """
    facts: Json = json.loads(file.read_text("utf-8"))
    names: Counter[str] = Counter()
    for exchange in facts["exchanges"]:
        names.update((exchange["file"], exchange["series"]))
        where = f"{exchange['asker']} to {exchange['reflector']}"
        answer = read_result(file.parent / exchange["file"])
        if answer is None and exchange.get("silent"):
            continue  # its tool may have ended without one
        if answer is None:
            yield f"{where}: {exchange['file']} has no result"
            continue
        yield from (f"{where}: {each}" for each in _differences(answer, file.parent / exchange["series"]))
    yield from (f"{name} is of {count} directions" for name, count in names.items() if count > 1)
    yield from _delay_discrepancies(facts, file.parent)


def _delay_discrepancies(facts: Json, folder: Path) -> Iterator[str]:
    """Hold the delays that were put on devices against what their reflectors say that they added."""
    put = {each["device"]: (each["receive_us"], each["send_us"]) for each in facts["injected"]}
    for device in (each["name"] for each in facts["devices"]):
        path = folder / f"echo-{device}.ndjson"
        answer = read_result(path) if path.exists() else None
        if answer is None or "delay_receive_us" not in answer:
            continue
        said = (answer["delay_receive_us"], answer["delay_send_us"])
        if said != put.get(device, (0, 0)):
            yield f"{path.name}: it delays by {said} us, put on {device} was {put.get(device, (0, 0))}"


def _differences(answer: Json, series: Path) -> Iterator[str]:
    if answer["received"] + answer["lost"] + answer["invalid"] != answer["sent"]:
        yield (
            f"{answer['sent']} sent, {answer['received']} received, {answer['lost']} lost,"
            f" {answer['invalid']} invalid"
        )
    with series.open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["round_trip_ns"]]
    if len(rows) != answer["received"]:
        yield f"{series.name} has {len(rows)} replies, the tool counted {answer['received']}"
        return
    whole = [int(row["round_trip_ns"]) for row in rows]
    residence = [int(row["residence_ns"]) for row in rows]
    rest = [one - other for one, other in zip(whole, residence, strict=True)]
    for name, values in zip(WAYS, (whole, residence, rest), strict=True):
        yield from (f"{name}: {each}" for each in summary_discrepancies(answer[name]))
        yield from (f"{name}: {each}" for each in _against(answer[name], values, series.name))


def _against(summary: Json, values: list[int], name: str) -> Iterator[str]:
    """Hold the values of a series against extremes and buckets of a distribution."""
    found = (len(values), min(values, default=None), max(values, default=None))
    said = (summary["n"], summary["min_ns"], summary["max_ns"])
    if found != said:
        yield f"n, least and largest are {found} in {name}, {said} in the answer"
        return
    if summary["overflow"]:
        return
    buckets = sorted((low, width, count) for low, width, count in summary["buckets"])
    place, ordered = 0, sorted(values)
    for low, width, count in buckets:
        inside = ordered[place : place + count]
        if len(inside) < count or inside[0] < low or inside[-1] >= low + width:
            yield f"the bucket {low} + {width} holds {count}, {name} has others"
            return
        place += count
