# SPDX-License-Identifier: Apache-2.0
"""The figure of round trips: quantiles of each direction, all of them trips that were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D

from reports.curves import time_axis
from reports.errors import ReportError
from reports.software_latency.trips import PairTrips
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import format_value

SHARES = (0.01, 0.5, 0.99, 0.999)
BEYOND_MIN = 1000
"""Of so many trips one lies beyond the last share."""


@dataclass(frozen=True)
class PairQuantiles:
    """Quantiles of the round trips of one direction that count, in ns.

    Attributes:
        name: Who asks and who sends back.
        n: Trips.
        p999_ns: None: there are fewer than 1000.
    """

    name: str
    n: int
    p01_ns: int
    p50_ns: int
    p99_ns: int
    p999_ns: int | None


def pair_quantiles(trips: PairTrips) -> PairQuantiles:
    """Return the quantiles of one direction: each is a trip that was measured (inverse of the shares)."""
    counted = trips.rtt_ns[trips.counted]
    low, middle, high, highest = np.quantile(counted, SHARES, method="inverted_cdf").astype(np.int64).tolist()
    name = f"{trips.asker} → {trips.reflector}"
    beyond = highest if len(counted) >= BEYOND_MIN else None
    return PairQuantiles(name, len(counted), low, middle, high, beyond)


def figure_quantiles(name: str, rows: Sequence[PairQuantiles]) -> str:
    """Draw a line of each direction from the first to the 99th percentile, with marks of the others.

    Args:
        name: Short name, unique on the page.
        rows: From above to below; all above zero.

    Raises:
        ReportError: There are none, or one is not above zero.
    """
    if not rows or any(row.p01_ns <= 0 for row in rows):
        raise ReportError(f"{name}: need at least one direction, and round trips above zero")
    with style(name):
        figure = new_figure(7.6, 0.9 + 0.25 * len(rows))
        axes = figure.add_subplot()
        for place, row in enumerate(reversed(rows)):
            axes.hlines(place, row.p01_ns, row.p99_ns, color=INKS["type0"], linewidth=2)
            axes.plot([row.p50_ns], [place], marker="o", color=INKS["type0"], markersize=5)
            if row.p999_ns is not None:
                axes.plot([row.p999_ns], [place], marker="|", color=INKS["type1"], markersize=9)
        axes.set_xscale("log")
        highest_ns = max(row.p999_ns or row.p99_ns for row in rows)
        first = math.floor(math.log10(min(row.p01_ns for row in rows)))
        axes.set_xlim(10.0**first, 10.0 ** max(math.ceil(math.log10(highest_ns)), first + 1))
        time_axis(axes.xaxis, minor=True)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel("round trip")
        handles = [
            Line2D([], [], color=INKS["type0"], linewidth=2, label="1 to 99 %"),
            Line2D([], [], color=INKS["type0"], marker="o", markersize=5, linestyle="none", label="median"),
            Line2D([], [], color=INKS["type1"], marker="|", markersize=9, linestyle="none", label="99.9 %"),
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=3, fontsize=8.5)
        said = "; ".join(f"{row.name} {format_value(row.p50_ns, 'ns', 3)}" for row in rows)
        return to_svg(figure, name, "Round trips of each direction", f"Medians: {said}.")
