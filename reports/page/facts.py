# SPDX-License-Identifier: Apache-2.0
"""Facts of targets, host and tools, arranged for the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

MANY_FACTS = 6
"""A table of more facts than this gets a heading of its own."""
_VOLATILE = frozenset({"memory_bytes", "interrupts"})
"""Facts that differ after every start of the same machine: memory is what the kernel has left of it."""
_VOLATILE_SETTINGS = "irq_"
"""Settings by the number of an interrupt, which the kernel gives out anew."""


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Facts that belong together, as (key, text); long lists are folded away."""

    title: str
    rows: tuple[tuple[str, str], ...]
    folded: bool = False


def lasting_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a machine that a restart does not change by itself."""
    kept = {key: value for key, value in facts.items() if key not in _VOLATILE}
    settings = kept.get("settings")
    if isinstance(settings, dict):
        named = cast("dict[str, Any]", settings)
        kept["settings"] = {
            key: value for key, value in named.items() if not key.startswith(_VOLATILE_SETTINGS)
        }
    return kept


def fact_groups(title: str, facts: dict[str, Any]) -> list[FactGroup]:
    """Return facts in groups: plain ones together, one for each large table, a folded one for each list.

    Args:
        title: Whose facts they are.
        facts: As in the manifest; tables and lists of tables may be nested.
    """
    plain: list[tuple[str, str]] = []
    groups: list[FactGroup] = []
    for key, value in facts.items():
        if tables := list_of_tables(value):
            rows = [row for item in tables for row in flatten(item, f"{_label(item)}: ")]
            groups.append(FactGroup(f"{title}: {key}", tuple(rows), folded=True))
        elif isinstance(value, dict) and len(flatten(cast("dict[str, Any]", value))) > MANY_FACTS:
            groups += fact_groups(f"{title}: {key}", cast("dict[str, Any]", value))
        else:
            plain += flatten({key: value})
    return [*([FactGroup(title, tuple(plain))] if plain else []), *groups]


def list_of_tables(value: object) -> list[dict[str, Any]]:
    """Return a list whose items are all tables; empty where it is another, or no list."""
    items = cast("list[object]", value) if isinstance(value, list) else []
    return cast("list[dict[str, Any]]", items) if all(isinstance(item, dict) for item in items) else []


def _label(item: dict[str, Any]) -> str:
    """Return what tells an item of a list from the others: its number or its name."""
    return str(item.get("irq", item.get("name", "")))


def flatten(facts: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested facts as (dotted key, text), in their order."""
    rows: list[tuple[str, str]] = []
    for key, value in facts.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            rows += flatten(cast("dict[str, Any]", value), f"{name}.")
        elif isinstance(value, (list, tuple)):
            rows.append((name, ", ".join(str(item) for item in cast("list[object]", value)) or "none"))
        else:
            rows.append((name, _fact(value)))
    return rows


def _fact(value: object) -> str:
    if value is None or value == "":
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
