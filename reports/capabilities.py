# SPDX-License-Identifier: Apache-2.0
"""Every capability: each folder of `reports/` with a `capability.py`, in the order of their positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from reports.capability import Capability

Row = TypeVar("Row")
HERE = Path(__file__).parent


def _found() -> dict[str, Capability]:
    names = sorted(file.parent.name for file in HERE.glob("*/capability.py"))
    every = {name: import_module(f"reports.{name}.capability").CAPABILITY for name in names}
    return dict(sorted(every.items(), key=lambda item: item[1].position))


CAPABILITIES: Mapping[str, Capability] = _found()
"""Each by the name of its folder."""


def rows_of_all(rows: Callable[[Capability], Mapping[str, Row]]) -> dict[str, Row]:
    """Return the rows of all capabilities, in their order.

    Raises:
        ValueError: Two capabilities have a row of one name.
    """
    every: dict[str, Row] = {}
    for name, capability in CAPABILITIES.items():
        own = rows(capability)
        if double := sorted(own.keys() & every.keys()):
            raise ValueError(f"reports/{name}/capability.py: {double[0]}: another capability has it already")
        every.update(own)
    return every
