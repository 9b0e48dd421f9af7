# SPDX-License-Identifier: Apache-2.0
"""One trial of a clock: what was put on the target, and what three witnesses said of it.

The folder of a trial holds `trial.json` (this file's dataclasses), the answers of `bw-clock compare`
(`filtered.ndjson`: brackets no wider than a threshold; `sequential.ndjson`: the paper's program, where it was
run), `witness.ndjson` of the stall witness where the bench has one, and the servo's own logs.
A target without timecard has the answers of two-way time transfer instead of `filtered.ndjson`
(reports/clock_sync/two_way_reference.py).

Offsets are target - time server, in ns: positive, the target is ahead.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.clock_sync.answers import ClockCompare, read_clock_compare
from reports.clock_sync.two_way_reference import SERVER_FILE, TARGET_FILE, TWO_WAY, read_two_way
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.record.measurement import Number
from reports.tools.answers import WitnessResult, last_result, witness_result

SCHEMA = "benchwright.clock_trial/1"
TRIAL = "trial.json"
FILTERED = "filtered.ndjson"
SEQUENTIAL = "sequential.ndjson"
WITNESS = "witness.ndjson"
MASK = "mask.csv"
"""Copy of the mask that the trial was judged by, where its stack has one."""
EVIDENCE_FILES = (TRIAL, FILTERED, SEQUENTIAL, TARGET_FILE, SERVER_FILE, WITNESS)
"""What a trial's offset is judged from, of those that it has."""
PHC_READS = ("basic", "extended", "precise")


@dataclass(frozen=True)
class Lock:
    """When the servo counted as locked, and by which criterion.

    Attributes:
        bound_s: It may have been earlier by so much: the time between two looks at its log.
    """

    after_s: Number
    criterion: str
    bound_s: Number | None = omit_none()  # noqa: RUF009 - it returns a field


@dataclass(frozen=True)
class TwoWay:
    """What two-way time transfer over the control network says: a mean over its exchanges."""

    offset_ns: int
    bound_ns: int
    from_tai_ns: int
    to_tai_ns: int


@dataclass(frozen=True)
class Servo:
    """What the servo said of itself while the trial was measured."""

    observations: int
    mean_ns: Number | None
    max_abs_ns: Number | None
    mean_path_delay_ns: Number | None


@dataclass(frozen=True)
class ServerReplies:
    """The log by which a stack shows that it heard its server while the trial was measured.

    Attributes:
        log: File in the trial's folder; it has a line for each answer.
        format: Which parser reads it (reports/clock_sync/log_formats.py).
    """

    log: str
    format: str


@dataclass(frozen=True)
class Timecard:
    """The reference: a clock in the target that follows the time server by another way.

    `clock` is `two-way` for a target that has none: two-way time transfer is its reference.
    """

    clock: str
    bound_ns: int
    synchronised_over: str


@dataclass(frozen=True)
class TrialFacts:
    """What `trial.json` holds.

    Attributes:
        clock: Clock stack on the target, such as `chrony`.
        kind: `sync`, `interval`, `holdover`, `load`, `asymmetry`, `relock`: what the trial is for.
        interval_s: Time between synchronisations, in s, where the stack has one.
        server_to_target_ns: Time of the server's packets through the impairment node, where that is seen.
        asymmetry_ns: How much longer it is than that of the target's packets, by the shortest of each.
        servo_log: File of the servo's series in the folder; empty: none.
        servo_format: Which parser reads it (reports/clock_sync/log_formats.py).
        device: The clock that was measured, as `bw-clock` names it: what the stack keeps.
        hearing: Of a trial whose stack has to hear its server throughout; None: the trial cuts it off, there
            is no log of its answers, or the trial is of an earlier version.
    """

    clock: str
    kind: str
    interval_s: Number | None
    load: str
    impairment: str
    lock: Lock | None
    two_way: TwoWay | None
    servo: Servo | None
    timecard: Timecard
    servo_log: str = ""
    servo_format: str = ""
    server_to_target_ns: Number | None = None
    asymmetry_ns: Number | None = omit_none()  # noqa: RUF009 - it returns a field
    remarks: tuple[str, ...] = ()
    device: str = "realtime"
    hearing: ServerReplies | None = omit_none()  # noqa: RUF009 - it returns a field
    schema: str = SCHEMA


@dataclass(frozen=True)
class ClockTrial:
    """A trial with its evidence."""

    folder: Path
    facts: TrialFacts
    filtered: ClockCompare
    sequential: ClockCompare | None
    witness: WitnessResult | None
    phc_reads: dict[str, ClockCompare]
    """Of a PHC as reference: the answer of each way of reading it."""
    tai_utc_s: int
    """TAI - UTC in s, as the target used it while it was measured."""


def phc_read_file(way: str) -> str:
    """Return the file with the answer of one way of reading a PHC."""
    return f"phc-{way}.ndjson"


def write_trial(folder: Path, facts: TrialFacts) -> Path:
    """Write `trial.json` and return its path."""
    return write_document(folder / TRIAL, facts)


def load_trial(folder: Path) -> ClockTrial:
    """Read the evidence of one trial.

    Raises:
        RecordError: A file is missing or damaged; names it, and the key.
    """
    facts = read_document(TrialFacts, folder / TRIAL, SCHEMA)
    sequential, witness = folder / SEQUENTIAL, folder / WITNESS
    by_two_way = facts.timecard.clock == TWO_WAY
    filtered = read_two_way(folder) if by_two_way else read_clock_compare(folder / FILTERED)
    return ClockTrial(
        folder=folder,
        facts=facts,
        filtered=filtered,
        sequential=read_clock_compare(sequential) if sequential.exists() else None,
        witness=witness_result(last_result(witness)) if witness.exists() else None,
        phc_reads={
            way: read_clock_compare(folder / phc_read_file(way))
            for way in PHC_READS
            if (folder / phc_read_file(way)).exists()
        },
        tai_utc_s=filtered.tai_utc_s,
    )
