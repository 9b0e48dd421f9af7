# SPDX-License-Identifier: Apache-2.0
"""The latest messages of a replay, with the machine's pauses around each: data and figure.

Each message has a row of its own whose time begins when it was scheduled, on the witness's clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from reports.latency import Replay, arrival_by_witness
from reports.svg import INKS, new_figure, style, to_svg
from reports.units import NS_PER_MS, format_value

Ran = tuple[int, int]
"""A time in ns, and what a thread has run since the one before, in ns."""

SHOWN_MAX = 8
AROUND_NS = 10_000_000
"""What is shown before a message was scheduled and after it arrived."""


@dataclass(frozen=True, slots=True)
class LateMessage:
    """A message over its budget; times in ns from its scheduled time on.

    Attributes:
        pauses: (start, end, CPU) of the machine's pauses around it.
        vcpu_ran: What the target's virtual processor ran around it; empty: it is not known.
    """

    stream: int
    sequence: int
    budget_ns: int
    sent_ns: int
    received_ns: int
    pauses: tuple[tuple[int, int, int], ...]
    vcpu_ran: tuple[Ran, ...] = ()


def latest_messages(
    replay: Replay, ran: Mapping[tuple[int, int], tuple[Ran, ...]] | None = None
) -> list[LateMessage]:
    """Return the messages that are farthest over their budgets, by share of it; at most `SHOWN_MAX`.

    Args:
        replay: As it is judged.
        ran: By stream and sequence, what the target's virtual processor ran around a message.
    """
    arrival = arrival_by_witness(replay)
    if arrival is None:
        return []
    budgets = {stream.id: stream.budget_ns for stream in replay.recv.streams}
    rated = sorted(
        (miss for miss in replay.misses if budgets.get(miss.stream)),
        key=lambda miss: -miss.received_minus_scheduled_ns / budgets[miss.stream],
    )
    found: list[LateMessage] = []
    for miss in rated[:SHOWN_MAX]:
        arrived_ns = arrival(miss)
        if arrived_ns is None:
            continue
        length_ns = miss.received_minus_scheduled_ns
        scheduled_ns = arrived_ns - length_ns
        windows = replay.witness.windows if replay.witness is not None else ()
        pauses = tuple(
            (start - scheduled_ns, end - scheduled_ns, cpu)
            for start, end, cpu in windows
            if end > scheduled_ns - AROUND_NS and start < arrived_ns + AROUND_NS
        )
        sent_ns = length_ns - miss.received_minus_sent_ns
        budget_ns = budgets[miss.stream]
        own = (ran or {}).get((miss.stream, miss.sequence), ())
        found.append(LateMessage(miss.stream, miss.sequence, budget_ns, sent_ns, length_ns, pauses, own))
    return found


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
