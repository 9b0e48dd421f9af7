# SPDX-License-Identifier: Apache-2.0
"""Figures of a ring: the whole message by message as the paper's Figs 4.1.2 and 4.3.2, and each hop."""

from __future__ import annotations

import numpy as np

from reports.control_loops.loop import Stretch
from reports.control_loops.ring import Ring
from reports.svg import INKS, new_figure, style, to_svg
from reports.timeline.clock_record import NS_PER_S
from reports.timeline.leg import quantile_ns
from reports.units import format_value

NS_PER_US = 1000
BINS = 80
SHOWN_SHARE = 0.99
"""The slowest messages would flatten all others: how many lie beyond is said."""
POINTS_MAX = 3000


def figure_whole(name: str, ring: Ring) -> str:
    """Draw what the whole took for each message, and beside it how often each time came.

    Args:
        name: Short name, unique on the page.
        ring: Whose whole has at least one message.
    """
    took_ns = ring.whole_own_ns
    top_ns = quantile_ns(took_ns, SHOWN_SHARE)
    shown = took_ns <= top_ns
    step = -(-int(shown.sum()) // POINTS_MAX)
    at_s = (ring.whole.sent.tai_ns - ring.whole.sent.tai_ns[0]) / NS_PER_S
    with style(name):
        figure = new_figure(11.6, 4.2)
        over_time, counts = figure.subplots(1, 2, width_ratios=[3, 1], sharey=True)
        over_time.plot(
            at_s[shown][::step], took_ns[shown][::step] / NS_PER_US, ".", color=INKS["type0"], markersize=2
        )
        edges_us = np.linspace(0, top_ns, BINS + 1) / NS_PER_US
        counts.hist(
            took_ns / NS_PER_US, bins=edges_us, orientation="horizontal", histtype="step",
            color=INKS["type0"], linewidth=1.4,
        )  # fmt: skip
        over_time.set_ylim(0, edges_us[-1] * 1.02)
        over_time.set_xlabel("s since the first message")
        over_time.set_ylabel("round the ring, µs")
        counts.set_xlabel("messages")
        beyond = int((~shown).sum())
        return to_svg(
            figure,
            name,
            "The whole loop, message by message",
            f"Median {format_value(quantile_ns(took_ns, 0.5), 'ns')}; {beyond} messages lie above.",
        )


def figure_stretches(name: str, ring: Ring) -> str:
    """Draw median and 98 % of each stretch, of the hops on the wire beside those from program to program.

    Args:
        name: Short name, unique on the page.
        ring: Each of whose stretches has at least one message.
    """
    stretches = [each for each in ring.stretches[1:] if len(each)]
    names = [each.name for each in stretches]
    wire = [each for each in ring.wire_stretches[1:] if len(each)]
    with style(name):
        figure = new_figure(11.6, 0.34 * len(stretches) + 1.2)
        axes = figure.add_subplot()
        for every, ink, shift, label in (
            (stretches, "type0", -0.12, "from program to program"),
            (wire, "type1", 0.12, "from kernel to kernel"),
        ):
            if not every:
                continue
            low, middle, high = (
                np.array([_us(each, share) for each in every]) for share in (0.01, 0.5, 0.99)
            )
            at = np.array([names.index(each.name) for each in every]) + shift
            axes.errorbar(
                middle, at, xerr=[middle - low, high - middle], fmt="o", color=INKS[ink], markersize=4,
                elinewidth=1.2, label=label,
            )  # fmt: skip
        axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(left=0)
        axes.set_xlabel("µs; bars reach from 1 to 99 % of the messages")
        figure.legend(loc="outside upper left", ncols=2, fontsize=8.5)
        said = "; ".join(
            f"{each.name} {format_value(quantile_ns(each.time_ns, 0.5), 'ns')}" for each in stretches
        )
        return to_svg(figure, name, "Where the time round the ring goes", f"Medians: {said}.")


def _us(stretch: Stretch, share: float) -> float:
    return max(0, quantile_ns(stretch.time_ns, share)) / NS_PER_US
