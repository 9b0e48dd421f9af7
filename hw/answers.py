# SPDX-License-Identifier: Apache-2.0
"""What a script on a target answers: one JSON object a line, from a machine that may be broken or hostile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

from hw.errors import BenchError

_SHOWN = 60


def json_line(line: str | bytes) -> dict[str, Any] | None:
    """Return the object of a line; None: it is torn, nested too deep, or something else."""
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def answers_of(text: str, kind: str, fields: tuple[str, ...], who: str) -> list[dict[str, Any]]:
    """Return the answers of one type.

    Args:
        text: All that was said; every line must be an object.
        kind: Type of the answers wanted.
        fields: What each of them must have.
        who: Machine and script, for the error.

    Raises:
        BenchError: A line is no object, or an answer lacks a field.
    """
    found: list[dict[str, Any]] = []
    for line in text.split("\n"):  # not splitlines: a text in an object may hold U+2028
        if not line.strip():
            continue
        answer = json_line(line)
        if answer is None:
            raise BenchError(f"{who}: says {line[:_SHOWN]!r}: invalid JSON")
        if answer.get("type") != kind:
            continue
        missing = [name for name in fields if name not in answer]
        if missing:
            raise BenchError(f"{who}: {missing[0]}: missing in {line[:_SHOWN]!r}")
        found.append(answer)
    return found


def tail(path: Path, size_bytes: int = 500) -> str:
    """Return the end of a text file, or a remark that there is none."""
    try:
        text = path.read_text(errors="replace").strip()
    except OSError:
        return "no message"
    return text[-size_bytes:] or "no message"
