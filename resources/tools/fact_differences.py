# SPDX-License-Identifier: Apache-2.0
"""Which facts of a target differ between two readings."""

from __future__ import annotations

import json
from typing import Any, cast

from reports.page.facts import lasting_facts

BYTES = "(the bytes alone)"
"""Named where two texts say the same in different bytes."""


def differing_facts(expected: str, found: str) -> tuple[str, ...]:
    """Return the names of the facts that differ, of nested ones with dots; empty: equal byte for byte.

    Args:
        expected: Facts as a target wrote them, one JSON object.
        found: The same, of another time.
    """
    if expected == found:
        return ()
    before, after = _leaves(json.loads(expected)), _leaves(json.loads(found))
    names = dict.fromkeys([*before, *after])
    return tuple(name for name in names if before.get(name) != after.get(name)) or (BYTES,)


def differing_lasting_facts(expected: str, found: str) -> tuple[str, ...]:
    """Return the names of the facts that differ although a restart of the machine leaves them as they are.

    Args:
        expected: Facts as a target wrote them before it restarted, one JSON object.
        found: The same, afterwards.
    """
    before, after = (json.dumps(lasting_facts(json.loads(text))) for text in (expected, found))
    return differing_facts(before, after)


def _leaves(value: Any, name: str = "") -> dict[str, str]:
    """Return what is nested as (name with dots, JSON)."""
    if isinstance(value, dict):
        items = list(cast("dict[str, Any]", value).items())
    elif isinstance(value, list):
        items = [(str(number), item) for number, item in enumerate(cast("list[Any]", value))]
    else:
        return {name: json.dumps(value)}
    found: dict[str, str] = {}
    for key, item in items:
        found |= _leaves(item, f"{name}.{key}" if name else key)
    return found or {name: json.dumps(value)}
