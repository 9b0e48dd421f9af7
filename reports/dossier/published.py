# SPDX-License-Identifier: Apache-2.0
"""Published limits: those of the requirements files that come with this software, by the ids of requirements.

A site may ask something else by the same id, for a run or a dossier: what is published stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from reports.requirement_forms import read_set
from reports.requirements import Requirement, RequirementSet

SUITES = Path(__file__).resolve().parents[2] / "robot"
AS_PUBLISHED = "as published"
NOT_PUBLISHED = "not published"
_VIRTUAL = "-virtual"
"""Name of a file ends with it whose limits are those of a virtual bench."""


@lru_cache(maxsize=1)
def published_sets() -> tuple[RequirementSet, ...]:
    """Return the published files, by name; raises RequirementsError."""
    return tuple(
        read_set(file.read_bytes(), file.name) for file in sorted(SUITES.glob("*/requirements/*.toml"))
    )


def published_words(
    asked: Requirement, name: str, *, simulated: bool, published: Sequence[RequirementSet]
) -> str:
    """Return what is published of a requirement: that it is the same, that nothing is, or what else.

    On hardware the limits of a virtual bench count only where there are no others; of several files one of
    the same name does.

    Args:
        asked: The requirement.
        name: Of its file, as its head has it.
        simulated: Whether the target is.
        published: The files to look at.
    """
    found = [(each, one) for each in published for one in each.requirements if one.id == asked.id]
    if not found:
        return NOT_PUBLISHED
    file, one = min(
        found, key=lambda each: (each[0].name.endswith(_VIRTUAL) and not simulated, each[0].name != name)
    )
    if replace(one, limit=replace(one.limit, source=asked.limit.source)) == asked:
        return AS_PUBLISHED
    return f"published in {file.name}: {one.text}"


def deviates(published: str) -> bool:
    """Say whether such words name another limit."""
    return published not in ("", AS_PUBLISHED, NOT_PUBLISHED)
