# SPDX-License-Identifier: Apache-2.0
"""Whether a target's facts before and after are those of what `apply` has found and set.

Where they are not, something else on the target has set it meanwhile: a daemon that puts its own value back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

NOT_AMONG_FACTS = ("kernel", "tool", "adapter")
"""Kinds of settings that are checked, and are not among the settings of facts."""
NEVER_AT_REST = ("service", "irq_cpu", "thread")
"""Kinds that may move: services that start by themselves, interrupts that are balanced."""
OF_A_CARD = ("offload", "coalesce", "nic")
"""Kinds of which a driver may move one when another is set."""
OF_THE_MACHINE = ("hostname", "kernel", "machine", "cpu", "hypervisor", "versions")
OF_EACH_CARD = ("mac", "driver", "offloads")
"""Facts that no setting changes; the last only those of a card of which nothing is set."""
GOVERNOR = "governor"
"""A fact of the processor that is a setting."""
NAMESPACE = "shared_with_host"
"""A fact of a target that is a namespace of a host, whose other settings are not its own."""

Item = Mapping[str, Any]
Facts = Mapping[str, Any]


def set_by_others(items: Sequence[Item], before: Facts, after: Facts) -> Iterator[str]:
    """Say what something else has set between the facts before and those after.

    Args:
        items: Every item of `apply`, in its order.
        before: Facts of the untouched target.
        after: Facts after `apply`.
    """
    yield from _settings(items, before, after)
    for key in OF_THE_MACHINE:
        yield from _difference(key, before.get(key), after.get(key))
    cards = {card["name"]: card for card in before.get("nics", ())}
    for card in [each for each in after.get("nics", ()) if each["name"] in cards]:
        is_set = any(item["changed"] and f" {card['name']}/" in item["item"] for item in items)
        for key in OF_EACH_CARD[:-1] if is_set else OF_EACH_CARD:
            yield from _difference(f"{key} of {card['name']}", cards[card["name"]].get(key), card.get(key))


def _difference(name: str, was: Any, then: Any) -> Iterator[str]:
    if isinstance(was, dict) and isinstance(then, dict):
        one, other = cast("Facts", was), cast("Facts", then)
        for key in sorted({*one, *other} - {GOVERNOR}):
            yield from _difference(f"{name} {key}", one.get(key), other.get(key))
    elif was != then:
        yield f"{name}: was {was}, and then {then}"


def _settings(items: Sequence[Item], before: Facts, after: Facts) -> Iterator[str]:
    was, then = before.get("settings", {}), after.get("settings", {})
    for number, item in enumerate(items):
        name, kind, found = item["item"], _kind(item), item.get("found")
        if item["status"] != "ok" or kind in (*NOT_AMONG_FACTS, *NEVER_AT_REST):
            continue
        if name not in was or name not in then:
            yield f"{name}: its facts do not have it"
        elif was[name] != found and not _is_moved(kind, items[:number]):
            yield f"{name}: was {was[name]}, and {found} when it was looked at to be set"
        elif not _holds(item, then[name]) and not _is_moved(kind, items[number + 1 :]):
            yield f"{name}: wanted {item.get('wanted')}, and is {then[name]} after it was as wanted"
    if NAMESPACE in before:
        return
    looked_at = {item["item"]: item["status"] for item in items}
    for name in sorted({*was, *then}):
        comes_or_goes = (name in was) != (name in then) and looked_at.get(name) != "ok"
        if name.split(" ")[0] not in NEVER_AT_REST and (comes_or_goes or name not in looked_at):
            yield f"{name}: came or went meanwhile"


def _kind(item: Item) -> str:
    return str(item["item"]).split(" ")[0]


def _is_moved(kind: str, others: Sequence[Item]) -> bool:
    return kind in OF_A_CARD and any(each["changed"] and _kind(each) in OF_A_CARD for each in others)


def _holds(item: Item, value: str) -> bool:
    """Say whether a setting that was as wanted is so still; one that was not touched may not move at all."""
    if not item["changed"]:
        return bool(value == item.get("found"))
    return _is_as_wanted(_kind(item), str(item.get("wanted")), value)


def _is_as_wanted(kind: str, wanted: str, value: str) -> bool:
    try:
        if kind == "idle":
            return value == "off" or int(value) <= int(wanted)
        if bound := re.fullmatch(r"([<>])=(-?\d{1,19})", wanted):
            return int(value) >= int(bound[2]) if bound[1] == ">" else int(value) <= int(bound[2])
    except ValueError:
        return False
    return value.casefold() == wanted.casefold()
