# SPDX-License-Identifier: Apache-2.0
"""The latest messages of a replay: the stages of their ways, and the machine's pauses around each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reports.daq_replay.verdict import ReplayResults, witness_time
from reports.tools.answers import Miss
from reports.units import format_value

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


@dataclass(frozen=True, slots=True)
class WorstMessage:
    """A message over its budget in the stages of its way, in ns; None: a stamp beside it is missing.

    Attributes:
        to_send_ns: From its schedule until it was sent: the producer's.
        to_kernel_ns: From then until the target's kernel stamped it: network, card, or a target that stalled.
        to_read_ns: From then until its last byte was read: the target's scheduling and its consumer.
        after_start_ns: When it was received, from the start of the counted time on.
        held_producers: Producers whose streams were held at once, all that would show it; 0: not all.
    """

    stream: int
    sequence: int
    budget_ns: int
    received_ns: int
    to_send_ns: int | None
    to_kernel_ns: int | None
    to_read_ns: int | None
    after_start_ns: int
    held_producers: int = 0

    @property
    def held(self) -> str:
        """Return what stalled by what other streams show, in words; empty: they do not show it."""
        if not self.held_producers or self.most not in ("kernel", "unsplit"):
            return ""
        return f"all streams of {self.held_producers} producers at once: the receiver or its link stalled"

    @property
    def unsplit_ns(self) -> int | None:
        """Return what no stamp divides, from the last stamp before it; None: all stages are known."""
        if self.to_kernel_ns is not None:
            return None
        return self.received_ns - (self.to_send_ns or 0) - (self.to_read_ns or 0)

    @property
    def most(self) -> str:
        """Return the stage that took most: `send`, `kernel`, `read`, or `unsplit`."""
        stages = {
            "send": self.to_send_ns,
            "kernel": self.to_kernel_ns,
            "read": self.to_read_ns,
            "unsplit": self.unsplit_ns,
        }
        known = {name: length for name, length in stages.items() if length is not None}
        return max(known, key=lambda name: known[name])

    @property
    def cause(self) -> str:
        """Return how late it was, and in which stage most of it went, in words."""
        first = "its schedule" if self.to_send_ns is None else "sending"
        last = "the read" if self.to_read_ns is None else "the kernel's stamp"
        length_ns, where = {
            "send": (self.to_send_ns, "before it was sent"),
            "kernel": (self.to_kernel_ns, "between sending and the kernel's stamp"),
            "read": (self.to_read_ns, "between the kernel's stamp and the read"),
            "unsplit": (self.unsplit_ns, f"between {first} and {last}"),
        }[self.most]
        whole, part = format_value(self.received_ns, "ns"), format_value(length_ns, "ns")
        told = f"worst message no. {self.sequence}: of {whole}, {part} {where}"
        return f"{told}; {self.held}" if self.held else told


def worst_messages(replay: ReplayResults, stream: int | None = None) -> list[WorstMessage]:
    """Return the messages that are farthest over their budgets, by share of it; at most `SHOWN_MAX`.

    Args:
        replay: As it is judged.
        stream: Id of the stream whose messages are wanted, also those close to the budget; None: of all.
    """
    return _with_held(replay, _rated(replay, stream)[:SHOWN_MAX])


def worst_of_each_stream(replay: ReplayResults) -> list[WorstMessage]:
    """Return the message of each stream that is farthest over its budget, by number of the stream."""
    first: dict[int, tuple[Miss, int]] = {}
    for miss, budget_ns in _rated(replay):
        first.setdefault(miss.stream, (miss, budget_ns))
    return _with_held(replay, [first[stream] for stream in sorted(first)])


def _with_held(replay: ReplayResults, rated: Sequence[tuple[Miss, int]]) -> list[WorstMessage]:
    start_tai_ns = replay.recv.start_tai_ns
    worst = [_in_stages(miss, budget_ns, start_tai_ns) for miss, budget_ns in rated]
    return [
        replace(each, held_producers=_held_producers(replay, miss, each.to_kernel_ns or each.unsplit_ns or 0))
        for each, (miss, _budget_ns) in zip(worst, rated, strict=True)
    ]


def _held_producers(replay: ReplayResults, held: Miss, length_ns: int) -> int:
    """Return of how many producers all streams were held while a message was; 0: not of all, or of one alone.

    What held them for so long held a message of each stream of a shorter period for half of it.
    Where that is over three quarters of the budget it is in the log, and every such stream has to have one.
    """
    half_ns, end_ns = length_ns // 2, held.received_local_tai_ns
    shown = {
        miss.stream
        for miss in replay.misses
        if abs(miss.received_local_tai_ns - end_ns) <= half_ns
        and (miss.received_minus_sent_ns or miss.received_minus_scheduled_ns) >= half_ns
    }
    would_show = {
        each.id: each.producer
        for each in replay.recv.streams
        if each.period_ns <= half_ns and 3 * each.budget_ns < 4 * half_ns
    }
    producers = set(would_show.values())
    return len(producers) if len(producers) > 1 and shown >= would_show.keys() else 0


def _rated(replay: ReplayResults, stream: int | None = None) -> list[tuple[Miss, int]]:
    """Return what `worst_messages` has, all of it, with the budgets in ns, the worst first.

    Nothing is told of a stream whose clock broke its line: its stages would be made of the break.
    """
    budgets = {
        each.id: each.budget_ns for each in replay.recv.streams if not replay.clock_broke(each.producer)
    }
    rated = [
        (miss, budget_ns)
        for miss in replay.misses
        if (budget_ns := budgets.get(miss.stream))
        and (miss.stream == stream or (stream is None and miss.received_minus_scheduled_ns > budget_ns))
    ]
    return sorted(rated, key=lambda pair: -pair[0].received_minus_scheduled_ns / pair[1])


def _in_stages(miss: Miss, budget_ns: int, start_tai_ns: int) -> WorstMessage:
    whole_ns, own_ns, stamp_tai_ns = (
        miss.received_minus_scheduled_ns, miss.received_minus_sent_ns, miss.kernel_stamp_local_tai_ns
    )  # fmt: skip
    to_read_ns = None if stamp_tai_ns is None else miss.received_local_tai_ns - stamp_tai_ns
    return WorstMessage(
        miss.stream,
        miss.sequence,
        budget_ns,
        whole_ns,
        to_send_ns=None if own_ns is None else whole_ns - own_ns,
        to_kernel_ns=None if own_ns is None or to_read_ns is None else own_ns - to_read_ns,
        to_read_ns=to_read_ns,
        after_start_ns=miss.received_local_tai_ns - start_tai_ns,
    )


def latest_messages(
    replay: ReplayResults, ran: Mapping[tuple[int, int], tuple[Ran, ...]] | None = None
) -> list[LateMessage]:
    """Return those of `worst_messages` on the witness's clock; empty where that is not known.

    Args:
        replay: As it is judged.
        ran: By stream and sequence, what the target's virtual processor ran around a message.
    """
    by_witness = witness_time(replay)
    if by_witness is None:
        return []
    found: list[LateMessage] = []
    for miss, budget_ns in _rated(replay)[:SHOWN_MAX]:
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
        own = (ran or {}).get((miss.stream, miss.sequence), ())
        found.append(LateMessage(miss.stream, miss.sequence, budget_ns, sent_ns, length_ns, pauses, own))
    return found
