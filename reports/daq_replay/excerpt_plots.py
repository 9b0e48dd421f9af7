# SPDX-License-Identifier: Apache-2.0
"""The picture of an excerpt: a lane for each end and each processor that was watched, over time."""

from __future__ import annotations

from reports.daq_replay.excerpts import AFTER_NS, BEFORE_NS, Excerpt
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import NS_PER_MS, format_value

WIDTH_IN = 5.0
"""So narrow that its words can be read where two stand side by side, on 500 pixels and in print."""


def figure_excerpt(name: str, excerpt: Excerpt) -> str:
    """Draw the way of a message from its producer to the target, and what took the processors meanwhile."""
    message = excerpt.message
    source = excerpt.moments[[each.where[:8] for each in excerpt.moments].index("producer")].where
    taken = [each for each in excerpt.moments if each.until_ns is not None and each.where != "target"]
    lanes = [source, "target", *sorted({each.where for each in taken}, reverse=True)]
    with style(name):
        figure = new_figure(WIDTH_IN, 0.75 + 0.3 * len(lanes))
        axes = figure.add_subplot()
        for each in taken:
            assert each.until_ns is not None
            begin_ms, length_ms = each.at_ns / NS_PER_MS, (each.until_ns - each.at_ns) / NS_PER_MS
            axes.broken_barh(
                [(begin_ms, length_ms)], (lanes.index(each.where) - 0.35, 0.7), color=INKS["type0"]
            )
        sent_ms, read_ms = (message.to_send_ns or 0) / NS_PER_MS, message.received_ns / NS_PER_MS
        has_ms = read_ms - (message.to_read_ns or 0) / NS_PER_MS
        axes.plot([0, sent_ms], [0, 0], color=INKS["ink"], linewidth=4)
        axes.plot([has_ms, read_ms], [1, 1], color=INKS["ink"], linewidth=4)
        axes.annotate(
            "",
            xy=(has_ms, 1),
            xytext=(sent_ms, 0),
            arrowprops={"arrowstyle": "->", "color": INKS["ink"], "linewidth": 1.2},
        )
        if excerpt.u_ns is not None:
            for at_ms, lane in ((sent_ms, 0), (read_ms, 1)):
                axes.errorbar(
                    [at_ms],
                    [lane],
                    xerr=excerpt.u_ns / NS_PER_MS,
                    color=INKS["type1"],
                    capsize=4,
                    linewidth=1.2,
                )
        axes.axvline(message.budget_ns / NS_PER_MS, color=INKS["fail"], linewidth=1.6)
        axes.set_xlim(-BEFORE_NS / NS_PER_MS, read_ms + AFTER_NS / NS_PER_MS)
        axes.set_yticks(range(len(lanes)), lanes)
        axes.set_ylim(len(lanes) - 0.4, -0.6)
        axes.set_xlabel(f"ms since message {message.sequence} of stream {message.stream} was due")
        return to_svg(
            figure,
            name,
            f"What happened around message {message.sequence} of stream {message.stream}",
            f"It took {format_value(message.received_ns, 'ns')} of {format_value(message.budget_ns, 'ns')}:"
            f" {message.cause.partition(': ')[2]}.",
        )
