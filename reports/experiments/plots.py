# SPDX-License-Identifier: Apache-2.0
"""The schedule of a point as it ran: a line a component, a bar a task, a rule where a phase begins."""

from __future__ import annotations

from reports.experiments.left import PointLeft
from reports.svg import INKS, new_figure, style, to_svg

CONTROLLER = "controller"
LINE_IN = 0.3
FAILED, OPEN = "fail", "inconclusive"


def figure_schedule(name: str, point: PointLeft) -> str:
    """Draw when each component did its task of which phase.

    Args:
        name: Short name, unique on the page.
        point: With at least one task.
    """
    rows = list(dict.fromkeys(span.component or CONTROLLER for span in point.spans))
    phases = list(dict.fromkeys(span.phase for span in point.spans))
    end_s = max(point.duration_s, 1e-3)
    with style(name):
        figure = new_figure(11.6, 1.1 + LINE_IN * len(rows))
        axes = figure.subplots()
        for span in point.spans:
            ink = (
                FAILED
                if span.failed
                else OPEN
                if span.end_s is None
                else f"type{phases.index(span.phase) % 4}"
            )
            to_s = end_s if span.end_s is None else span.end_s
            at = rows.index(span.component or CONTROLLER)
            axes.barh(
                at, max(to_s - span.begin_s, end_s / 400), left=span.begin_s, height=0.6, color=INKS[ink]
            )
        for number, phase in enumerate(phases):
            begin_s = min(span.begin_s for span in point.spans if span.phase == phase)
            axes.axvline(begin_s, color=INKS["muted"], linewidth=0.6, linestyle=":")
            axes.text(
                begin_s,
                -0.7 - 0.55 * (number % 2),
                f" {phase}",
                color=INKS["ink"],
                fontsize=8.5,
                ha="left",
                va="bottom",
            )
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.4, -1.7)
        axes.set_xlim(0, end_s * 1.02)
        axes.set_xlabel("s since the point began")
        said = "; ".join(
            f"{span.component or CONTROLLER}, {span.phase}: {'failed' if span.failed else 'done'}"
            for span in point.spans
        )
        return to_svg(figure, name, f"Schedule of point {point.name}", f"{said}.")
