# SPDX-License-Identifier: Apache-2.0
"""Figures of a loop of camera and tracker: picture by picture, and against the path's delay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.control_loops.camera_loop import CameraLoop
from reports.control_loops.case import Case
from reports.svg import INKS, new_figure, style, to_svg
from reports.timeline.leg import quantile_ns
from reports.units import format_value

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
POINTS_MAX = 2000
MARKS = "o", "s", "^", "v"
"""Of sweeps: without load, and beside each."""


def figure_pictures(name: str, loops: Sequence[tuple[Case, CameraLoop]]) -> str:
    """Draw what the whole loop took for each picture, at each delay, and what the pictures say themselves.

    Args:
        name: Short name, unique on the page.
        loops: Each of at least one picture.
    """
    with style(name):
        figure = new_figure(11.6, 3.8)
        axes = figure.add_subplot()
        for at, (case, found) in enumerate(loops):
            ink = INKS[f"type{at % 4}"]
            captured_s = found.truth.captured_ns / NS_PER_S
            step = -(-len(found.whole) // POINTS_MAX)
            number = found.whole.number[::step]
            axes.plot(
                captured_s[number], found.whole.time_ns[::step] / NS_PER_MS, ".", color=ink, markersize=3,
                label=f"{case.words} each way" if not case.load else case.words,
            )  # fmt: skip
            if found.pixels is not None:
                number = found.pixels.picture[::step]
                axes.plot(
                    captured_s[number], found.pixels.delay_ns[::step] / NS_PER_MS, "+", color=INKS["muted"],
                    markersize=4, linewidth=0.5,
                )  # fmt: skip
        axes.set_ylim(bottom=0)
        axes.set_xlabel("s since the camera's start")
        axes.set_ylabel("from picture to command, ms")
        figure.legend(loc="outside upper left", ncols=4, fontsize=8.5, markerscale=2)
        said = "; ".join(
            f"{case.words}: {format_value(quantile_ns(found.whole.time_ns, 0.5), 'ns')}"
            for case, found in loops
        )
        return to_svg(figure, name, "The loop's delay, picture by picture", f"Medians: {said}.")


def figure_slope(name: str, sweeps: Sequence[Sequence[CameraLoop]]) -> str:
    """Draw mean and standard deviation of the loop and of the pictures' way against the measured delay.

    Args:
        name: Short name, unique on the page.
        sweeps: Loops without load, two and more, then those beside each load; each loop with a measured delay
            and at least one picture.
    """
    with style(name):
        figure = new_figure(11.6, 3.6)
        mean, spread = figure.subplots(1, 2)
        for loops, mark in zip(sweeps, MARKS, strict=False):
            load = loops[0].load.kind if loops and loops[0].load else ""
            delays = [each.facts.delay for each in loops]
            measured_ms = np.array([(each.there_us + each.back_us) / 2000 for each in delays if each])
            for label, ink, slope, times in (
                ("whole loop", "type0", 2, [each.whole.time_ns for each in loops]),
                ("camera to tracker", "type1", 1, [each.pictures.time_ns for each in loops]),
            ):
                means = np.array([float(np.mean(each)) / NS_PER_MS for each in times])
                deviations = [float(np.std(each)) / NS_PER_MS for each in times]
                look = {"color": INKS[ink], "markersize": 4, "markerfacecolor": "none" if load else INKS[ink]}
                said = f"{label}, {load} load" if load else label
                mean.plot(measured_ms, means, mark, label=said, **look)
                spread.plot(measured_ms, deviations, mark, **look)
                if not load:
                    line = means[0] + slope * (measured_ms - measured_ms[0])
                    mean.plot(measured_ms, line, color=INKS[ink], linewidth=0.8)
        for axes, words in ((mean, "mean, ms"), (spread, "standard deviation, ms")):
            axes.set_xlabel("measured delay of the path, ms each way")
            axes.set_ylabel(words)
            axes.set_ylim(bottom=0)
        figure.legend(loc="outside upper left", ncols=4, fontsize=8.5)
        said = f"{len(sweeps[0])} delays; the lines have slopes of 1 and 2 through the first point"
        return to_svg(figure, name, "The loop against the delay of its path", f"{said}.")
