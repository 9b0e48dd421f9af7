# SPDX-License-Identifier: Apache-2.0
"""The latest messages of a replay, with the machine's pauses around each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reports.latency.verdict import ReplayResults, witness_time

Ran = tuple[int, int]
"""A time in ns, and what a thread has run since the one before, in ns."""

SHOWN_MAX = 8
EMULATOR = -1
"""In place of a CPU, where the emulator did not run the target."""
AROUND_NS = 10_000_000
"""What is shown before a message was scheduled and after it arrived."""


@dataclass(frozen=True, slots=True)
class LateMessage:
    """A message over its budget; times in ns from its scheduled time on.

    Attributes:
        pauses: (start, end, CPU) of the machine's pauses around it; the CPU is `EMULATOR` for the emulator's.
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
    replay: ReplayResults, ran: Mapping[tuple[int, int], tuple[Ran, ...]] | None = None
) -> list[LateMessage]:
    """Return the messages that are farthest over their budgets, by share of it; at most `SHOWN_MAX`.

    Args:
        replay: As it is judged.
        ran: By stream and sequence, what the target's virtual processor ran around a message.
    """
    by_witness = witness_time(replay)
    if by_witness is None:
        return []
    budgets = {stream.id: stream.budget_ns for stream in replay.recv.streams}
    rated = sorted(
        (miss for miss in replay.misses if budgets.get(miss.stream)),
        key=lambda miss: -miss.received_minus_scheduled_ns / budgets[miss.stream],
    )
    found: list[LateMessage] = []
    for miss in rated[:SHOWN_MAX]:
        arrived_ns = by_witness(miss.received_local_tai_ns)
        if arrived_ns is None:
            continue
        length_ns = miss.received_minus_scheduled_ns
        scheduled_ns = arrived_ns - length_ns
        windows = replay.witness.windows if replay.witness is not None else ()
        of_emulator = ((start, end, EMULATOR) for start, end in replay.emulator_pauses)
        pauses = tuple(
            (start - scheduled_ns, end - scheduled_ns, cpu)
            for start, end, cpu in (*windows, *of_emulator)
            if end > scheduled_ns - AROUND_NS and start < arrived_ns + AROUND_NS
        )
        sent_ns = length_ns - (miss.received_minus_sent_ns or 0)
        budget_ns = budgets[miss.stream]
        own = (ran or {}).get((miss.stream, miss.sequence), ())
        found.append(LateMessage(miss.stream, miss.sequence, budget_ns, sent_ns, length_ns, pauses, own))
    return found
