# SPDX-License-Identifier: Apache-2.0
"""What the page of a run with several targets shows before the pages of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.latency.stream_groups import Instrument
from reports.page.matrix import Matrix, matrix_of
from reports.page.model import Report, RunReport
from reports.record.histogram import Quantile, merge
from reports.run.asked import SKIPPED, UNTESTED
from reports.run.tally import WORST_FIRST

LATENESS_QUANTILE = 0.99


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target: its report, the name of its page, and how it came out.

    Attributes:
        lateness: 99 % quantile of sent - scheduled over all messages of the replays that count, but for
            those that the target itself sent, in ns.
    """

    report: Report
    page: str
    lateness: Quantile | None

    @property
    def instruments(self) -> tuple[Instrument, ...]:
        """Return what the bench says of itself during each replay into this target."""
        return instruments_of(self.report)


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
    rows = tuple(TargetRow(report, pages[report.target], lateness_of(report)) for report in found.targets)
    return Overview(found.whole, rows, matrix)


def instruments_of(report: Report) -> tuple[Instrument, ...]:
    """Return the instruments of all replays of a report, each replay once."""
    found = {each.attempt: each for group in report.groups for each in group.instruments}
    return tuple(found.values())


def lateness_of(report: Report) -> Quantile | None:
    """Return the 99 % quantile of the generator's lateness; None without a replay."""
    summaries = [each for instrument in instruments_of(report) for each in instrument.generator_lateness]
    return merge(summaries).quantile(LATENESS_QUANTILE) if summaries else None
