# SPDX-License-Identifier: Apache-2.0
"""A clock that follows a PHC, held against it by each way of reading it, beside the paper's figures.

The paper on intra-process clock synchronisation (III, IV.A) has what phc2sys said of itself: 721 ns peak to
peak with reads by software, 88 ns where the hardware latches both clocks. So what phc2sys said while the
clock was measured stands first, then what `bw-clock` found by single reads. Offsets are target - PHC, in ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.clock_sync.logs import ServoSeries
from reports.clock_sync.trial import PHC_READS, ClockTrial
from reports.errors import RecordError
from reports.paper_table import table_rows
from reports.record.histogram import Summary
from reports.record.measurement import Number

TABLE = Path(__file__).with_name("intra-process-phc2sys.csv")
SOFTWARE, HARDWARE = "software", "hardware"
PHC2SYS_ORDER = ("precise", "extended", "basic")
"""Of these phc2sys takes the first that the PHC offers (sysoff_probe of linuxptp)."""

_COLUMNS = ["read", "figure", "peak_to_peak_ns"]


@dataclass(frozen=True, slots=True)
class PaperJitter:
    """A figure of the paper: offsets of phc2sys, peak to peak."""

    figure: str
    peak_to_peak_ns: int


@dataclass(frozen=True, slots=True)
class PhcReadRow:
    """Offsets by one way of reading.

    Attributes:
        way: `basic`, `extended`, `precise`; in the row of phc2sys's own log that which it takes.
        own: Whether it is the row of phc2sys's own log.
        n: Offsets; 0: this way is not offered, or the log says nothing.
        half_95_ns: Half of the width that holds the middle 95 % of them.
        bracket_ns: Mean time between the two stamps of the system's clock; None: it has none.
        paper: The paper's figure of the like.
    """

    way: str
    own: bool
    n: int
    min_ns: Number | None
    max_ns: Number | None
    mean_ns: Number | None
    stddev_ns: Number | None
    half_95_ns: Number | None
    bracket_ns: Number | None
    paper: PaperJitter

    @property
    def peak_to_peak_ns(self) -> Number | None:
        """Return the largest less the smallest offset; None without any."""
        return None if self.min_ns is None or self.max_ns is None else self.max_ns - self.min_ns


def paper_jitter(path: Path = TABLE) -> dict[str, PaperJitter]:
    """Return the paper's figures by `software` and `hardware`.

    Raises:
        RecordError: The file is wrong; the message says file, line and field.
    """
    found: dict[str, PaperJitter] = {}
    for where, fields in table_rows(path, _COLUMNS):
        if fields[0] not in (SOFTWARE, HARDWARE) or fields[0] in found:
            raise RecordError(f"{where}: read: need {SOFTWARE} and {HARDWARE}, each once")
        if not fields[2].isdecimal() or int(fields[2]) < 1:
            raise RecordError(f"{where}: peak_to_peak_ns: need a whole number of ns >= 1")
        found[fields[0]] = PaperJitter(fields[1], int(fields[2]))
    if len(found) != 2:
        raise RecordError(f"{path}: need a row for {SOFTWARE} and one for {HARDWARE}")
    return found


def phc_read_rows(trial: ClockTrial, servo: ServoSeries | None) -> tuple[PhcReadRow, ...]:
    """Return the rows of a trial whose PHC was read in several ways; none where it was not.

    Args:
        trial: The trial.
        servo: What phc2sys logged.
    """
    if not trial.phc_reads:
        return ()
    paper = paper_jitter()
    taken = next((way for way in PHC2SYS_ORDER if way in trial.phc_reads), "")
    rows = [_own_row(taken, trial, servo, paper[_kind(taken)])]
    for way in PHC_READS:
        compare = trial.phc_reads.get(way)
        offset = compare.offset if compare else Summary(0, None, None, None, None, 0, ())
        low, high = offset.quantile(0.025), offset.quantile(0.975)
        rows.append(
            PhcReadRow(
                way=way,
                own=False,
                n=offset.n,
                min_ns=offset.min_ns,
                max_ns=offset.max_ns,
                mean_ns=offset.mean_ns,
                stddev_ns=offset.stddev_ns,
                half_95_ns=(high.value_ns - low.value_ns) / 2 if low and high else None,
                bracket_ns=compare.window.mean_ns if compare and way != "precise" else None,
                paper=paper[_kind(way)],
            )
        )
    return tuple(rows)


def while_measured(trial: ClockTrial, servo: ServoSeries) -> NDArray[np.bool_]:
    """Say of each line of a servo's log whether it was written while a trial was measured.

    Where the log counts in monotonic time and the comparison does not say when it began by that clock, as
    those of earlier versions, the two ended together: the log is fetched right after.
    """
    compare = trial.filtered
    begin_ns = compare.start_tai_ns if servo.clock == "tai" else compare.start_monotonic_ns
    if begin_ns is None:
        return servo.time_ns >= int(servo.time_ns[-1]) - compare.elapsed_ns
    return (servo.time_ns >= begin_ns) & (servo.time_ns <= begin_ns + compare.elapsed_ns)


def _kind(way: str) -> str:
    return HARDWARE if way == "precise" else SOFTWARE


def _own_row(way: str, trial: ClockTrial, servo: ServoSeries | None, paper: PaperJitter) -> PhcReadRow:
    nothing = PhcReadRow(way, True, 0, None, None, None, None, None, None, paper)
    if servo is None:
        return nothing
    kept = while_measured(trial, servo)
    offsets, brackets = servo.offset_ns[kept], servo.path_delay_ns[kept]
    if not len(offsets):
        return nothing
    brackets = brackets[np.isfinite(brackets)]
    low, high = np.quantile(offsets, [0.025, 0.975])
    return PhcReadRow(
        way=way,
        own=True,
        n=len(offsets),
        min_ns=int(offsets.min()),
        max_ns=int(offsets.max()),
        mean_ns=float(offsets.mean()),
        stddev_ns=float(offsets.std()),
        half_95_ns=float(high - low) / 2,
        bracket_ns=float(brackets.mean()) if len(brackets) and way != "precise" else None,
        paper=paper,
    )
