# SPDX-License-Identifier: Apache-2.0
"""What the manifest says was asked, held against records, requirement files and `output.xml`."""

from __future__ import annotations

import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record, checks, of_suites
from reports.rejudge.kept import KEPT

MESSAGE_MAX = 400


def selected_discrepancies(
    run: Path, manifest: Mapping[str, Any], records: Sequence[Record]
) -> Iterator[str]:
    """Say what the manifest's list of asked requirements leaves out or invents; older runs have none."""
    if "asked" not in manifest:
        return
    known = dict(_ids(run))
    selected: dict[str, set[str]] = {}
    by_stack: dict[tuple[str, str], set[str | None]] = {}
    for suite in manifest["asked"]:
        where = f"run.json: asked: {suite['suite']} of {suite['target'] or 'the target'}"
        files = suite.get("asks", [])
        ids = {name for file in files for name in file["requirements"]}
        selected.setdefault(suite["target"], set()).update(ids)
        for name in ids:
            by_stack.setdefault((suite["target"], name), set()).add(suite.get("stack"))
        for file in files:
            unknown = sorted(set(file["requirements"]) - known.get(file["file"], set()))
            yield from (f"{where}: {name}: {file['file']} does not have it" for name in unknown)
        for test in suite["skipped"]:
            yield from (
                f"{where}: {name} is skipped by {test['test']!r}, and is not asked"
                for name in test["requirements"]
                if name not in ids
            )
    for target, name in {
        (r["subject"]["target"], r["requirement"]): None for r in records if _is_selected(r)
    }:
        if name not in selected.get(target, set()) | selected.get("", set()):
            yield f"run.json: asked: {name} was measured of {target}, and no suite asks it"
    for record in filter(_is_selected, records):
        subject, name = record["subject"], record["requirement"]
        stacks = by_stack.get((subject["target"], name), {None})
        if not {None, subject.get("stack")} & stacks:
            yield (
                f"run.json: asked: {name} was measured of {subject['target']} with stack"
                f" {subject.get('stack')}, and no suite asks it with that"
            )
    yield from _skipped_discrepancies(run, manifest)


def _is_selected(record: Record) -> bool:
    return record["quantity"] not in checks() | of_suites()


def _ids(run: Path) -> Iterator[tuple[str, set[str]]]:
    for file in (run / KEPT).glob("*.toml"):
        try:
            items = tomllib.loads(file.read_text(encoding="utf-8-sig"))["requirement"]
            yield file.name, {str(item["id"]) for item in items}
        except (KeyError, TypeError, ValueError, RecursionError):
            continue  # named with the requirements


def _skipped_discrepancies(run: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Hold the tests that were skipped, and why, against Robot Framework's own file."""
    output = run / "output.xml"
    if manifest["end_utc"] is None or not output.exists():
        return
    found: list[tuple[str, str]] = []
    for _event, item in ElementTree.iterparse(output):  # noqa: S314 - written by our own Robot Framework
        if item.tag != "test":
            continue
        status = item.find("status")
        if status is not None and status.get("status") == "SKIP":
            told = " ".join((status.text or "").split()).removeprefix("SKIPPED: ")[:MESSAGE_MAX]
            found.append((item.get("name", ""), told))
        item.clear()
    said = [
        (test["test"], test["reason"].removeprefix("SKIPPED: "))
        for suite in manifest["asked"]
        for test in suite["skipped"]
    ]
    if sorted(said) != sorted(found):
        yield "run.json: asked: its skipped tests are not those of output.xml"
