# SPDX-License-Identifier: Apache-2.0
"""Timed edges: the evidence of what an oscilloscope, or a captured edge, saw of them.

Each trial has a folder of its own anywhere under `evidence/timed_edges` of a run; it holds `edges.json`
(`EdgeTrial`), the software's answer and some waveforms (`edge_waveforms.py`). `witnesses.json` (`Witnesses`)
holds three views of one clock.

Times are ns. A delay is edge - reference: positive, the edge comes later. An offset is clock - reference:
positive, the clock is ahead, so the edge that it makes comes earlier: offset = -delay.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.record.measurement import Number, PartKind
from reports.timed_edges.capability import METHODS

SCHEMA = "benchwright.timed_edges/1"
WITNESSES_SCHEMA = "benchwright.edge_witnesses/1"
FOLDER = "timed_edges"
TRIAL = "edges.json"
WITNESSES = "witnesses.json"

_WHOLE = re.compile(r"[0-9]{1,10}")

CLOCK_EDGE = "clock-edge"
"""An edge at each full period of a clock: it shows that clock's offset."""

OSCILLOSCOPE, CAPTURE = "oscilloscope", "capture"
CROSS_TIMESTAMPS, CAPTURED_EDGE = "cross-timestamps", "captured-edge"
WITNESS_NAMES = (CROSS_TIMESTAMPS, CAPTURED_EDGE, OSCILLOSCOPE)


@dataclass(frozen=True)
class BudgetPart:
    """One named part of an uncertainty: a hard bound, or one standard deviation."""

    name: str
    kind: PartKind
    value_ns: Number


@dataclass(frozen=True)
class Budgets:
    """What three statistics of the delays are uncertain by; None: too few delays for it."""

    mean: tuple[BudgetPart, ...] | None = None
    deviation: tuple[BudgetPart, ...] | None = None
    peak_to_peak: tuple[BudgetPart, ...] | None = None


@dataclass(frozen=True)
class DelayBlocks:
    """Means of blocks of delays that follow each other, in their order; less than a block is in none."""

    size: int
    means_ns: tuple[Number, ...]


@dataclass(frozen=True)
class Delays:
    """What is known of a number of delays, as measured: no correction is applied.

    Attributes:
        deviation_ns: Standard deviation of a sample (n - 1).
        peak_to_peak_ns: Peak to peak of the first 100, 1000, 10^4 … delays and of all, by their number as
            text: it grows with the number, so only those of equal numbers compare.
        buckets: Histogram: low edge, width, count; ascending.
        kurtosis: Of the histogram, its buckets at their middles: fourth central moment over the square of the
            second. U of the deviation follows from it; None: of an earlier version, which took delays as
            normal for that.
        blocks: They show for how long delays depend on each other: so much U of the mean takes from them.
            None: of an earlier version, where delays count as independent.
    """

    count: int
    mean_ns: Number
    deviation_ns: Number
    minimum_ns: Number
    maximum_ns: Number
    peak_to_peak_ns: dict[str, Number]
    buckets: tuple[tuple[Number, ...], ...]
    kurtosis: Number | None = omit_none()  # noqa: RUF009 - it returns a field
    blocks: DelayBlocks | None = omit_none()  # noqa: RUF009 - likewise

    def peak_to_peak_of(self, count: int) -> Number | None:
        """Return the peak to peak of the first so many delays; None where it was not kept."""
        return self.peak_to_peak_ns.get(str(count))

    def check(self, where: str) -> None:
        """Refuse figures that contradict each other; raises RecordError with the key."""
        shapes = [bucket for bucket in self.buckets if len(bucket) != 3 or bucket[1] <= 0 or bucket[2] < 0]
        if shapes:
            raise RecordError(f"{where}.buckets: {list(shapes[0])} is not low, width > 0, count >= 0")
        counted = sum(bucket[2] for bucket in self.buckets)
        if self.count < 1 or counted != self.count:
            raise RecordError(f"{where}.buckets: hold {counted} of count = {self.count}, which is at least 1")
        if not self.minimum_ns <= self.mean_ns <= self.maximum_ns and not math.isclose(
            self.minimum_ns, self.maximum_ns, abs_tol=1e-6
        ):
            raise RecordError(f"{where}: need minimum_ns <= mean_ns <= maximum_ns")
        if self.deviation_ns < 0:
            raise RecordError(f"{where}.deviation_ns: {self.deviation_ns} is negative")
        if self.kurtosis is not None and self.kurtosis < 1:
            raise RecordError(f"{where}.kurtosis: {self.kurtosis} is below 1")
        if self.blocks is not None:
            size, held = self.blocks.size, len(self.blocks.means_ns)
            if size < 1 or held != self.count // size:
                raise RecordError(f"{where}.blocks: {held} of {size} delays each, but count = {self.count}")
        for text in self.peak_to_peak_ns:
            if not _WHOLE.fullmatch(text) or int(text) > self.count:
                raise RecordError(f"{where}.peak_to_peak_ns: {text[:20]!r} is no number up to {self.count}")


@dataclass(frozen=True)
class Counts:
    """What became of all segments and edges; the words are explained in docs/timed-edges.md."""

    wanted: int = 0
    segments: int = 0
    incomplete: int = 0
    clipped: int = 0
    holes: int = 0
    no_reference: int = 0
    pairs: int = 0
    missing: int = 0
    runt: int = 0
    at_border: int = 0
    extra: int = 0

    @property
    def lost(self) -> int:
        """Return how many reference edges have no edge beside them: missing, or a runt in its place."""
        return self.missing + self.runt


@dataclass(frozen=True)
class OtherView:
    """What another instrument said of the same clock at the same time: a mean offset.

    Attributes:
        source: Which, such as `bw-clock compare`.
        uncertainty_ns: Its U.
        n: Samples.
    """

    source: str
    offset_ns: Number
    uncertainty_ns: Number
    n: int


@dataclass(frozen=True)
class EdgeTrial:
    """What `edges.json` holds: one way to make an edge, against a reference.

    Attributes:
        name: Short name, unique in the run.
        method: One of METHODS, or CLOCK_EDGE.
        clock: Stack that the target's clock follows, such as `chrony`; empty: none is concerned.
        reference: `phc` or `timecard`: whose edges the delays count from.
        seen_by: `oscilloscope`, or `capture`: virtual-now less latched time, fenced (paper, Listing 1).
        oscilloscope: The instrument as it names itself; empty for a capture.
        correlation_error_ns: Mistake that was put into the software on purpose.
        wanted: Edges asked for.
        delays: None: there is no pair.
        doubts: Why nothing may pass on this trial: an expired calibration, lost lock, …
        failed: Why the trial ended early; empty: it did not. What was acquired until then is kept.
        correction_ns: Delay of cables and channels by calibration; it is subtracted from the mean.
        beside: What other instruments said of the same clock meanwhile.
        settings: Settings as a reader wants them, such as `sample interval`: `1 ns`.
        software_file: Answer of the software in the trial's folder; empty: none.
        waveforms_file: Some segments; empty: none.
    """

    name: str
    method: str
    clock: str
    reference: Literal["phc", "timecard"]
    seen_by: Literal["oscilloscope", "capture"]
    oscilloscope: str
    period_ns: int
    correlation_error_ns: int
    wanted: int
    delays: Delays | None
    budgets: Budgets
    counts: Counts
    doubts: tuple[str, ...] = ()
    failed: str = ""
    correction_ns: Number = 0
    beside: tuple[OtherView, ...] = ()
    settings: dict[str, str] = field(default_factory=dict[str, str])
    software_file: str = ""
    waveforms_file: str = ""
    schema: str = SCHEMA


@dataclass(frozen=True)
class Witness:
    """One view of a clock's offset: its mean over the same time as the others'.

    Attributes:
        name: One of WITNESS_NAMES.
        offset_ns: Clock - reference; None: it could not be measured.
        parts: What it is uncertain by.
        failed: Why it has no offset; empty: it has one.
    """

    name: str
    offset_ns: Number | None
    parts: tuple[BudgetPart, ...]
    n: int
    doubts: tuple[str, ...] = ()
    failed: str = ""


@dataclass(frozen=True)
class Witnesses:
    """What `witnesses.json` holds: views of one clock that have to agree within their uncertainties."""

    clock: str
    witnesses: tuple[Witness, ...]
    schema: str = WITNESSES_SCHEMA


def write_edge_trial(folder: Path, trial: EdgeTrial) -> Path:
    """Write `edges.json` and return its path; raises RecordError where the trial contradicts itself."""
    check_edge_trial(trial)
    return write_document(folder / TRIAL, trial)


def load_edge_trial(folder: Path) -> EdgeTrial:
    """Read `edges.json`; raises RecordError, which names file and key."""
    trial = read_document(EdgeTrial, folder / TRIAL, SCHEMA)
    check_edge_trial(trial, TRIAL)
    return trial


def check_edge_trial(trial: EdgeTrial, where: str = "trial") -> None:
    """Refuse a trial that contradicts itself; raises RecordError with the key."""
    if trial.method not in (*METHODS, CLOCK_EDGE):
        raise RecordError(
            f"{where}.method: {trial.method!r} is not one of {', '.join((*METHODS, CLOCK_EDGE))}"
        )
    if trial.method == CLOCK_EDGE and not trial.clock:
        raise RecordError(f"{where}.clock: {CLOCK_EDGE} needs the clock that makes the edges")
    for key in ("software_file", "waveforms_file"):
        name = str(getattr(trial, key))
        if name and Path(name).name != name:
            raise RecordError(f"{where}.{key}: {name!r} is no file of this folder")
    if trial.delays is None:
        if not trial.failed and trial.counts.pairs:
            raise RecordError(f"{where}.delays: none, but counts.pairs = {trial.counts.pairs}")
        return
    trial.delays.check(f"{where}.delays")
    if trial.seen_by == OSCILLOSCOPE and trial.counts.pairs != trial.delays.count:
        raise RecordError(
            f"{where}.counts.pairs: {trial.counts.pairs}, but delays.count = {trial.delays.count}"
        )


def write_witnesses(folder: Path, witnesses: Witnesses) -> Path:
    """Write `witnesses.json` and return its path."""
    return write_document(folder / WITNESSES, witnesses)


def load_witnesses(folder: Path) -> Witnesses:
    """Read `witnesses.json`; raises RecordError, which names file and key."""
    found = read_document(Witnesses, folder / WITNESSES, WITNESSES_SCHEMA)
    for number, witness in enumerate(found.witnesses):
        where = f"{WITNESSES}.witnesses[{number}]"
        if witness.name not in WITNESS_NAMES:
            raise RecordError(f"{where}.name: {witness.name!r} is not one of {', '.join(WITNESS_NAMES)}")
        if (witness.offset_ns is None) != bool(witness.failed):
            raise RecordError(f"{where}: need either offset_ns or failed")
        if witness.offset_ns is not None and not witness.parts:
            raise RecordError(f"{where}.parts: an offset without uncertainty; need at least one part")
    return found
