# SPDX-License-Identifier: Apache-2.0
"""The lines of a record, and what is wrong with one of them said by file and line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a record, decoded.

    Raises:
        OSError: The file cannot be read.
        ValueError: A line is none of a record; names file and line.
    """
    try:
        text = path.read_text()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: no record, but {error!r}") from error
    return each_line(path, enumerate(text.splitlines(), 1), lambda line: dict(json.loads(line)))


def each_line(path: Path, lines: Iterable[tuple[int, Item]], make: Callable[[Item], Result]) -> list[Result]:
    """Return what is made of each line.

    Args:
        path: The file, for errors.
        lines: With their numbers.
        make: Whatever it raises of a wrong value is the line's fault.

    Raises:
        ValueError: Names file and line.
    """
    made: list[Result] = []
    for place, line in lines:
        try:
            made.append(make(line))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise ValueError(f"{path}, line {place}: no line of a record: {error!r}") from error
    return made
