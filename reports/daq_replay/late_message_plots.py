# SPDX-License-Identifier: Apache-2.0
"""The figure of the latest messages of a replay.

Each message has a row of its own whose time begins when it was scheduled, on the witness's clock.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from reports.daq_replay.late_messages import LateMessage, Ran
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import NS_PER_MS, format_value

COLUMNS_MAX = 600
"""What a row of the figure can show beside each other; more readings than that are put together."""


def figure_late_messages(name: str, messages: list[LateMessage]) -> str:
    """Draw late messages from schedule to receipt, and the machine's pauses around them."""
    with style(name):
        figure = new_figure(11.6, 0.9 + 0.42 * len(messages))
        axes = figure.add_subplot()
        cpus = sorted({cpu for message in messages for _, _, cpu in message.pauses})
        for row, message in enumerate(messages):
            for cpu, spans in _pauses_by_cpu(message).items():
                height = 0.7 / len(cpus)
                top = row - 0.35 + height * cpus.index(cpu)
                axes.broken_barh(
                    [(start / NS_PER_MS, (end - start) / NS_PER_MS) for start, end in spans],
                    (top, height),
                    color=INKS["band"],
                )
            if len(message.vcpu_ran) > 1:
                times_ns, shares = shares_of(message.vcpu_ran)
                low = row + 0.48
                axes.fill_between(
                    times_ns / NS_PER_MS,
                    low - 0.3 * np.append(shares, shares[-1]),
                    low,
                    step="post",
                    color=INKS["type0"],
                    linewidth=0,
                )
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


def shares_of(ran: tuple[Ran, ...], columns_max: int = COLUMNS_MAX) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of time that a thread ran, interval by interval; many are put together.

    Args:
        ran: Readings, two at least: a time in ns, and what was run since the one before.
        columns_max: Intervals at most.

    Returns:
        Times of shape (n + 1,) in ns, shares of shape (n,) from 0 to 1; n is `columns_max` at most.
    """
    times_ns = np.array([time_ns for time_ns, _ in ran], dtype=np.int64)
    total_ns = np.cumsum([0, *(ran_ns for _, ran_ns in ran[1:])], dtype=np.int64)
    if len(ran) > columns_max + 1:
        kept = np.linspace(0, len(ran) - 1, columns_max + 1).round().astype(np.int64)
        times_ns, total_ns = times_ns[kept], total_ns[kept]
    lengths_ns = np.maximum(1, np.diff(times_ns))
    return times_ns, np.clip(np.diff(total_ns) / lengths_ns, 0.0, 1.0)


def _pauses_by_cpu(message: LateMessage) -> dict[int, list[tuple[int, int]]]:
    """Return the pauses around a message by CPU; those that one column of the figure holds are one."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for start, end, cpu in sorted(message.pauses):
        spans.setdefault(cpu, []).append((start, end))
    whole_ns = max((end for _, end, _ in message.pauses), default=0) - min(
        (start for start, _, _ in message.pauses), default=0
    )
    return {cpu: _joined(each, whole_ns // COLUMNS_MAX) for cpu, each in spans.items()}


def _joined(spans: Iterable[tuple[int, int]], gap_ns: int) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start - joined[-1][1] < gap_ns:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
