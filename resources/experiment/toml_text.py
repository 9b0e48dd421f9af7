# SPDX-License-Identifier: Apache-2.0
"""A table as TOML, and the line of a key in such a text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"))*)\s*=""")


def toml_text(table: Mapping[str, Any]) -> str:
    """Return a table as TOML: scalars, then its tables with headers; what is deeper in one line."""
    lines = [f"{_key(key)} = {_inline(value)}" for key, value in table.items() if not _has_header(value)]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += _table(_key(key), cast("Mapping[str, Any]", value), f"[{_key(key)}]")
        elif _has_header(value):
            for each in cast("list[Mapping[str, Any]]", value):
                lines += _table(_key(key), each, f"[[{_key(key)}]]")
    return "\n".join(lines) + "\n"


def _has_header(value: object) -> bool:
    if isinstance(value, list):
        items = cast("list[object]", value)
        return bool(items) and all(isinstance(each, Mapping) for each in items)
    return isinstance(value, Mapping)


def _table(path: str, table: Mapping[str, Any], header: str) -> list[str]:
    inner = {
        key: cast("Mapping[str, Any]", value) for key, value in table.items() if isinstance(value, Mapping)
    }
    lines = ["", header]
    lines += [f"{_key(key)} = {_inline(value)}" for key, value in table.items() if key not in inner]
    for key, value in inner.items():
        lines += [
            "",
            f"[{path}.{_key(key)}]",
            *(f"{_key(k)} = {_inline(v)}" for k, v in value.items()),
        ]
    return lines


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return "{" + ", ".join(f"{_key(key)} = {_inline(each)}" for key, each in items) + "}"
    return "[" + ", ".join(_inline(each) for each in cast("list[Any]", value)) + "]"


def line_of(text: str, path: str) -> int | None:
    """Return the line of a key, or of the table that is nearest above it, in a text of TOML.

    Args:
        text: The file.
        path: Keys with dots between them; of the table number N of a list `key[N]`, from 1.

    Returns:
        Counted from 1; None: nothing of it is there.
    """
    places = _places(text)
    parts = path.split(".")
    while parts:
        if (line := places.get(".".join(parts))) is not None:
            return line
        if parts[-1] != (plain := re.sub(r"\[\d+\]$", "", parts[-1])):
            parts[-1] = plain
        else:
            parts.pop()
    return None


def _places(text: str) -> dict[str, int]:
    places: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _normal(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, 0) + 1
            table = _numbered(table, counts)
            places.setdefault(table, number)
        elif key := _KEY.match(line):
            places.setdefault(f"{table}.{_normal(key[1])}" if table else _normal(key[1]), number)
    return places


def _normal(path: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in path.split("."))


def _numbered(path: str, counts: Mapping[str, int]) -> str:
    """Return a path with the number of each list of tables that it leads through."""
    found: list[str] = []
    for part in path.split("."):
        found.append(part)
        plain = re.sub(r"\[\d+\]", "", ".".join(found))
        if plain in counts:
            found[-1] = f"{part}[{counts[plain]}]"
    return ".".join(found)
