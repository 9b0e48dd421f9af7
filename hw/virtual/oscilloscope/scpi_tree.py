# SPDX-License-Identifier: Apache-2.0
"""The commands that a dialect knows, found by short or long form of each part of their header."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from hw.virtual.oscilloscope.scpi_errors import ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters, short_form

Suffixes = tuple[int, ...]
Setter = Callable[[Suffixes, Parameters], None]
Getter = Callable[[Suffixes, Parameters], object]

_NUMBERED = re.compile(r"(.*?)(\d{1,9})")


@dataclass
class Command:
    """What is behind a header.

    Attributes:
        pattern: As in the guides: `CHANnel<n>:SCALe`.
        setter: Does the command; None: there is a query only.
        getter: Answers the query; None: there is a command only.
    """

    pattern: str
    setter: Setter | None
    getter: Getter | None


@dataclass
class _Node:
    children: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    numbered: dict[str, tuple[_Node, int]] = field(default_factory=dict[str, "tuple[_Node, int]"])
    command: Command | None = None


class CommandTree:
    """All commands of a dialect."""

    def __init__(self, suffix_limits: dict[str, int]) -> None:
        """Make an empty tree.

        Args:
            suffix_limits: Largest number of each part that takes one: `{"CHANnel<n>": 4}`.
        """
        self._root = _Node()
        self._limits = suffix_limits

    def add(self, pattern: str, setter: Setter | None = None, getter: Getter | None = None) -> None:
        """Add a command, a query, or both."""
        node = self._root
        for part in pattern.split(":"):
            node = self._child(node, part)
        node.command = Command(pattern, setter, getter)

    def _child(self, node: _Node, part: str) -> _Node:
        name = part.removesuffix("<n>")
        keys = {short_form(name), name.upper()}
        if name == part:
            existing = node.children.get(name.upper(), _Node())
            node.children.update(dict.fromkeys(keys, existing))
            return existing
        existing, _ = node.numbered.get(name.upper(), (_Node(), 0))
        node.numbered.update(dict.fromkeys(keys, (existing, self._limits[part])))
        return existing

    def find(self, header: tuple[str, ...]) -> tuple[Command, Suffixes]:
        """Return the command of a header, and the numbers in it.

        Raises:
            ScpiError: There is none, or a number is beyond what there is.
        """
        node = self._root
        suffixes: list[int] = []
        for part in header:
            if part in node.children:
                node = node.children[part]
                continue
            match = _NUMBERED.fullmatch(part)
            name, digits = match.groups() if match else (part, "1")
            if name not in node.numbered:
                raise ScpiError(113, ":".join(header)[:60])
            node, limit = node.numbered[name]
            if not 1 <= int(digits) <= limit:
                raise ScpiError(114, ":".join(header)[:60])
            suffixes.append(int(digits))
        if node.command is None:
            raise ScpiError(113, ":".join(header)[:60])
        return node.command, tuple(suffixes)
