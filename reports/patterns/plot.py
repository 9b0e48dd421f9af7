# SPDX-License-Identifier: Apache-2.0
"""The figure of a series: its values as points, and its patterns over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reports.patterns.drawn import Drawn
from reports.svg import INKS, new_figure, style, to_svg

SHOWN = (0.005, 0.995)
"""Of the values; one that lies farther would flatten all others, and stands at the edge."""
PAD = 0.08
STEPS = {"level_change", "two_levels"}


def figure_patterns(name: str, drawn: Drawn, axis: str, said: Sequence[str]) -> str:
    """Draw a series with its patterns.

    Args:
        name: Short name, unique on the page.
        drawn: What is drawn, in ms.
        axis: What the values are, for their axis: `whole`.
        said: The patterns, a sentence each.
    """
    with style(name):
        figure = new_figure(11.6, 3.2)
        axes = figure.add_subplot()
        times_s, values = np.array(drawn.times_s), np.array(drawn.values)
        low, high = _range(drawn)
        for kind, ink, label in (("warm_up", "band", "warm-up"), ("gap", "type3", "gap")):
            for number, span in enumerate(each for each in drawn.spans if each.kind == kind):
                axes.axvspan(
                    span.begin_s, span.end_s, color=INKS["line" if ink == "band" else ink],
                    alpha=0.6 if ink == "band" else 0.45, linewidth=0.6 if ink != "band" else 0,
                    label=label if number == 0 else None, zorder=0,
                )  # fmt: skip
        inside = (values >= low) & (values <= high)
        axes.plot(times_s[inside], values[inside], ".", color=INKS["type0"], markersize=2.4, label="value")
        for number, (over, edge, mark) in enumerate(((values > high, high, "^"), (values < low, low, "v"))):
            if over.any():
                axes.plot(
                    times_s[over], np.full(int(over.sum()), edge), mark, color=INKS["muted"], markersize=4,
                    label=("farther up", "farther down")[number], clip_on=False,
                )  # fmt: skip
        named: set[str] = set()
        for line in drawn.lines:
            width = 2.0 if line.kind in STEPS else 1.2
            axes.plot(
                line.times_s, line.values, "-", color=INKS["type1"], linewidth=width,
                label=None if named else "pattern", solid_capstyle="butt",
            )  # fmt: skip
            named.add(line.kind)
        if drawn.marked:
            axes.plot(
                drawn.marked_s, np.clip(drawn.marked, low, high), "o", color=INKS["type1"], markersize=7,
                markerfacecolor="none", label="outlier", clip_on=False,
            )  # fmt: skip
        axes.set_xlim(drawn.from_s, drawn.to_s)
        axes.set_ylim(low, high)
        axes.set_xlabel("s since the first value")
        axes.set_ylabel(f"{axis}, ms")
        figure.legend(loc="outside upper left", ncols=6, fontsize=8.5)
        return to_svg(figure, name, f"{axis} with its patterns", " ".join(said))


def _range(drawn: Drawn) -> tuple[float, float]:
    """Return from where to where values are shown: nearly all of them, each line, and each outlier."""
    low, high = (float(each) for each in np.quantile(drawn.values, SHOWN))
    every = [low, high, *drawn.marked, *(value for line in drawn.lines for value in line.values)]
    low, high = min(every), max(every)
    pad = (high - low) * PAD or 1e-3
    return low - pad, high + pad
