# SPDX-License-Identifier: Apache-2.0
"""The dossier's figures: limits and what was used of them, and what the runs' evidence has besides.

What is drawn of limits comes from the dossier's own data; distributions, clocks and edges come from the
evidence of the attempts that the dossier shows. All is SVG in the colours of print.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from reports.dossier.evidence_figures import distributions, evidence_figures
from reports.dossier.figure import FigureGroup, shown_attempt
from reports.dossier.limit_figures import limit_figures
from reports.dossier.model import Dossier, Result, Target
from reports.record.measurement import Measurement
from reports.run.targets import targets_of
from reports.section import TargetData


def draw_figures(dossier: Dossier, folders: Mapping[str, Path]) -> tuple[FigureGroup, ...]:
    """Draw all figures of a dossier.

    Args:
        dossier: The dossier.
        folders: Run folders by run id.
    """
    groups: list[FigureGroup] = []
    for number, target in enumerate(dossier.targets):
        figures = [*limit_figures(target, f"t{number}"), *distributions(target, folders, f"t{number}")]
        if figures:
            groups.append(
                FigureGroup(
                    f"Limits and latencies: {target.name} on {target.bench}", tuple(figures), upright=True
                )
            )
    shown = list(_shown_records(dossier))
    for number, run in enumerate(dossier.runs):
        records = [record for record in shown if record.run_id == run.manifest.run_id]
        folder = folders[run.manifest.run_id]
        targets = targets_of(folder, run.manifest, records)
        several = len(targets) > 1
        for place, target in enumerate(targets):
            own = [record for record in records if record.subject.target == target]
            measured = TargetData(folder, own, own, target, targets)
            figures = evidence_figures(measured, f"r{number}-{place}" if several else f"r{number}")
            if figures:
                of = f", target {target}" if several else ""
                title = f"Clocks and edges: run {run.manifest.run_id}{of}"
                groups.append(FigureGroup(title, tuple(figures)))
    return tuple(groups)


def _shown_records(dossier: Dossier) -> Iterable[Measurement]:
    for target in dossier.targets:
        for result in _results(target):
            yield shown_attempt(result).record


def _results(target: Target) -> list[Result]:
    return [*(result for row in target.requirements for result in row.results), *target.checks]
