# SPDX-License-Identifier: Apache-2.0
"""What the run kept beside its records: requirements, and of which version it is."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEPT = Path("evidence", "requirements")


def kept_requirements(run: Path) -> dict[str, list[Mapping[str, Any]]]:
    """Return all of a run, several of one id from files of several targets.

    A file that cannot be read is left out: `requirement_discrepancies` names it.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for file in sorted((run / KEPT).glob("*.toml")):
        try:
            for item in tomllib.loads(file.read_text(encoding="utf-8-sig"))["requirement"]:
                found.setdefault(str(item["id"]), []).append(item)
        except (KeyError, TypeError, ValueError, RecursionError):
            continue
    return found


def is_before(run: Path) -> bool:
    """Say whether a folder is of the version before, which left open some of what is a fail now."""
    return "outcome" not in json.loads((run / "run.json").read_text("utf-8"))
