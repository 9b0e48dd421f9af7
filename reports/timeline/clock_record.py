# SPDX-License-Identifier: Apache-2.0
"""What is known of a node's clock over a run: readings of it against TAI, each with its bound and U.

From whatever source they come, two-way transfer, the time service, a card or a chain of these, readings have
one form: what the clock showed, TAI then, the hard bound of the error, and its U (k = 2). All times are in
ns; a counter's ticks are turned into ns at its nominal frequency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reports.errors import RecordError

Times = NDArray[np.int64]
BreakKind = Literal["step", "stopped", "restart", "gap"]
NS_PER_S = 1_000_000_000
SPAN_MAX_NS = 1 << 53
"""104 days: what a float tells to the nanosecond."""
LARGEST_NS = 1 << 62


@dataclass(frozen=True, slots=True)
class ClockLimits:
    """What is taken for granted of an oscillator; U and bound rest on it.

    Attributes:
        rate_ppb: Its frequency is off by no more.
        drift_ppb: At any moment its frequency is no further from its mean over `window_ns` or less around it.
        wander_ppb_per_sqrt_s: Random walk of its frequency, as U takes it.
        window_ns: Readings further apart than that are not interpolated between.
    """

    rate_ppb: int = 300_000
    drift_ppb: int = 15_000
    wander_ppb_per_sqrt_s: int = 100
    window_ns: int = 300 * NS_PER_S


@dataclass(frozen=True, slots=True, eq=False)
class ClockRecord:
    """Readings of one clock of a node, in the order in which they were made.

    Attributes:
        node: Whose clock.
        clock: Its name, such as `counter` or `monotonic`.
        source: By what it was read, for people.
        is_counter: Nobody can step it: where it loses time, it had stopped.
        local_ns: Shape (n,): what the clock showed.
        tai_ns: Shape (n,): TAI then, as the source tells it.
        bound_ns: Shape (n,): hard bound of the error of `tai_ns`, 0 and more.
        u_ns: Shape (n,): U of the error, no more than the bound.
        limits: Of its oscillator.
    """

    node: str
    clock: str
    source: str
    is_counter: bool
    local_ns: Times
    tai_ns: Times
    bound_ns: Times
    u_ns: Times
    limits: ClockLimits = field(default_factory=ClockLimits)

    def __post_init__(self) -> None:
        """Check the readings.

        Raises:
            RecordError: Names the column and the reading.
        """
        columns = {name: getattr(self, name) for name in ("local_ns", "tai_ns", "bound_ns", "u_ns")}
        for name, column in columns.items():
            if column.shape != self.local_ns.shape or column.ndim != 1:
                raise RecordError(
                    f"clock of {self.node}: {name}: shape {column.shape}, must be that of local_ns"
                )
        if not self.local_ns.size:
            raise RecordError(f"clock of {self.node}: no reading")
        for name, column in columns.items():
            from_ns, to_ns = int(column.min()), int(column.max())
            if from_ns < -LARGEST_NS or to_ns > LARGEST_NS or to_ns - from_ns > SPAN_MAX_NS:
                raise RecordError(f"clock of {self.node}: {name}: must be within 104 days, and 146 years")
            if name in ("bound_ns", "u_ns") and to_ns > SPAN_MAX_NS:
                raise RecordError(f"clock of {self.node}: {name}: must be at most {SPAN_MAX_NS}")
        wrong = (self.bound_ns < 0) | (self.u_ns < 0) | (self.u_ns > self.bound_ns)
        if wrong.any():
            raise RecordError(f"clock of {self.node}: u_ns[{wrong.argmax()}]: must be from 0 to bound_ns")
        backwards = np.diff(self.tai_ns) < -(self.bound_ns[1:] + self.bound_ns[:-1])
        if backwards.any():
            raise RecordError(
                f"clock of {self.node}: tai_ns[{1 + backwards.argmax()}]: before the one before it"
            )

    @property
    def name(self) -> str:
        """Return node and clock."""
        return f"{self.node}:{self.clock}"


def nominal_ns(ticks: Sequence[int] | NDArray[np.uint64], frequency_hz: int) -> Times:
    """Return ticks of a counter as ns at its nominal frequency, exact to the nanosecond below.

    Args:
        ticks: Shape (n,), each below 2**63.
        frequency_hz: From 1 to 10**10; a counter that would pass 2**63 ns is refused.

    Raises:
        RecordError: It cannot be.
    """
    if not 1 <= frequency_hz <= 10_000_000_000:
        raise RecordError(f"frequency_hz: must be from 1 to 10000000000, found {frequency_hz}")
    whole, rest = np.divmod(np.asarray(ticks, np.int64), np.int64(frequency_hz))
    if whole.size and (whole.min() < 0 or whole.max() >= (1 << 63) // NS_PER_S - 1):
        raise RecordError(f"ticks: must be from 0 to {((1 << 63) // NS_PER_S - 1) * frequency_hz}")
    # rest * NS_PER_S may pass 2**63 above 9.2 GHz: in two steps.
    high, low = np.divmod(rest * 1_000_000, np.int64(frequency_hz))
    return whole * NS_PER_S + high * 1_000 + low * 1_000 // frequency_hz
