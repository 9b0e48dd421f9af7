# SPDX-License-Identifier: Apache-2.0
"""What the second judge knows of each capability: `AGAIN` of `reports/CAP/again.py`.

It is written from the documents, and shares nothing with what stands beside it (tests/lint/test_cycles.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]
Judge = Callable[[Path, Sequence[Record]], tuple[list[str], int]]
"""Judges the records of its quantities again: what differs, and how many were worked out."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a record of a quantity may be: docs/requirements.md, docs/reports.md.

    Attributes:
        unit: Of its value.
        statistics: That suites record.
        raw: Files of which a record has to name one; empty: it has no raw data of its own.
        is_check: By it the bench checks itself.
        is_selected: A requirements file states its limit; of a check as a rule the suite.
        is_judged: Its value is worked out again.
    """

    unit: str
    statistics: tuple[str, ...]
    raw: tuple[str, ...]
    is_check: bool = False
    is_selected: bool = True
    is_judged: bool = True


@dataclass(frozen=True)
class Again:
    """One capability as the second judge knows it.

    Attributes:
        quantities: What it records.
        judges: Who works its records out again.
        schemas: What its documents say that they are, by name of the file.
        loose: Those of them which, wherever they lie, a record beside them has to be of.
    """

    quantities: Mapping[str, Kind]
    judges: tuple[Judge, ...] = ()
    schemas: Mapping[str, str] = field(default_factory=dict[str, str])
    loose: tuple[str, ...] = ()


@cache
def every() -> tuple[Again, ...]:
    """Return what each capability has."""
    files = sorted(Path(__file__).parents[1].glob("*/again.py"))
    names = [file.parent.name for file in files if file.parent != Path(__file__).parent]
    return tuple(import_module(f"reports.{name}.again").AGAIN for name in names)


@cache
def kinds() -> Mapping[str, Kind]:
    """Return every quantity by its name.

    Raises:
        ValueError: Two capabilities have one of a name.
    """
    found: dict[str, Kind] = {}
    for again in every():
        if double := sorted(again.quantities.keys() & found.keys()):
            raise ValueError(f"again.py: {double[0]}: two capabilities have this quantity")
        found.update(again.quantities)
    return found


@cache
def checks() -> frozenset[str]:
    """Return the quantities by which the bench checks itself."""
    return frozenset(name for name, kind in kinds().items() if kind.is_check)


@cache
def of_suites() -> frozenset[str]:
    """Return the quantities that a suite asks for by itself: no requirements file has them."""
    return frozenset(name for name, kind in kinds().items() if not kind.is_selected)
