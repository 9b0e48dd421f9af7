# SPDX-License-Identifier: Apache-2.0
"""The manifest's facts of the targets, held against what provisioning has kept; the order of its attempts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

MACHINE_FACTS = {"hostname", "kernel", "os"}
"""Facts of a machine have one of these."""
KEPT = ("facts-after.json", "facts-untouched.json")
"""Of the folder of a target's provisioning: the first that is there has what the target said."""
FAILED = "failed"
"""Folder in it of a provisioning that failed, after which a target has no facts yet."""


def read_back(manifest: Mapping[str, Any]) -> set[str]:
    """Return the targets whose machines have said what they are."""
    targets: Mapping[str, object] = manifest["target"]
    return {
        name
        for name, facts in targets.items()
        if isinstance(facts, dict) and MACHINE_FACTS & {*cast("dict[str, object]", facts)}
    }


def fact_discrepancies(run: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say which facts of a target are not those that it said, and where attempts are out of order."""
    for target, facts in manifest["target"].items():
        folder = run / "evidence" / "provisioning" / target
        kept = next((folder / name for name in KEPT if (folder / name).exists()), None)
        if kept is None:
            if (folder / FAILED).exists() and target in read_back(manifest):
                yield f"run.json: target.{target} has facts, and its provisioning failed"
            continue
        read = json.loads(kept.read_text("utf-8"))
        read.pop("type", None)
        said, found = dict(leaves(facts)), dict(leaves(read))
        for name in [name for name in {**said, **found} if said.get(name) != found.get(name)]:
            yield (
                f"run.json: target.{target}.{name} is {said.get(name)!r}, {kept.name} has {found.get(name)!r}"
            )
    yield from _attempt_discrepancies(manifest["attempts"])


def _attempt_discrepancies(attempts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    numbers: dict[str, int] = {}
    for attempt in attempts:
        numbers[attempt["suite"]] = numbers.get(attempt["suite"], 0) + 1
        if attempt["number"] != numbers[attempt["suite"]]:
            yield (
                f"run.json: attempt {attempt['number']} of {attempt['suite']} is number"
                f" {numbers[attempt['suite']]} there"
            )


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what tables and lists of facts hold at last, each with its dotted name."""
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        items = [(str(number), item) for number, item in enumerate(cast("list[Any]", value))]
    else:
        yield name, value
        return
    for key, item in items:
        yield from leaves(item, f"{name}.{key}" if name else key)
