# SPDX-License-Identifier: Apache-2.0
"""The clock of a target while a pattern was replayed, where its stamps are taken as they are.

A clock stack keeps the target on the time of its server. How far off it was meanwhile is measured against the
timecard in it, and enters U of every stream; how well the producers' clocks are known against the server's is
measured by two-way time transfer before and after (DAQ paper, sections 4 and 5). `clock.json`, beside the
replay, holds it. Offsets are positive where the first clock named is ahead; times are int64 ns, TAI.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.clock_sync.answers import ClockCompare
from reports.clock_sync.trial import Lock, Timecard
from reports.record.document import read_document, write_document
from reports.record.measurement import UncertaintyPart

SCHEMA = "benchwright.replay_clock/1"
REPLAY_CLOCK = "clock.json"
CLOCK_ERROR = "clock-error.ndjson"
"""The answer of `bw-clock compare`: the target's clock against the timecard."""


@dataclass(frozen=True, slots=True)
class ServerLine:
    """A clock of the bench against the time server's: offset = that clock - the server's.

    Attributes:
        at_tai_ns: Moment on the server's clock at which offset_ns holds.
        bound_ns: Bound of the offset's error there, of both clocks together.
        residual_ns: How far the line was off at the end of the replay.
    """

    name: str
    at_tai_ns: int
    offset_ns: int
    rate_ppb: int
    bound_ns: int
    residual_ns: int

    def offset_at(self, server_tai_ns: int) -> int:
        """Return the offset in ns at a time of the server's clock."""
        return self.offset_ns + (server_tai_ns - self.at_tai_ns) * self.rate_ppb // 1_000_000_000


@dataclass(frozen=True, slots=True)
class ReplayClock:
    """The clock stack that was on the target, and what is known of its error during the replay.

    Attributes:
        clock: Name of the stack.
        server: Name of the time server's clock on the bench.
        lock: When it counted as locked before the replay, and by which criterion.
        timecard: What the target's clock was held against.
        max_abs_ns: Largest distance between the two, from filtered readings; None: no reading.
        reference_bound_ns: Largest bound that the timecard stated of itself.
        bracket_ns: Half of the widest bracket kept.
        readings: How many.
        faults: Why the error is not known.
        lines: The clocks that producers and witness stamp with, against the server's.
    """

    clock: str
    server: str
    lock: Lock
    timecard: Timecard
    max_abs_ns: int | None
    reference_bound_ns: int
    bracket_ns: int
    readings: int
    faults: tuple[str, ...]
    lines: tuple[ServerLine, ...]
    schema: str = SCHEMA

    def line(self, name: str) -> ServerLine | None:
        """Return the line of a clock."""
        return next((line for line in self.lines if line.name == name), None)

    def parts(self, producers_clock: str | None) -> tuple[list[UncertaintyPart], str]:
        """Return the parts of a latency's U in ns, and why they are not known ('' where they are).

        Args:
            producers_clock: The clock that the stream's producer stamps with.
        """
        parts = [
            UncertaintyPart("target_clock", "bound", abs(self.max_abs_ns or 0)),
            UncertaintyPart("reference", "bound", self.reference_bound_ns),
            UncertaintyPart("bracket", "bound", self.bracket_ns),
        ]
        if self.timecard.bound_ns:
            parts.append(UncertaintyPart("timecard_certificate", "bound", self.timecard.bound_ns))
        line = self.line(producers_clock) if producers_clock is not None else None
        if line is not None:
            parts.append(UncertaintyPart("clock_offset", "bound", line.bound_ns))
            parts.append(UncertaintyPart("clock_residual", "bound", line.residual_ns))
        if self.max_abs_ns is None or self.faults:
            return parts, f"clock error unknown: {'; '.join(self.faults) or 'no reading'}"
        if line is None:
            return parts, f"clock error unknown: no line for clock {producers_clock}"
        return parts, ""

    def write(self, folder: Path) -> Path:
        """Write `clock.json` and return its path."""
        return write_document(folder / REPLAY_CLOCK, self)

    @classmethod
    def read(cls, path: Path) -> ReplayClock:
        """Read `clock.json`; raises RecordError, which names the key."""
        return read_document(cls, path, SCHEMA)


def measured_clock(
    clock: str,
    server: str,
    lock: Lock,
    timecard: Timecard,
    compare: ClockCompare,
    lines: tuple[ServerLine, ...],
) -> ReplayClock:
    """Return what a comparison over the whole replay says; the bench has to end it, for it watches all."""
    faults = list(compare.invalid_reasons)
    if compare.complete:
        faults.append("the comparison ended before the replay did")
    faults += [f"the clock stepped by {step_ns} ns" for _, step_ns in compare.steps]
    return ReplayClock(
        clock=clock,
        server=server,
        lock=lock,
        timecard=timecard,
        max_abs_ns=None if compare.extreme_ns is None else abs(compare.extreme_ns),
        reference_bound_ns=compare.reference_bound_ns or 0,
        bracket_ns=(compare.window.max_ns or 0) // 2,
        readings=compare.offset.n,
        faults=tuple(faults),
        lines=lines,
    )
