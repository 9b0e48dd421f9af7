# SPDX-License-Identifier: Apache-2.0
"""Small writes of which the second waits for the acknowledgement of the first.

By Nagle's algorithm (RFC 896, RFC 9293 section 3.7.4) a small segment is held back while an earlier one is
not acknowledged, and the peer delays its acknowledgement (RFC 9293 section 3.8.6.3) as long as it has no
answer. What a program sees of it is write, write, read, and a read that takes as long as the peer's delay: of
Linux 40 ms (TCP_DELACK_MIN), of Windows 200 ms or, by its newer templates, 40 to 50 ms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from timed_calls import STREAM, SocketFacts, Timed, Trace

from delays.finding import NS_PER_MS, REPEATS_MIN, Finding, is_worth, place_of

SEGMENT_BYTES = 1448
"""Of Ethernet; what is smaller cannot fill one."""
DELAYS_NS = ((35 * NS_PER_MS, 65 * NS_PER_MS), (180 * NS_PER_MS, 260 * NS_PER_MS))
"""Between which the lower quartile of long waits is a delayed acknowledgement: a busy machine makes waits
longer, and none shorter than the timer."""
LONG_NS = DELAYS_NS[0][0]
LONG_MIN = 0.5
"""Part of the answers to several writes that come so late: at first a peer acknowledges at once."""
OTHERS_MAX = 0.5
"""Of the long waits: where answers to single writes take that much, the peer does."""


class Exchange(NamedTuple):
    """Writes, and the first read behind them."""

    sends: Sequence[Timed]
    answer: Timed

    @property
    def wait_ns(self) -> int:
        """Time from the last write's end to the answer's."""
        return self.answer.end_ns - self.sends[-1].end_ns

    @property
    def is_small_behind_small(self) -> bool:
        """Whether the last write may have been held back."""
        return len(self.sends) > 1 and self.sends[-1].result < SEGMENT_BYTES


def look(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each connection."""
    for socket, calls in trace.of_sockets().items():
        facts = trace.sockets[socket]
        if facts.kind != STREAM:
            continue
        exchanges = list(_exchanges(calls))
        held = [each for each in exchanges if _may_be_held(each, facts)]
        late = sorted((each for each in held if each.wait_ns >= LONG_NS), key=lambda each: each.wait_ns)
        if len(late) < max(REPEATS_MIN, LONG_MIN * len(held)):
            continue
        delay_ns = late[len(late) // 4].wait_ns
        answer_ns = _answer_ns(exchanges, held)
        cost_ns = round(len(late) * (delay_ns - answer_ns))
        if not _is_a_delay(delay_ns) or answer_ns > OTHERS_MAX * delay_ns or not is_worth(trace, cost_ns):
            continue
        yield Finding(
            "small writes wait for an acknowledgement",
            f"{place_of(trace, socket)}, without TCP_NODELAY",
            f"{len(late)} of {len(held)} answers to several writes",
            cost_ns,
            f"{len(late)} times {delay_ns / NS_PER_MS:.0f} ms (lower quartile of these waits), as long as a "
            f"delayed acknowledgement, less {answer_ns / NS_PER_MS:.2f} ms of an answer without",
            sorted(each.sends[-1].line for each in late),
            "write a message at once (writev, WSASend with several buffers), or set TCP_NODELAY",
        )


def _answer_ns(exchanges: Sequence[Exchange], held: Sequence[Exchange]) -> float:
    """Return what an answer takes without a delay, in ns; 0: the connection does not show it."""
    if single := [each.wait_ns for each in exchanges if len(each.sends) == 1]:
        return median(single)
    return min((each.wait_ns for each in held if each.wait_ns < LONG_NS), default=0)


def _is_a_delay(delay_ns: float) -> bool:
    return any(low <= delay_ns <= high for low, high in DELAYS_NS)


def _exchanges(calls: Sequence[Timed]) -> Iterator[Exchange]:
    sends: list[Timed] = []
    for call in calls:
        if not call.is_transfer:
            continue
        if call.call == "send":
            sends.append(call)
        elif sends:
            yield Exchange(sends, call)
            sends = []


def _may_be_held(exchange: Exchange, facts: SocketFacts) -> bool:
    """Say whether the last write met an earlier one without TCP_NODELAY."""
    return exchange.is_small_behind_small and not facts.has_no_delay(exchange.sends[-1].begin_ns)
