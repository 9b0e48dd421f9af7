# SPDX-License-Identifier: Apache-2.0
"""Who had the time of a ring's late messages: what the target's kernel recorded, on the timeline.

A message is at the target from when it was due until it has left, and while it comes back: on the first hop
and on the last one. A source that is held up writes late, which the whole of the ring does not show. The
kernel's events go by the target's TAI, which the exchanges of its clock bring to the timeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from reports.causes.kernel_activity import kernel_activities, merged
from reports.causes.suspects import Activity, Finding, Flags, Stay, Times, suspects, without
from reports.clock_sync.tai_utc import load_tai_utc
from reports.control_loops.ring import Ring
from reports.dependence import Floats
from reports.errors import RecordError
from reports.timeline.clock_record import NS_PER_S
from reports.timeline.kernel_recording import load_recording
from reports.timeline.leg import Leg
from reports.tools.answers import last_result, witness_result

KERNEL_RING = "kernel-ring.gz"
"""Of the target, by the trace clock `tai`."""
WITNESS = "witness.ndjson"
MACHINE = "the bench's machine, held up"
LATE_MIN_NS = 1_000_000
LATE_SCATTER = 10
"""A message is late that is above the median by so many times the median distance from it."""


ON_TIME = 0.1
"""Of the messages at least so many are written when they are due."""


@dataclass(frozen=True, eq=False)
class Late:
    """Which messages are late, and by how much.

    Attributes:
        excess_ns: Above the median, shape (n,).
        is_late: Shape (n,).
    """

    excess_ns: Floats
    is_late: Flags


def due_ns(ring: Ring) -> Times:
    """Return when each message of the whole was due on the timeline, shape (n,): not after its writing.

    The source writes one an interval by its own clock, whose rate is that of the medians of both halves; who
    is on time is early.
    """
    number, sent_ns = ring.whole.number, ring.whole.sent.tai_ns
    nominal_ns = (number - number[0]) * (ring.facts.interval_us * 1000)
    behind = (sent_ns - sent_ns[0] - nominal_ns).astype(np.float64)
    half = len(number) // 2
    (at, early), (later, late) = (
        (float(np.median(nominal_ns[part])), float(np.median(behind[part])))
        for part in (slice(half), slice(half, None))
    )
    behind -= nominal_ns * (late - early) / (later - at)
    lag_ns = np.rint(behind - np.quantile(behind, ON_TIME)).astype(np.int64)
    return sent_ns - np.maximum(lag_ns, 0)


def late_messages(took_ns: Times) -> Late:
    """Return which messages are late, of what each took in ns, shape (n,)."""
    took = took_ns.astype(np.float64)
    level = float(np.median(took))
    scatter = float(np.median(np.abs(took - level)))
    return Late(took - level, took - level > max(LATE_MIN_NS, LATE_SCATTER * scatter))


def ring_suspects(ring: Ring, folder: Path, left_out: tuple[str, ...] = ()) -> Finding | None:
    """Tell who had the time of late messages; None: no message is late.

    Args:
        ring: As it was read.
        folder: Of its evidence.
        left_out: Activities whose names begin so count as not recorded.

    Raises:
        RecordError: The kernel was not recorded, or its recording cannot be read.
    """
    due = due_ns(ring)
    late = late_messages(ring.whole.received.tai_ns - due)
    if not late.is_late.any():
        return None
    target = ring.facts.ends[0].node
    activities, unrecorded = _recorded_activities(ring, folder)
    kept = [each for each in activities if not each.name.startswith(left_out)]
    lost = {target: unrecorded}
    return suspects(late.excess_ns, late.is_late, _stays(ring, due), kept, unrecorded=lost)


def _stays(ring: Ring, due: Times) -> list[Stay]:
    """Return where each message of the whole is: at the target until it has left, and on the last hop."""
    first, last = _stay(ring, ring.hops[0]), _stay(ring, ring.hops[-1])
    return [replace(first, begin_ns=np.minimum(due, first.begin_ns)), last]


def _recorded_activities(ring: Ring, folder: Path) -> tuple[list[Activity], tuple[Times, Times]]:
    """Return what was active on the target on the timeline, and what nobody knows; raises RecordError."""
    target = ring.facts.ends[0]
    if not (folder / KERNEL_RING).exists():
        raise RecordError(f"the kernel of {target.node} was not recorded: {KERNEL_RING} would tell")
    known = load_tai_utc(folder)
    kernels = {each.node: each.kernel_s for each in known.nodes} if known else {}
    if target.node not in kernels:
        raise RecordError(f"what the kernel of {target.node} takes for TAI - UTC is not known")
    found, unrecorded = kernel_activities(
        target.node, load_recording(folder / KERNEL_RING), -kernels[target.node] * NS_PER_S
    )

    def placed(realtime_ns: Times) -> Times:
        return target.stamp_places(folder, realtime_ns, ring.facts.tai_utc_s).tai_ns

    on_timeline = [
        Activity(each.name, each.node, placed(each.begin_ns), placed(each.end_ns)) for each in found
    ]
    stalled = _stalled(target.node, folder)
    # A processor that is held up still has whatever thread it had.
    kept = [without(each, stalled.begin_ns, stalled.end_ns) for each in on_timeline]
    begin, end = unrecorded
    return [*kept, stalled], (placed(begin), np.where(end > 1 << 61, end, placed(end)))


def _stalled(node: str, folder: Path) -> Activity:
    """Return when a processor of the bench's own machine was held up, by its witness; raises RecordError."""
    windows: Sequence[tuple[int, int, int]] = ()
    if (folder / WITNESS).exists():
        windows = witness_result(last_result(folder / WITNESS)).windows
    begin, end = merged([(first, last) for first, last, _ in windows])
    return Activity(MACHINE, node, begin, end)


def _stay(ring: Ring, leg: Leg) -> Stay:
    """Return where each message of the whole is on a hop; one without a place there is nowhere."""
    number = ring.whole.number
    _, one, other = np.intersect1d(number, leg.number, assume_unique=True, return_indices=True)
    begin, end = (np.full(len(number), ring.whole.sent.tai_ns[0], np.int64) for _ in range(2))
    begin[one], end[one] = leg.sent.tai_ns[other], leg.received.tai_ns[other]
    u_ns = float(np.median(leg.u_ns)) if len(leg) else 0.0
    return Stay(ring.facts.ends[0].node, begin, end, u_ns)
