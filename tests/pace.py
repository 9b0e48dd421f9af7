# SPDX-License-Identifier: Apache-2.0
"""How long each file of tests takes, held against its budget: a plug-in of pytest for tests/conftest.py.

Budgets are data, `tests/budgets.toml`: seconds on a quiet machine of two cores. A file that takes longer is
named at the end of the run; it fails nothing, for a machine that others share may be slow.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

BUDGETS = Path(__file__).with_name("budgets.toml")


@cache
def _table(budgets: Path) -> dict[str, Any]:
    return tomllib.loads(budgets.read_text(encoding="utf-8"))


def budget_s(test: str, budgets: Path = BUDGETS) -> float:
    """Return what the file of a test may take; `test` is its name, or the file's."""
    table = _table(budgets)
    return float(table["files_s"].get(test.partition("::")[0], table["else_s"]))


def over_budget(taken_s: dict[str, float], budgets: Path = BUDGETS) -> list[str]:
    """Return a line for each file that took longer than its budget, the one that is over it most first."""
    over_s = {file: taken_s[file] - budget_s(file, budgets) for file in taken_s}
    over = sorted((file for file in over_s if over_s[file] > 0), key=lambda file: -over_s[file])
    return [f"{file}: {taken_s[file]:.0f} s, its budget is {budget_s(file, budgets):g} s" for file in over]


class Pace:
    """Adds up the time of every test by file; set-up and tear-down count."""

    def __init__(self, kept: Path | None) -> None:
        """Begin with nothing; `kept`: file that gets the seconds of each file, as JSON."""
        self._kept = kept
        self._taken_s: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a part of a test."""
        self._taken_s[report.nodeid.partition("::")[0]] += report.duration  # type: ignore[assignment]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the files that took longer than they may."""
        taken_s: dict[str, float] = dict(self._taken_s)
        if self._kept is not None:
            self._kept.write_text(json.dumps(taken_s, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        for line in over_budget(taken_s):
            terminalreporter.write_line(f"over budget: {line}")
