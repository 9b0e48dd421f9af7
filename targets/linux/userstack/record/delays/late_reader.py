# SPDX-License-Identifier: Apache-2.0
"""A reader that comes late: behind time of the program's own its reads are full at once, again and again.

So data had come faster than it read, and what held them up is the program. A processor that somebody else
has for a while looks the same once; so such reads have to be many, and most of those behind own time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from timed_calls import STREAM, Socket, Timed, Trace

from delays.finding import NS_PER_MS, REPEATS_MIN, Finding, is_worth, place_of, thread_of

OWN_MIN_NS = NS_PER_MS
"""Time outside of calls from which on the program has worked."""
AT_ONCE = 0.25
"""Of that time: a call that takes no more has not waited for data."""
FULL_MIN = 0.5
"""Part of the reads behind own time that are full at once; a window may cut the others short."""
READS_MIN = 0.25
"""Part of the socket's reads that the program's own time comes before; a fast reader that lost the processor
now and then has many others between."""


def look(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each socket and thread."""
    for calls in trace.of_threads().values():
        for socket, reads in _reads(calls).items():
            behind = [(own_ns, call) for own_ns, call in reads if own_ns >= OWN_MIN_NS]
            late = [(own_ns, call) for own_ns, call in behind if _is_full_at_once(own_ns, call)]
            cost_ns = sum(own_ns for own_ns, _ in late)
            if trace.sockets[socket].kind != STREAM or not is_worth(trace, cost_ns):
                continue
            if len(late) < max(REPEATS_MIN, FULL_MIN * len(behind)) or len(behind) < READS_MIN * len(reads):
                continue
            each_ns = median(own_ns for own_ns, _ in late)
            yield Finding(
                "the reader comes late",
                f"{place_of(trace, socket)}, {thread_of(late[0][1])}",
                f"{len(late)} of {len(reads)} reads full at once behind the program's own time",
                cost_ns,
                f"time outside of all calls before these reads, {each_ns / NS_PER_MS:.1f} ms (median), "
                "while data lay there",
                [call.line for _, call in late],
                "read in a thread that does nothing else, or shorten the work between two reads",
            )


def _reads(calls: Sequence[Timed]) -> dict[Socket, list[tuple[int, Timed]]]:
    """Return a thread's reads by socket, each with its own time since the last call that mattered.

    Own time before the first transfer is no time of the data path.
    """
    found: dict[Socket, list[tuple[int, Timed]]] = defaultdict(list)
    own_ns, has_begun = 0, False
    for call in calls:
        own_ns += call.own_ns if has_begun else 0
        has_begun = has_begun or call.is_transfer
        if call.call == "receive" and call.is_transfer and call.socket:
            found[call.socket].append((own_ns, call))
        if not (call.call == "wait" and call.ready and call.duration_ns <= AT_ONCE * own_ns):
            own_ns = 0  # else the wait has only said that there are data
    return found


def _is_full_at_once(own_ns: int, call: Timed) -> bool:
    return call.result == call.asked_bytes and call.duration_ns <= AT_ONCE * own_ns
