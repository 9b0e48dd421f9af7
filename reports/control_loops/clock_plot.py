# SPDX-License-Identifier: Apache-2.0
"""The figure of the target's clock during rings, corrected and not, idle and beside a load."""

from __future__ import annotations

from collections.abc import Sequence

from reports.control_loops.clock import ClockCourse
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import format_value

NS_PER_US = 1000
POINTS_MAX = 600
COLUMNS_MAX = 3


def figure_clock(name: str, courses: Sequence[ClockCourse]) -> str:
    """Draw how far the clock was off over time, each course in axes of its own with one scale.

    Args:
        name: Short name, unique on the page.
        courses: At least one.
    """
    columns = min(COLUMNS_MAX, len(courses))
    rows = -(-len(courses) // columns)
    with style(name):
        figure = new_figure(11.6, 0.6 + 1.7 * rows)
        every = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for axes, course in zip(every.flat, courses, strict=False):
            step = -(-course.at_s.size // POINTS_MAX)
            ink = INKS["type0" if course.case.clock else "type1"]
            axes.plot(course.at_s[::step], course.off_ns[::step] / NS_PER_US, ".", color=ink, markersize=1.5)
            axes.set_title(course.name, fontsize=8.5)
        for axes in every.flat[len(courses) :]:
            axes.set_axis_off()
        for axes in every[-1]:
            axes.set_xlabel("s")
        for axes in every[:, 0]:
            axes.set_ylabel("off, µs")
        said = "; ".join(
            f"{each.name}: {' to '.join(format_value(ns, 'ns', 3) for ns in each.range_ns)}"
            for each in courses
        )
        return to_svg(figure, name, "The target's clock meanwhile", f"98 % within: {said}.")
