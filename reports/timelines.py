# SPDX-License-Identifier: Apache-2.0
"""The timelines of a run: `timelines_of` of `timelines.py` in the folder of each capability that has one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from reports.capabilities import CAPABILITIES, HERE
from reports.timeline.placed_events import Timeline

_WITH_ONE = tuple(name for name in CAPABILITIES if (HERE / name / "timelines.py").exists())


def timelines_of_run(run: Path) -> tuple[list[Timeline], list[str]]:
    """Return what a run holds of events in their places, and in words what of it cannot be read."""
    found: list[Timeline] = []
    problems: list[str] = []
    for name in _WITH_ONE:
        own, why_not = import_module(f"reports.{name}.timelines").timelines_of(run)
        found += own
        problems += why_not
    return found, problems
