# SPDX-License-Identifier: Apache-2.0
"""What a machine can do, and what of a measurement follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How far a capability goes."""

    OK = "OK"
    LIMITED = "LIMITED"  # works, with the effect that `found` names
    MISSING = "MISSING"


_SEVERITY = {State.OK: 0, State.LIMITED: 1, State.MISSING: 2}


@dataclass(frozen=True)
class Capability:
    """One thing that a machine or a bench can or cannot do.

    Attributes:
        key: Short name, unique in a list; measurements refer to it.
        state: How far it goes.
        found: What was seen, in words.
        remedy: How to fix it; empty where nothing has to be done.
        bad_input: It is missing because a file that was named is wrong.
    """

    key: str
    state: State
    found: str
    remedy: str = ""
    bad_input: bool = False


@dataclass(frozen=True)
class Measurement:
    """A kind of measurement and the keys of the capabilities without which it cannot be made.

    Attributes:
        name: What is measured, and where.
        needs: It is missing where one of these is missing, limited where one is limited.
        helps: It is limited at most where one of these is missing; their limits do not matter.
    """

    name: str
    needs: tuple[str, ...]
    helps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Whether a measurement can be made, and the keys of the capabilities in its way."""

    name: str
    state: State
    because: tuple[str, ...]


def worst(states: Iterable[State]) -> State:
    """Return the worst of some states; OK of none."""
    return max(states, key=_SEVERITY.__getitem__, default=State.OK)


def judge(measurement: Measurement, capabilities: Mapping[str, Capability]) -> Verdict:
    """Say whether a measurement can be made.

    Raises:
        KeyError: The measurement names a capability that was not probed.
    """
    obstacles = {key: capabilities[key].state for key in measurement.needs}
    for key in measurement.helps:
        if capabilities[key].state is State.MISSING:
            obstacles[key] = State.LIMITED
    because = tuple(key for key, state in obstacles.items() if state is not State.OK)
    return Verdict(measurement.name, worst(obstacles.values()), because)


def format_table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]], width: int) -> str:
    """Lay out rows in aligned columns; the last column is wrapped to the width, in characters."""
    table = [header, *rows]
    columns = [max(len(row[index]) for row in table) for index in range(len(header) - 1)]
    indent = sum(columns) + 2 * len(columns)
    lines: list[str] = []
    for row in table:
        start = "".join(f"{cell:<{size + 2}}" for cell, size in zip(row, columns, strict=False))
        wrapped = _wrap(row[-1], max(width - indent, 30))
        lines.append(f"{start}{wrapped[0]}".rstrip())
        lines.extend(" " * indent + line for line in wrapped[1:])
    return "\n".join(lines)


def _wrap(text: str, width: int) -> list[str]:
    """Break text at spaces; keep its own line breaks; never break a word, so that commands can be copied."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lines
