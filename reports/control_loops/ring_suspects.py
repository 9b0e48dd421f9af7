# SPDX-License-Identifier: Apache-2.0
"""Who had the time of a ring's late messages.

A message is under way from when it was due: a source that is held up writes late, which the whole of the
ring does not show.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.causes.suspects import Finding, Flags, Times, suspects
from reports.control_loops.pace import due_ns
from reports.control_loops.ring import Ring
from reports.control_loops.ring_activities import ring_activities
from reports.dependence import Floats

LATE_MIN_NS = 1_000_000
LATE_SCATTER = 10
"""A message is late that is above the median by so many times the median distance from it."""


@dataclass(frozen=True, eq=False)
class Late:
    """Which messages are late, and by how much.

    Attributes:
        excess_ns: Above the median, shape (n,).
        is_late: Shape (n,).
    """

    excess_ns: Floats
    is_late: Flags


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
    due = due_ns(ring, folder)
    late = late_messages(ring.whole.received.tai_ns - due)
    if not late.is_late.any():
        return None
    there = ring_activities(ring, due, folder)
    kept = [each for each in there.active if not each.name.startswith(left_out)]
    return suspects(late.excess_ns, late.is_late, there.stays, kept, unrecorded=there.unrecorded)
