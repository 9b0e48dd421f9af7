# SPDX-License-Identifier: Apache-2.0
"""One thread behind many sockets: a ready socket waits while its thread is busy with others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from timed_calls import Socket, Timed, Trace

from delays.finding import NS_PER_MS, REPEATS_MIN, Finding, is_worth, thread_of

LATE_MIN_NS = NS_PER_MS
"""Median of what the last socket waits: handing data on takes less, working on it more."""


class Round(NamedTuple):
    """A wait that reported several sockets, and the first read of each, in order."""

    wait: Timed
    reads: Sequence[Timed]

    @property
    def late_ns(self) -> int:
        """What the last socket waited while the thread was busy with the others."""
        return self.reads[-1].begin_ns - self.reads[0].begin_ns


def look(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each thread."""
    for calls in trace.of_threads().values():
        rounds = list(_rounds(calls))
        cost_ns = sum(each.late_ns for each in rounds)
        if len(rounds) < REPEATS_MIN or not is_worth(trace, cost_ns):
            continue
        late_ns = median(each.late_ns for each in rounds)
        if late_ns < LATE_MIN_NS:
            continue
        sockets = {read.socket for each in rounds for read in each.reads}
        count = median(len(each.reads) for each in rounds)
        yield Finding(
            "one thread is behind many sockets",
            f"{thread_of(calls[0])}, {len(sockets)} sockets: {_numbers(sockets)}",
            f"{len(rounds)} waits that reported several ready sockets, {count:g} of them (median)",
            cost_ns,
            f"what the last ready socket waited until it was read, {late_ns / NS_PER_MS:.1f} ms (median), "
            "while the thread was busy with the others",
            [each.wait.line for each in rounds],
            "work on data in other threads, or give each socket a thread of its own",
        )


def _numbers(sockets: set[Socket | None]) -> str:
    return ", ".join(str(socket[1]) for socket in sorted(filter(None, sockets)))


def _rounds(calls: Sequence[Timed]) -> Iterator[Round]:
    wait: Timed | None = None
    reads: dict[Socket, Timed] = {}
    for call in calls:
        if call.call == "wait":
            if wait and len(reads) > 1:
                yield Round(wait, list(reads.values()))
            wait, reads = (call if len(call.ready) > 1 else None), {}
        elif wait and call.call == "receive" and call.socket in wait.ready and call.socket:
            reads.setdefault(call.socket, call)
    if wait and len(reads) > 1:
        yield Round(wait, list(reads.values()))
