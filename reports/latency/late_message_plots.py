# SPDX-License-Identifier: Apache-2.0
"""The figure of the latest messages of a replay.

Each message has a row of its own whose time begins when it was scheduled, on the witness's clock.
"""

from __future__ import annotations

import itertools

from reports.latency.late_messages import LateMessage
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import NS_PER_MS, format_value


def figure_late_messages(name: str, messages: list[LateMessage]) -> str:
    """Draw late messages from schedule to receipt, and the machine's pauses around them."""
    with style(name):
        figure = new_figure(11.6, 0.9 + 0.42 * len(messages))
        axes = figure.add_subplot()
        cpus = sorted({cpu for message in messages for _, _, cpu in message.pauses})
        for row, message in enumerate(messages):
            for start, end, cpu in message.pauses:
                height = 0.7 / max(1, len(cpus))
                top = row - 0.35 + height * cpus.index(cpu)
                axes.broken_barh(
                    [(start / NS_PER_MS, (end - start) / NS_PER_MS)], (top, height), color=INKS["band"]
                )
            for (since_ns, _), (until_ns, ran_ns) in itertools.pairwise(message.vcpu_ran):
                share = min(1.0, ran_ns / max(1, until_ns - since_ns))
                place = (since_ns / NS_PER_MS, (until_ns - since_ns) / NS_PER_MS)
                axes.broken_barh([place], (row + 0.48 - 0.3 * share, 0.3 * share), color=INKS["type0"])
            sent_ms, received_ms = message.sent_ns / NS_PER_MS, message.received_ns / NS_PER_MS
            axes.plot([0, sent_ms], [row, row], color=INKS["muted"], linestyle=":", linewidth=1.4)
            axes.plot([sent_ms, received_ms], [row, row], color=INKS["ink"], linewidth=1.6)
            axes.plot([received_ms], [row], color=INKS["ink"], marker=">", markersize=5)
            axes.plot(
                [message.budget_ns / NS_PER_MS] * 2, [row - 0.4, row + 0.4], color=INKS["fail"], linewidth=2.0
            )
        labels = [f"{message.stream}, no. {message.sequence}" for message in messages]
        axes.set_yticks(range(len(messages)), labels)
        axes.set_ylim(len(messages) - 0.4, -0.6)
        axes.set_xlabel("ms since the message was scheduled")
        worst = max(messages, key=lambda message: message.received_ns / message.budget_ns)
        return to_svg(
            figure,
            name,
            "Late messages and the pauses of the machine around them",
            f"{len(messages)} messages, worst first: stream {worst.stream} took"
            f" {format_value(worst.received_ns, 'ns')} of {format_value(worst.budget_ns, 'ns')}.",
        )
