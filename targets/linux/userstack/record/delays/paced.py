# SPDX-License-Identifier: Apache-2.0
"""A time-out or a sleep that paces the data path.

The program pauses, asks the socket then, and has data at once: they came while it paused. A pause is a sleep,
or a wait that ended because its time was over. Between pause and read there may be quick calls, but no write:
what was asked for behind the pause is not what the pause held up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from timed_calls import Socket, Timed, Trace

from delays.finding import MOST, NS_PER_MS, REPEATS_MIN, Finding, is_worth, place_of, thread_of

PAUSE_MIN_NS = NS_PER_MS // 2
QUICK = 0.25
"""Of the pause: a call that takes no more has not waited."""
SAME = 0.25
"""By which asked times may differ from their median and still be of one pace."""


@dataclass
class Reads:
    """First reads of a socket: of several in a row the first.

    Attributes:
        count: Of them all.
        paced: Pause and read, where the read had data at once behind a pause.
    """

    count: int = 0
    paced: list[tuple[Timed, Timed]] = field(default_factory=list[tuple[Timed, Timed]])


def look(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each socket and thread."""
    for calls in trace.of_threads().values():
        for socket, reads in _reads(calls).items():
            paced = reads.paced
            cost_ns = sum(pause.end_ns - max(pause.begin_ns, trace.first_ns) for pause, _ in paced)
            if len(paced) < max(REPEATS_MIN, MOST * reads.count) or not is_worth(trace, cost_ns):
                continue
            pace_ns = median(pause.timeout_ns for pause, _ in paced)
            regular = sum(abs(pause.timeout_ns - pace_ns) <= SAME * pace_ns for pause, _ in paced)
            if regular < MOST * len(paced):
                continue
            kinds = {"sleep" if pause.call == "sleep" else "time-out of a wait" for pause, _ in paced}
            yield Finding(
                "a time-out or sleep paces the data path",
                f"{place_of(trace, socket)}, {thread_of(paced[0][1])}",
                f"{len(paced)} of {reads.count} reads have data at once behind a "
                f"{' or '.join(sorted(kinds))} "
                f"of {pace_ns / NS_PER_MS:g} ms",
                cost_ns,
                "at most, all of these pauses: data came at some moment of each; half where they come at any",
                [pause.line for pause, _ in paced],
                "wait for the socket (select, poll, a blocking read) without pausing before",
            )


def _reads(calls: Sequence[Timed]) -> dict[Socket, Reads]:
    found: dict[Socket, Reads] = defaultdict(Reads)
    pause: Timed | None = None
    before: Timed | None = None
    for call in calls:
        if call.call == "sleep" or call.is_timed_out:
            pause = call if call.duration_ns >= PAUSE_MIN_NS else pause
        elif call.call == "receive" and call.socket is not None:
            follows = before is not None and before.is_transfer and before.call == "receive"
            if call.is_transfer and not (follows and before and before.socket == call.socket):
                found[call.socket].count += 1
                if pause and call.duration_ns <= QUICK * pause.duration_ns:
                    found[call.socket].paced.append((pause, call))
            pause = None
        elif pause and not _keeps(pause, call):
            pause = None
        before = call
    return found


def _keeps(pause: Timed, call: Timed) -> bool:
    """Say whether what comes behind a call still comes behind the pause."""
    if call.call == "wait" and pause.call != "sleep":
        return False  # it waits for the socket, and has only waited in pieces
    return call.call != "send" and call.duration_ns <= QUICK * pause.duration_ns
