# SPDX-License-Identifier: Apache-2.0
"""A name that is looked up in the data path: by a thread between its first and its last transfer.

Many look-ups are named whatever they cost this time: a name server that is slow or gone takes seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from statistics import median

from timed_calls import Socket, Timed, Trace

from delays.finding import NS_PER_MS, REPEATS_MIN, Finding, is_worth, place_of, thread_of


def look(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each thread."""
    for calls in trace.of_threads().values():
        lookups = _between_transfers(calls)
        cost_ns = sum(call.duration_ns for call in lookups)
        if len(lookups) < REPEATS_MIN and not is_worth(trace, cost_ns):
            continue
        sockets = _in_use(calls, lookups)
        names = Counter(call.name for call in lookups)
        told = ", ".join(f'"{name}" {count}' for name, count in names.most_common(4))
        more = f" and {len(names) - 4} more names" if len(names) > 4 else ""
        failed = sum(call.result < 0 for call in lookups)
        each_ns = median(call.duration_ns for call in lookups)
        yield Finding(
            "a name is looked up in the data path",
            "; ".join([thread_of(calls[0]), *(place_of(trace, socket) for socket in sockets)]),
            f"{len(lookups)} look-ups ({told}{more}){f', {failed} of them failed' if failed else ''}",
            cost_ns,
            f"the time in these calls, {each_ns / NS_PER_MS:.2f} ms (median)",
            [call.line for call in lookups],
            "look the name up once, before data flow, and keep its address",
        )


def _between_transfers(calls: Sequence[Timed]) -> list[Timed]:
    moved = [place for place, call in enumerate(calls) if call.is_transfer]
    if not moved:
        return []
    within = calls[moved[0] : moved[-1]]
    return [call for call in within if call.call == "resolve" and not _is_number(call.name)]


def _is_number(name: str) -> bool:
    """Say whether a name is an address: nobody is asked for it."""
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return not name
    return True


def _in_use(calls: Sequence[Timed], lookups: Sequence[Timed]) -> list[Socket]:
    """Return the sockets that the thread used before and after a look-up."""
    first: dict[Socket, int] = {}
    last: dict[Socket, int] = {}
    for call in calls:
        if call.is_transfer and call.socket:
            first.setdefault(call.socket, call.begin_ns)
            last[call.socket] = call.begin_ns
    return sorted(
        socket for socket in first if any(first[socket] < call.begin_ns < last[socket] for call in lookups)
    )
