# SPDX-License-Identifier: Apache-2.0
"""The answers of the native tools, a JSON object a line: docs/native-tools.md, `Answers`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast


def read_result(path: Path) -> Mapping[str, Any] | None:
    """Return the `result` line of a tool; None without one."""
    lines = read_lines(path, "result")
    return lines[-1] if lines else None


def json_lines(path: Path) -> list[str]:
    """Return the lines of a file of JSON objects; `splitlines` would also cut at U+2028 in a text."""
    text = path.read_text("utf-8", errors="replace")
    return text.removesuffix("\n").split("\n") if text else []


def read_lines(path: Path, kind: str) -> list[Mapping[str, Any]]:
    """Return the lines of a type, and those that name none; none of a file that is not there."""
    found: list[Mapping[str, Any]] = []
    for line in json_lines(path) if path.exists() else ():
        try:
            data: object = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            answer = cast("dict[str, Any]", data)
            if answer.get("type", kind) == kind:
                found.append(answer)
    return found
