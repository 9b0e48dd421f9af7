# SPDX-License-Identifier: Apache-2.0
"""What provisioning leaves different, counted again in the facts of a target: docs/provisioning.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from reports.rejudge.again import Record
from reports.rejudge.answers import read_lines
from reports.rejudge.each import judge_each
from reports.rejudge.rule import outcome_of, part_discrepancies, value_discrepancies

QUANTITY = "provisioning_difference"
UNIT = "facts"
UNTOUCHED = "facts-untouched.json"
PROVISIONED = "facts-provisioned-1.json"
REPETITIONS = {
    "twice": "facts-provisioned-again-{}.json",
    "restore": "facts-restored-{}.json",
    "power-cut": "power-cut-{}-facts-found.json",
    "restart": "restart-{}-facts-found.json",
}
"""Method → the file that each of its repetitions has."""
CHANGED_BY_A_START = ("memory_bytes", "interrupts")
SETTINGS_OF_INTERRUPTS = "irq_"
SAYS = "the facts say"


def provisioning_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Count what differs after each repetition, and judge the largest number; see `judge_each`."""
    return judge_each(run, records, QUANTITY, "facts-*.json", _judge)


def _judge(record: Record, file: Path) -> list[str] | None:
    method, folder = record["subject"]["method"], file.parent
    if method not in REPETITIONS:
        return None
    told = list(_differences(record, method, folder))
    if folder.name != record["subject"]["target"]:
        told.append(f"target is {record['subject']['target']}, its facts are of {folder.name}")
    return [f"{method}: {each}" for each in told]


def _differences(record: Record, method: str, folder: Path) -> Iterator[str]:
    names = {Path(each["path"]).name for each in record["evidence"]}
    numbers, there = _numbers(method, names), _numbers(method, {path.name for path in folder.iterdir()})
    if numbers != there:
        yield f"its evidence has repetitions {numbers}, its folder {there}"
    counts = [_count(method, folder, number) for number in numbers]
    value = max(counts, default=None)
    yield from value_discrepancies(record, value, len(counts), SAYS, UNIT)
    yield from part_discrepancies(record, {}, SAYS)
    wanted = outcome_of(record, value, len(counts))
    if record["outcome"] != wanted:
        yield f"{record['outcome']}, its repetitions come to {wanted}"
    if record["outcome"] == "pass" and method in ("twice", "restore"):
        for number in numbers:
            settings = folder / f"apply-{number}.ndjson"
            if settings.exists() and not _changed(settings):
                yield f"pass, though repetition {number} found nothing to be set"


def _numbers(method: str, names: set[str]) -> list[int]:
    """Return the repetitions that have a file."""
    pattern = re.compile(re.escape(REPETITIONS[method]).replace(r"\{\}", r"(\d{1,9})"))
    return sorted(int(found[1]) for name in names if (found := pattern.fullmatch(name)))


def _count(method: str, folder: Path, number: int) -> int:
    """Return how many facts and settings differ after one repetition."""
    found = (folder / REPETITIONS[method].format(number)).read_text("utf-8")
    if method == "twice":
        first = (folder / f"facts-provisioned-{number}.json").read_text("utf-8")
        return _differing(first, found) + _changed(folder / f"apply-again-{number}.ndjson")
    untouched = (folder / UNTOUCHED).read_text("utf-8")
    if method == "restore":
        return _differing(untouched, found)
    count = _differing(_lasting(untouched), _lasting(found))
    if (folder / PROVISIONED).exists():
        again = (folder / f"{method}-{number}-facts-provisioned.json").read_text("utf-8")
        count += _differing(_lasting((folder / PROVISIONED).read_text("utf-8")), _lasting(again))
    return count


def _changed(settings: Path) -> int:
    """Return how many settings `apply` has changed, by its own account.

    Raises:
        OSError: There is no such account.
    """
    settings.stat()
    return sum(bool(item["changed"]) for item in read_lines(settings, "item"))


def _differing(expected: str, found: str) -> int:
    """Return how many facts differ; where texts say the same in other bytes, these are one difference."""
    if expected == found:
        return 0
    before, after = (dict(_facts(json.loads(text))) for text in (expected, found))
    return sum(before.get(name) != after.get(name) for name in {*before, *after}) or 1


def _facts(value: object, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Give each fact that has no further ones in it, with its place."""
    inner: list[tuple[str, object]] = []
    if isinstance(value, dict):
        inner = list(cast("dict[str, object]", value).items())
    elif isinstance(value, list):
        inner = [(str(number), each) for number, each in enumerate(cast("list[object]", value))]
    if not inner:
        yield place, json.dumps(value)
    for name, each in inner:
        yield from _facts(each, (*place, name))


def _lasting(text: str) -> str:
    """Return facts without those that a start changes by itself: free memory, numbers of interrupts."""
    facts: dict[str, Any] = json.loads(text)
    kept = {name: value for name, value in facts.items() if name not in CHANGED_BY_A_START}
    if isinstance(kept.get("settings"), dict):
        kept["settings"] = {
            name: value
            for name, value in kept["settings"].items()
            if not name.startswith(SETTINGS_OF_INTERRUPTS)
        }
    return json.dumps(kept)
