# SPDX-License-Identifier: Apache-2.0
"""The target's clock during a loop: how far it was off, and how it was corrected.

After the paper's Figs 4.2.1 and 4.3.3. The clock is asked by the node of the reference clock; of what nobody
corrects the line is taken off, so that what remains is its wander and what asking it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reports.control_loops.case import Case
from reports.dependence import Floats
from reports.timeline.clock_record import NS_PER_S, Times
from reports.timeline.recorded_end import RecordedEnd
from reports.timeline.sources import read_two_way_record

SHARES = 1, 99
"""Between them, in percent, lies what is called the range."""


@dataclass(frozen=True, eq=False)
class ClockCourse:
    """How far a clock was off over time.

    Attributes:
        case: What corrected it, and beside which load.
        at_s: Shape (n,), from the first exchange.
        off_ns: Shape (n,): less the median; of a clock that nothing corrects less its line.
        u_ns: Median U of an exchange.
        rate_ppb: How much faster it ran than the reference, over all.
    """

    case: Case
    at_s: Floats
    off_ns: Floats
    u_ns: int
    rate_ppb: float

    @property
    def name(self) -> str:
        """Return who corrected it, and beside what."""
        who = self.case.clock or "not corrected"
        return f"{who}, {self.case.load} load" if self.case.load else who

    @property
    def range_ns(self) -> tuple[float, float]:
        """Return between what 98 % of the exchanges lie."""
        low, high = np.percentile(self.off_ns, SHARES)
        return float(low), float(high)


def clock_course(folder: Path, case: Case, source: RecordedEnd) -> ClockCourse | None:
    """Return the course of the target's clock; None: it is the reference, or too few exchanges tell.

    Args:
        folder: Of the evidence.
        case: What corrects it, and beside which load.
        source: A program on the target.

    Raises:
        RecordError: The exchanges cannot be read.
    """
    if source.exchanges is None:
        return None
    record = read_two_way_record(folder / source.exchanges, source.node)
    if record.local_ns.size < 3:
        return None
    at_s = _since_first(record.tai_ns) / NS_PER_S
    off_ns = (record.local_ns - record.tai_ns).astype(np.float64)
    off_ns -= off_ns[0]
    passed_s = at_s - at_s.mean()
    rate = float(passed_s @ off_ns / (passed_s @ passed_s))
    line_ns = off_ns.mean() + rate * passed_s
    off_ns -= np.median(off_ns) if case.clock else line_ns
    return ClockCourse(case, at_s, off_ns, int(np.median(record.u_ns)), rate)


def _since_first(times_ns: Times) -> Floats:
    return (times_ns - times_ns[0]).astype(np.float64)
