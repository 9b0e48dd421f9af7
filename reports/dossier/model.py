# SPDX-License-Identifier: Apache-2.0
"""The acceptance dossier as plain data: everything that its pages show and its attachment holds.

Values are in the unit that stands beside them; times are RFC 3339 in UTC; hashes are SHA-256 in hex. What a
run does not say is None: the page then reads *not recorded*. `reports.dossier.gather` makes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from reports.record.codec import from_json, omit_none, to_json
from reports.record.measurement import Measurement, Number
from reports.run.manifest import Manifest

DOSSIER_SCHEMA = "benchwright.dossier/1"

Word = Literal["accepted", "accepted with waivers", "not accepted"]
Status = Literal["pass", "fail", "inconclusive", "skipped", "untested", "untested on hardware"]
"""Of a requirement on a target. Without a valid attempt it is inconclusive; never tried: skipped or untested,
as reports/run/selected.py defines them.
"""

Role = Literal["decides", "valid", "not valid", "waived"]
"""Of an attempt: the first valid one decides; later valid ones are listed; a waived one is set aside."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A name and a text, as read back; None: not recorded."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What the dossier says as a whole; reasons: everything that keeps it from `accepted`, one line each."""

    word: Word
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Percentile:
    """A quantile with its 95 % interval; a bound that the samples cannot give is None."""

    share: float
    value: Number
    low: Number | None
    high: Number | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """What the evidence says of a value's samples beside the record's one statistic.

    Attributes:
        what: Of which quantity, in words (`received - scheduled`).
        unit: Of all values here.
        n: Samples.
        minimum: Smallest sample; None: not known.
        maximum: Largest sample; None: not known.
    """

    what: str
    unit: str
    n: int
    minimum: Number | None
    mean: Number | None
    maximum: Number | None
    percentiles: tuple[Percentile, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One measurement of one thing, in one run.

    Attributes:
        number: 1 is the first of all runs of this dossier, by time.
        number_in_run: 1 is the first of its run; what a waiver names.
        run_id: Its run.
        role: What it counts for.
        why: Why it is not valid, or which waiver sets it aside; empty otherwise.
        record: The record as it was written, with value, unit, n, lost, limit, U and its parts, margin.
    """

    number: int
    number_in_run: int
    run_id: str
    role: Role
    why: str
    record: Measurement


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that was measured for a requirement: a quantity of a subject under conditions.

    Attributes:
        subject: In words: stack, clock, stream, method; without bench and target.
        conditions: In words: profile, phase, load, impairment.
        status: That of the attempt that decides; see `Status`.
        reason: Why it is no pass.
        shown: Number of the attempt whose value the page shows: the one that decides, else the last.
        contradicted: Whether a later attempt speaks against the pass of the deciding one, and was not waived.
        distribution: Of the shown attempt, where the evidence has one.
        attempts: All, by time.
    """

    quantity: str
    statistic: str
    subject: str
    conditions: str
    status: Status
    reason: str
    shown: int
    contradicted: bool
    distribution: Distribution | None
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class RequirementRow:
    """A line of the traceability matrix of one target.

    Attributes:
        id: Of the requirement.
        text: What is asked for, in words, with the limit as the file has it; empty where no file defines it.
        source: Where the limit comes from.
        file: The requirements file that defines it; empty: only records know of it.
        status: The worst of its results; `untested` also where a part of it was never measured.
        skipped: Why it was skipped, of the run that said so last; empty where it was measured or untested.
        missing: Parts that the file asks for, and network stacks that a run chose for it, and nobody measured
            (`sync_offset max_abs`, `stack rtdip`).
        waived: Ids of the waivers that accept it although it did not pass, one a stack; empty: none.
        tests: Names of the tests that measured it, first ones first.
        results: What was measured for it; empty where it is untested.
        published: What the files of this software ask by its id, in words (`reports.dossier.published`);
            empty: no file of the dossier defines it.
    """

    id: str
    text: str
    source: str
    file: str
    status: Status
    skipped: str
    missing: tuple[str, ...]
    waived: str
    tests: tuple[str, ...]
    results: tuple[Result, ...]
    published: str = ""


@dataclass(frozen=True, slots=True)
class FactTable:
    """Facts that belong together, as they were read back from the machine."""

    title: str
    rows: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration that a target had, and in which runs.

    Attributes:
        sha256: Over all facts but those that change by themselves (memory, interrupts' numbers).
        identity: Model, serial number, firmware, kernel, drivers: always these lines, None: not recorded.
        facts: Everything that was read back, whole.
    """

    sha256: str
    run_ids: tuple[str, ...]
    identity: tuple[Pair, ...]
    facts: tuple[FactTable, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """One thing that provisioning wanted of a target, what it found, and whether it changed it."""

    item: str
    wanted: str
    found: str
    status: str
    changed: bool
    note: str


@dataclass(frozen=True, slots=True)
class Provisioning:
    """What provisioning did to a target before a run's measurements.

    Attributes:
        differences: What the target says of itself otherwise than before its settings were applied.
    """

    run_id: str
    settings: tuple[Setting, ...]
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """One target on one bench: what it is, and what came of each requirement.

    Attributes:
        simulated: Whether all that is known of it comes from a simulated bench.
        configurations: More than one: the runs do not speak of the same thing, and nothing is accepted.
        requirements: The traceability matrix, in the order of the files.
        checks: The bench's checks of itself while this target was measured.
    """

    bench: str
    name: str
    simulated: bool
    configurations: tuple[Configuration, ...]
    provisioning: tuple[Provisioning, ...]
    requirements: tuple[RequirementRow, ...]
    checks: tuple[Result, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration of an instrument; dates YYYY-MM-DD.

    Attributes:
        valid: Whether it was in force during the run.
    """

    certificate: str | None
    date: str | None
    due: str | None
    valid: bool


@dataclass(frozen=True, slots=True)
class Instrument:
    """An instrument of a run.

    Attributes:
        identity: Its answer to `*IDN?`, or what identifies a card.
        calibration: None: not recorded.
        limits: What it can do, as the bench file has it.
        remark: What is to be said of it (an expired calibration); empty: nothing.
    """

    name: str
    kind: str
    identity: str | None
    maker: str | None
    model: str | None
    serial: str | None
    firmware: str | None
    calibration: Calibration | None
    limits: tuple[Pair, ...]
    remark: str


@dataclass(frozen=True, slots=True)
class File:
    """A file of a run folder."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Impairment:
    """An impairment of the path: as it was asked for, and as it was seen.

    Attributes:
        asked: In words, as in the records' conditions or the check's own evidence.
        read_back: What the network said, or what was seen to happen; None: not recorded.
    """

    where: str
    asked: str
    read_back: str | None


@dataclass(frozen=True, slots=True)
class Seal:
    """Who has sealed a run.

    Attributes:
        fingerprint: Of the key; empty: the run is not sealed.
        bench: Whose it is by the list of benches; empty: it was not looked up there, or is none of them.
        remark: What keeps the run from being accepted; empty: nothing.
    """

    fingerprint: str
    bench: str
    remark: str


@dataclass(frozen=True, slots=True)
class Run:
    """A run that the dossier rests on.

    Attributes:
        folder: Its name, without path.
        manifest: `run.json`, whole.
        sums_sha256: Hash of its `SHA256SUMS`, which has the hash of every file.
        seal: Who has sealed it, and whether that counts.
        instruments: None: not recorded.
        wiring: What is connected to what; None: not recorded.
        host: Facts of the machine that ran the suites.
        tools: Versions.
        tests_skipped: Name and reason of each test that was left out; name and message of each that failed.
        files: Every file but `SHA256SUMS`.
        patterns: Series with patterns over time, and these in words; None: none were searched.
    """

    folder: str
    manifest: Manifest
    sums_sha256: str
    seal: Seal
    instruments: tuple[Instrument, ...] | None
    wiring: tuple[Pair, ...] | None
    impairments: tuple[Impairment, ...]
    host: tuple[FactTable, ...]
    tools: tuple[Pair, ...]
    tests_skipped: tuple[Pair, ...]
    tests_failed: tuple[Pair, ...]
    files: tuple[File, ...]
    patterns: tuple[Pair, ...] | None = omit_none()


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something that did not go as planned; run_id empty: it concerns the dossier as a whole."""

    run_id: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Waiver:
    """A decision of a person on a requirement, a run or an attempt; see `reports.dossier.waivers`.

    Attributes:
        number: Of the attempt in its run; None: all attempts.
        effect: What it did here, in words.
    """

    id: str
    requirement: str | None
    run: str | None
    attempt: int | None
    reason: str
    approver: str
    date: str
    expires: str | None
    effect: str
    target: str | None = None
    stack: str | None = None


@dataclass(frozen=True, slots=True)
class RequirementsFile:
    """A file of requirements: from a run's evidence, or named on the command line.

    Attributes:
        origin: Ids of the runs whose evidence holds it; empty: it was named on the command line.
    """

    file: str
    name: str
    schema: str
    sha256: str
    origin: tuple[str, ...]
    requirements: int


@dataclass(frozen=True, slots=True)
class Signatory:
    """A field for a name and a signature; name None: to be filled in by hand."""

    role: str
    name: str | None


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that was named on the command line, whole; a name without its folder."""

    role: Literal["waivers", "requirements", "benches", "history"]
    name: str
    sha256: str
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """What the dossier was asked for besides runs; with them it can be made again. None: not given.

    `sealed_by`: fingerprints of keys that the runs have to be sealed by, in place of a list of benches.
    """

    title: str | None
    date: str | None
    operator: str | None
    reviewer: str | None
    files: tuple[NamedFile, ...]
    sealed_by: tuple[str, ...] = ()

    @property
    def is_sealed_checked(self) -> bool:
        """Say whether there is anything that seals are held against."""
        return bool(self.sealed_by) or any(file.role == "benches" for file in self.files)


@dataclass(frozen=True, slots=True)
class Dossier:
    """The whole dossier.

    Attributes:
        id: `BD-` and twelve hex digits of the hash over the runs' sums, waivers, requirements and options.
        date: YYYY-MM-DD: as given, else the last day of the runs and waivers; waivers expire against it.
        conclusion: What it says as a whole.
        rule: The decision rule, one paragraph each.
        simulated: Whether any record in it is of a simulated bench.
        asked: From which it can be made again, with the runs.
    """

    schema: str
    id: str
    title: str
    date: str
    conclusion: Conclusion
    rule: tuple[str, ...]
    simulated: bool
    targets: tuple[Target, ...]
    runs: tuple[Run, ...]
    requirements_files: tuple[RequirementsFile, ...]
    waivers: tuple[Waiver, ...]
    deviations: tuple[Deviation, ...]
    signatories: tuple[Signatory, ...]
    asked: Request


def from_dossier_json(data: object) -> Dossier:
    """Build a dossier from decoded JSON; raises RecordError, which names the key."""
    return from_json(Dossier, data)


def to_dossier_bytes(dossier: Dossier) -> bytes:
    """Return `dossier.json`: UTF-8, keys in the order of the schema, a line's end at the end."""
    return (json.dumps(to_json(dossier), ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()
