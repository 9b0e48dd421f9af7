# SPDX-License-Identifier: Apache-2.0
"""How long each suite of a run takes, held against its budget: a listener of Robot Framework.

    robot --listener resources.pace.Pace:ci robot/

Budgets are data, `resources/CAP/budgets.toml`: seconds on a quiet machine of two cores, by profile and
target. A suite that takes longer is named at the end; no verdict changes: replays that are made once more
take time.
"""

from __future__ import annotations

import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hw.steal import stolen_s
from reports.run.robot_variable import robot_variable
from reports.run.selected import suite_name

RESOURCES = Path(__file__).resolve().parent
FURTHER_REPLAYS = "Further replays"
"""Metadata of a suite: what its further replays took, as `3 further replays took 90 s`."""


@dataclass
class SuiteTime:
    """How long a suite of one target and network stack took, and what was stolen of all CPUs meanwhile."""

    taken_s: float = 0.0
    stolen_s: float = 0.0
    further: str = ""


class Pace:
    """Notes how long each suite of each target takes, with each network stack."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, profile: str, resources: Path = RESOURCES) -> None:
        """Begin with no suite.

        Args:
            profile: Whose budgets count; one without any has none to break.
            resources: Folder of the capabilities, of which each may have a file of them.
        """
        self.budgets_s: defaultdict[str, dict[str, float]] = defaultdict(dict)
        for file in sorted(Path(resources).glob("*/budgets.toml")):
            table = tomllib.loads(file.read_text(encoding="utf-8"))
            for target, suites_s in table.get(profile, {}).items():
                self.budgets_s[target].update(suites_s)
        self._times: defaultdict[tuple[str, str, str], SuiteTime] = defaultdict(SuiteTime)
        self._stolen_before_s = 0.0

    def start_suite(self, data: Any, result: Any) -> None:
        """Note what was stolen before a suite that has tests."""
        del result
        if data.tests:
            self._stolen_before_s = sum(stolen_s())

    def end_suite(self, data: Any, result: Any) -> None:
        """Note a suite that has tests."""
        if data.tests and data.source is not None:
            name = (robot_variable("TARGET"), suite_name(Path(data.source)), robot_variable("STACK"))
            self._times[name].taken_s += result.elapsed_time.total_seconds()
            self._times[name].stolen_s += sum(stolen_s()) - self._stolen_before_s
            self._times[name].further = result.metadata.get(FURTHER_REPLAYS, "")

    def over_budget(self) -> Iterator[str]:
        """Yield a line for each suite that took longer than its budget."""
        for (target, suite, _stack), time in self._times.items():
            budget_s = self.budgets_s.get(target, {}).get(suite)
            if budget_s is not None and time.taken_s > budget_s:
                why = f"{time.further}; " if time.further else ""
                why += f"{time.stolen_s:.1f} s of the machine's CPUs were stolen"
                yield f"{suite} of {target} took {time.taken_s:.0f} s, its budget is {budget_s:g} s; {why}"

    def close(self) -> None:
        """Say which suites took longer than they may."""
        for line in self.over_budget():
            print(f"Pace:    {line}", file=sys.__stdout__, flush=True)
