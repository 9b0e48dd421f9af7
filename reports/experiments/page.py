# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment: made of its folder alone, the same bytes each time."""

from __future__ import annotations

from pathlib import Path

from reports.durable import replace_file
from reports.experiments.left import read_experiment_folder
from reports.experiments.plots import figure_schedule
from reports.templating import template_environment

PAGE = "experiment.html"
DRAWN_MAX = 12
"""Points whose schedule is drawn: of more, those that were broken off first."""


def render_experiment(folder: Path) -> str:
    """Return the page; raises RecordError where the folder is damaged."""
    found = read_experiment_folder(folder)
    wanted = sorted((point for point in found.points if point.spans), key=lambda point: point.is_complete)
    names = {point.name for point in wanted[:DRAWN_MAX]}
    drawn = [
        (point, figure_schedule(f"schedule-{number}", point))
        for number, point in enumerate(found.points)
        if point.name in names
    ]
    axes = list(dict.fromkeys(axis for point in found.points for axis in point.values))
    complete = sum(point.is_complete for point in found.points)
    environment = template_environment("reports.experiments.page", {})
    return environment.get_template("experiment.html.j2").render(
        found=found, drawn=drawn, axes=axes, complete=complete
    )


def write_experiment_page(folder: Path) -> Path:
    """Write the page into the folder and return its path; raises RecordError."""
    path = folder / PAGE
    replace_file(path, render_experiment(folder).encode())
    return path
