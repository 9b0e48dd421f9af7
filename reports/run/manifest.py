# SPDX-License-Identifier: Apache-2.0
"""The manifest of a run, `run.json`: what was run, when, where, with what, and how it came out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, get_args

from reports.errors import RecordError
from reports.quantities import INSTRUMENT_CHECKS
from reports.record.codec import from_json, omit_none, to_json
from reports.record.json_text import load_json
from reports.record.measurement import Measurement, Outcome
from reports.run.failed_tests import FailedTest
from reports.run.left_out import LeftOut
from reports.run.selected import SelectedSuite
from reports.run.tally import effective

MANIFEST_SCHEMA = "benchwright.run/1"
EARLIER_SUITE, EARLIER = "run", "run "
"""An earlier run that is repeated is listed as an attempt of this suite, its id behind that word."""
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a suite: its number (1 is the first), how it came out, and why it was repeated."""

    suite: str
    number: int
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class TestCounts:
    """How Robot Framework's tests came out."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a run; `end_utc` null: the run did not end by itself.

    Attributes:
        simulated: Whether the bench is simulated; null until a keyword or a record has said so.
        commit: Commit of the suite that ran, `-dirty` behind it where files were changed; null: unknown.
        host: Facts of the machine that ran the suites.
        target: Facts of the system under test, as read from it.
        tools: Versions of the tools that took part.
        counts: Values of targets that count, by outcome: of several attempts at the same thing one does, and
            the bench's checks of itself are not among them.
        problems: What went wrong with the run itself, not with what it measured.
        failed_tests: Robot Framework's tests that failed; null: none did, or the run is older than the list.
        asked: What its suites ask of each target, and what of it was skipped (reports/run/selected.py); null:
            no suite has said, or the run is of the version before.
        left_out: What the profile leaves out of what its targets take part in; null: nothing, or the run is
            older than the list.
        excluded_miss_probability: What a pass excludes of each stream with 95 %, by the profile; null: no
            stream was replayed, or the run is older than the key.
        interrupted: How much was counted when a signal ended the run, in words, empty: not known; null: none
            did, or the run is older than the key.
        finished_utc: When page and sums were written of a run whose process had died; null: they were written
            at its end, or not yet.
        outcome: As it was when the run came to its end; null: it did not, or is of the version before, whose
            `counts` have the bench's checks of itself, too.
        file_sizes_bytes: Size of each file of the run as it ends, by its name, null of pages; manifest and
            seals are not in it (reports/run/files.py). Null: it did not end, or is older than the list.
    """

    schema: str
    run_id: str
    bench: str
    profile: str
    simulated: bool | None
    start_utc: str
    end_utc: str | None
    commit: str | None
    host: dict[str, Any]
    target: dict[str, Any]
    tools: dict[str, Any]
    counts: dict[str, int]
    attempts: tuple[Attempt, ...] = ()
    tests: TestCounts = field(default_factory=TestCounts)
    problems: tuple[str, ...] = ()
    failed_tests: tuple[FailedTest, ...] | None = omit_none()
    asked: tuple[SelectedSuite, ...] | None = omit_none()
    left_out: tuple[LeftOut, ...] | None = omit_none()
    excluded_miss_probability: float | None = omit_none()
    interrupted: str | None = omit_none()
    finished_utc: str | None = omit_none()
    outcome: Outcome | None = omit_none()  # noqa: RUF009 - it returns a field
    file_sizes_bytes: dict[str, int | None] | None = omit_none()  # noqa: RUF009 - it returns a field

    def __post_init__(self) -> None:
        """Refuse a manifest of another schema."""
        if self.schema != MANIFEST_SCHEMA:
            raise RecordError(f"run.json: schema {self.schema!r} is not {MANIFEST_SCHEMA!r}")

    @classmethod
    def from_text(cls, text: str | bytes) -> Manifest:
        """Read `run.json`; raises RecordError, which names the key."""
        try:
            return from_json(cls, load_json(text), "run.json")
        except json.JSONDecodeError as error:
            raise RecordError(f"run.json: {error}") from error

    def to_text(self) -> str:
        """Return the manifest as the text of `run.json`."""
        return json.dumps(to_json(self), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def count_outcomes(measurements: Iterable[Measurement]) -> dict[str, int]:
    """Return how many values of targets that count have each outcome, all outcomes named."""
    counts: dict[str, int] = dict.fromkeys(OUTCOMES, 0)
    for measurement in effective(measurements):
        if measurement.quantity not in INSTRUMENT_CHECKS:
            counts[measurement.outcome] += 1
    return counts
