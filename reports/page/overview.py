# SPDX-License-Identifier: Apache-2.0
"""What the page of a run with several targets shows before the pages of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.page.matrix import Matrix, matrix_of
from reports.page.model import Report, RunReport
from reports.run.selected import SKIPPED, UNTESTED
from reports.run.tally import WORST_FIRST


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target: its report, and the name of its page."""

    report: Report
    page: str


@dataclass(frozen=True, slots=True)
class Overview:
    """All that the page of the run shows."""

    report: Report
    targets: tuple[TargetRow, ...]
    matrix: Matrix

    @property
    def says(self) -> str:
        """Return how many targets came out how, and what was not measured, in words."""
        counts = Counter(row.report.outcome for row in self.targets)
        found = ", ".join(f"{counts[outcome]} {outcome}" for outcome in WORST_FIRST if counts[outcome])
        words = [f"{len(self.targets)} targets: {found}."]
        silent = [row.report.target for row in self.targets if not row.report.records]
        if silent:
            words.append(f"Nothing was measured of {' and '.join(silent)}.")
        unmeasured = [(self.report.states.get(state, 0), state) for state in (SKIPPED, UNTESTED)]
        words += [f"{count} times a requirement was {state}." for count, state in unmeasured if count]
        return " ".join(words)


def overview_of(run: Path, found: RunReport, pages: Mapping[str, str]) -> Overview:
    """Return the overview of a run with several targets.

    Args:
        run: The run folder.
        found: Its report.
        pages: Name of each target's page.
    """
    matrix = matrix_of(run, found.whole.manifest.run_id, found.targets)
    rows = tuple(TargetRow(report, pages[report.target]) for report in found.targets)
    return Overview(found.whole, rows, matrix)
