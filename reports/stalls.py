# SPDX-License-Identifier: Apache-2.0
"""When the bench stood still, and when it had caught up.

Two stall witnesses run on each CPU. The one of the highest priority wakes up late only when the machine
itself stood still. The one of the lowest real-time priority wakes up late also while guests, links and
producers work off what has gathered meanwhile: a message that is sent into that backlog is delayed by the
stall as much as one that was under way during it.
"""

from __future__ import annotations

import dataclasses

from reports.answers import WitnessResult

GAP_NS = 4_000_000
"""Two late wake-ups no further apart than this belong to one backlog: one between them may be in time."""


def until_caught_up(stalls: WitnessResult, backlog: WitnessResult) -> WitnessResult:
    """Return the stalls with each window extended to the end of the backlog that it has left.

    A backlog without a stall is ordinary work and excuses nothing; the stalled time stays that of the stalls.

    Args:
        stalls: Windows of the witness of highest priority, CLOCK_TAI of its machine, ns.
        backlog: Windows of the witness of lowest real-time priority on the same machine.
    """
    busy = _joined([(start, end) for start, end, _ in backlog.windows])
    windows: list[tuple[int, int, int]] = []
    for start, end, cpu in stalls.windows:
        ends = [until for since, until in busy if since <= end + GAP_NS and until >= start]
        windows.append((start, max([end, *ends]), cpu))
    return dataclasses.replace(stalls, windows=tuple(windows))


def _joined(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join intervals that overlap or lie no further apart than GAP_NS."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1] + GAP_NS:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
