# SPDX-License-Identifier: Apache-2.0
"""The patterns over time that a run keeps, in words: information, which decides nothing."""

from __future__ import annotations

from pathlib import Path

from reports.dossier.model import Pair
from reports.errors import RecordError
from reports.page.patterns import grouped
from reports.patterns.kept import read_patterns


def patterns_of(run: Path) -> tuple[Pair, ...] | None:
    """Return each series with patterns, and what they look like; None: the run was not searched."""
    try:
        kept = read_patterns(run)
    except RecordError as error:
        return (Pair("patterns", f"cannot be read: {error}"),)
    if kept is None:
        return None
    found = grouped([each for each in kept.series if each.findings], "")
    return tuple(
        Pair(f"{each.series.place}: {', '.join((each.series.name, *each.also))}", " ".join(each.sentences))
        for each in found
    )
