# SPDX-License-Identifier: Apache-2.0
"""What `apply` says of each setting, held against the facts before and after: docs/provisioning.md."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_lines
from reports.rejudge.each import DAMAGE
from reports.rejudge.facts import leaves

ACCOUNT = "*apply*.ndjson"
BEFORE, AFTER = "facts-before.json", "facts-after.json"
KEYS = {"item", "status", "ok", "wanted", "found", "changed", "why", "note"}
ABSENT = "not applicable"
COUNTS = {"ok": "ok", "wrong": "wrong", "not_applicable": ABSENT}
"""Of a summary → status of the items that it counts."""
OF_NO_FACT = ("kernel", "tool", "adapter")
"""Kinds that no facts have among the settings."""
MOVES = ("service", "irq_cpu", "thread")
"""Kinds that others move: services that start by themselves, a balancer of interrupts."""
OF_A_CARD = ("offload", "coalesce", "nic")
"""Kinds of which one that is set may move another."""
FAILED = "failed"
"""Folder of a provisioning that failed: what is amiss there has ended it."""
SHARED = "shared_with_host"
"""Facts of a namespace have it; their host goes its own way."""
SAME = ("hostname", "kernel", "machine", "cpu", "hypervisor", "versions")
"""Facts that no setting changes, but for those of `CHANGES`."""
CHANGES = "cpu.governor"
OF_A_NIC = ("mac", "driver", "offloads")

Item = Mapping[str, Any]
Facts = Mapping[str, Any]


def applied_discrepancies(run: Path, _records: Sequence[Record]) -> tuple[list[str], int]:
    """Say what contradicts the accounts of all provisioning; no record is worked out by it."""
    told: list[str] = []
    for path in sorted((run / "evidence" / "provisioning").rglob(ACCOUNT)):
        try:
            told += [f"{path.relative_to(run)}: {each}" for each in _account(path)]
        except DAMAGE as error:
            told.append(f"{path.relative_to(run)}: {type(error).__name__}: {error}")
    return told, 0


def _account(path: Path) -> Iterator[str]:
    """Hold the items against their summary, and those of an ordinary provisioning against the facts."""
    items, summaries = read_lines(path, "item"), read_lines(path, "summary")
    is_whole = path.name == "apply.ndjson" and path.parent.name != FAILED
    is_whole = is_whole and all((path.parent / name).exists() for name in (BEFORE, AFTER))
    if not summaries:
        if is_whole:
            yield "it has no summary"
        return  # the power went
    wanted = {"verb": "apply", "items": len(items), "changed": sum(item["changed"] for item in items)}
    wanted |= {key: sum(item["status"] == word for item in items) for key, word in COUNTS.items()}
    for key, value in wanted.items():
        if summaries[-1].get(key) != value:
            yield f"{key} of its summary is {summaries[-1].get(key)!r}, its items come to {value!r}"
    for item in items:
        yield from _alone(item)
    if is_whole:
        before, after = (json.loads((path.parent / name).read_text("utf-8")) for name in (BEFORE, AFTER))
        yield from _settings(items, before, after)
        yield from _of_another_machine(items, before, after)


def _alone(item: Item) -> Iterator[str]:
    """Hold an item against itself."""
    name, status = item["item"], item["status"]
    if missing := KEYS - item.keys():
        yield f"{name} has no {', '.join(sorted(missing))}"
    if status not in COUNTS.values():
        yield f"{name}: {status!r} is no status"
    if item.get("ok") is not (status != "wrong") or not isinstance(item["changed"], bool):
        yield f"{name}: {status}, and ok is {item.get('ok')!r}, changed {item['changed']!r}"
    if item["changed"] and status != "ok":
        yield f"{name}: changed, and {status}"
    if status == ABSENT and item["found"] and not item["note"].endswith(f": {item['found']}"):
        yield f"{name}: found is {item['found']!r}, its note says {item['note']!r}"


def _settings(items: Sequence[Item], before: Facts, after: Facts) -> Iterator[str]:
    """Hold what was found and set against what the facts say, before and after."""
    was, then = before.get("settings", {}), after.get("settings", {})
    for number, item in enumerate(items):
        name, found, kind = item["item"], item["found"], _kind(item)
        if item["status"] != "ok":
            continue
        is_met = _is_met(kind, item["wanted"], found, before)
        if is_met == item["changed"] and kind != "adapter":
            yield f"{name}: {'' if is_met else 'not '}as wanted, and changed is {item['changed']}"
        if kind in (*OF_NO_FACT, *MOVES):
            continue
        if name not in was or name not in then:
            yield f"{name}: the facts have no such setting"
            continue
        if found != was[name] and not _moved(kind, items[:number]):
            yield f"{name}: found is {found!r}, {BEFORE} has {was[name]!r}"
        is_set = _is_met(kind, item["wanted"], then[name], after) if item["changed"] else then[name] == found
        if not is_set and not _moved(kind, items[number + 1 :]):
            yield f"{name}: {AFTER} has {then[name]!r}"
    if SHARED in before:
        return  # places of what is shared are one item, and their host's own
    for name in sorted(({*was, *then} - {item["item"] for item in items}) | ({*was} ^ {*then})):
        if name.split(" ")[0] not in MOVES:
            yield f"{name}: not in the facts before, in those after and among the items alike"


def _moved(kind: str, others: Sequence[Item]) -> bool:
    """Say whether others of a card, that were set between, may have moved it."""
    return kind in OF_A_CARD and any(item["changed"] and _kind(item) in OF_A_CARD for item in others)


def _kind(item: Item) -> str:
    return item["item"].split(" ")[0]


def _is_met(kind: str, wanted: str, found: str, facts: Facts) -> bool:
    if kind == "idle":
        return found == "off" or int(found) <= int(wanted)
    if kind == "irq_cpu" and wanted == "last":
        return found == re.split("[-,]", facts["cpu"]["online"])[-1]
    if bound := re.fullmatch(r"([<>])=(-?\d{1,19})", wanted):
        return int(found) >= int(bound[2]) if bound[1] == ">" else int(found) <= int(bound[2])
    return found.casefold() == wanted.casefold()


def _of_another_machine(items: Sequence[Item], before: Facts, after: Facts) -> Iterator[str]:
    """Say which facts differ that nothing has set between."""
    was, then = (
        {name: value for key in SAME for name, value in leaves(facts.get(key), key) if name != CHANGES}
        for facts in (before, after)
    )
    cards = {
        facts_of: {nic["name"]: nic for nic in facts.get("nics", ())}
        for facts_of, facts in ((BEFORE, before), (AFTER, after))
    }
    for name, old in cards[BEFORE].items():
        if (new := cards[AFTER].get(name)) is None:
            continue
        is_set = any(item["changed"] and f" {name}/" in item["item"] for item in items)
        for key in OF_A_NIC[:-1] if is_set else OF_A_NIC:
            was |= leaves(old.get(key), f"{name}.{key}")
            then |= leaves(new.get(key), f"{name}.{key}")
    for name in {**was, **then}:
        if was.get(name) != then.get(name):
            yield f"{name}: {BEFORE} has {was.get(name)!r}, {AFTER} {then.get(name)!r}"
