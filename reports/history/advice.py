# SPDX-License-Identifier: Apache-2.0
"""What the history says of a run, as data in its folder: changes of series, with the figures they rest on.

It advises: no outcome, count or exit code is made from it. It is written after the run has ended, from the
runs before it, and lies in the folder so that the page is made from the folder alone ever after.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reports.errors import RecordError
from reports.record.codec import from_json, omit_none, to_json
from reports.record.json_text import load_json
from reports.record.measurement import Number

ADVICE = "evidence/history/advice.json"
ADVICE_SCHEMA = "benchwright.advice/1"

Kind = Literal["regression", "improvement"]
Side = Literal["worse", "better"]


@dataclass(frozen=True, slots=True)
class AdvisedLevel:
    """Where the values of some runs lie, in the unit of the series."""

    runs: int
    median: Number
    lower_quartile: Number
    upper_quartile: Number


@dataclass(frozen=True, slots=True)
class AdvisedCommit:
    """A commit, with its subject line; '' where Git does not know it."""

    hash: str
    subject: str


@dataclass(frozen=True, slots=True)
class SeriesChange:
    """A series that has changed for good, seen with this run.

    Attributes:
        last_before: Run ids: most likely the last run before the change,
        first_after: and the first after it.
        range_before: Run ids between which the change lies, with 95 %.
        seen: The run with which the change became visible.
        after_least: Runs behind the change at least,
        after_most: and at most, by the same range.
        z: How strong it is, in standard deviations of a split; positive: values went up.
        values: The last values of the series, oldest first, the last one of `seen`.
    """

    kind: Kind
    series: str
    unit: str
    last_before: str
    first_after: str
    range_before: str
    range_after: str
    seen: str
    before: AdvisedLevel
    after: AdvisedLevel
    after_least: int
    after_most: int
    z: Number
    commits: tuple[AdvisedCommit, ...]
    commits_note: str
    values: tuple[Number, ...]

    @property
    def step(self) -> Number:
        """Return the median after less the median before, in the unit of the series."""
        return self.after.median - self.before.median

    @property
    def share(self) -> float | None:
        """Return the step as a share of the median before; None where one of them is not above zero."""
        if self.before.median <= 0 or self.after.median <= 0:
            return None
        return self.step / self.before.median


@dataclass(frozen=True, slots=True)
class BeyondBaseline:
    """A value of this run that is worse, or better, than every one of its baseline.

    Attributes:
        lowest: Smallest value of the baseline,
        highest: and the largest.
        values: The last values of the baseline, oldest first, and this run's.
    """

    side: Side
    series: str
    unit: str
    value: Number
    baseline: AdvisedLevel
    lowest: Number
    highest: Number
    values: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class NewPattern:
    """A pattern of a series that the run before did not have, and could have shown.

    Attributes:
        series: Folder of the evidence, and of what.
        text: Its kind and period: `ramp, period 30 s`.
        run_before: The last run before that was searched for it.
    """

    series: str
    text: str
    run_before: str


@dataclass(frozen=True, slots=True)
class BenchChange:
    """The last change of the bench.

    Attributes:
        run_id: First run with the bench as it is now.
        run_before: The run before it.
        runs_since: Runs on this bench since, this one and `run_id` among them; 1: it changed with this run.
        text: What changed, in words.
    """

    run_id: str
    run_before: str
    runs_since: int
    text: str


@dataclass(frozen=True, slots=True)
class Advice:
    """What the history says of a run.

    Attributes:
        branch: Class of the branch of this run.
        compared_with: Class of the branch whose runs it is compared with.
        runs_needed: Earlier runs that a series needs before anything is said of it.
        series: How many series the run has that are watched.
        series_ready: Those of them with enough history: same bench key, and since their last change.
        history_least: Earlier runs of the series with the shortest such history,
        history_most: and of the one with the longest.
        changes: Largest |z| first.
        beyond: The farthest first.
        beyond_by_chance: How many values would be beyond if nothing had changed.
        change_needs: Earlier runs that a series needs before a change can be seen; 0: an older file.
        new_patterns: Those that the run before did not have; None: an older file.
        patterns_untold: Patterns that are not in the run before, which was too short to show them.
    """

    schema: str
    run_id: str
    bench: str
    profile: str
    branch: str
    compared_with: str
    runs_needed: int
    series: int
    series_ready: int
    history_least: int
    history_most: int
    bench_change: BenchChange | None
    changes: tuple[SeriesChange, ...]
    beyond: tuple[BeyondBaseline, ...]
    beyond_by_chance: Number
    change_needs: int = 0
    new_patterns: tuple[NewPattern, ...] | None = omit_none()
    patterns_untold: int | None = omit_none()

    @property
    def tells_changes(self) -> bool:
        """Say whether no change is a statement: of a series at least one could have been seen."""
        return self.branch == self.compared_with and self.history_most >= self.change_needs

    def to_bytes(self) -> bytes:
        """Return the advice as the file in the run folder."""
        return (json.dumps(to_json(self), ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def parse_advice(data: bytes) -> Advice:
    """Read the file of a run folder; raises RecordError, which names the key."""
    name = Path(ADVICE).name
    try:
        decoded: object = load_json(data)
    except ValueError as error:
        raise RecordError(f"{name}: {error}") from error
    found = from_json(Advice, decoded, name)
    if found.schema != ADVICE_SCHEMA:
        raise RecordError(f"{name}: schema {found.schema!r} is not {ADVICE_SCHEMA!r}")
    return found


def find_advice(folder: Path, added: Mapping[str, bytes], run_id: str) -> Advice | None:
    """Return the advice of a run folder; None: it has none.

    Args:
        folder: The run folder.
        added: Files that are about to be added to it, by their name.
        run_id: The run, which has to be the one that is advised.

    Raises:
        RecordError: It is damaged, or that of another run.
    """
    data = added.get(ADVICE)
    if data is None:
        try:
            data = (folder / ADVICE).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"{ADVICE}: {error.strerror}") from error
    advice = parse_advice(data)
    if advice.run_id != run_id:
        raise RecordError(f"{ADVICE}: of run {advice.run_id}, not of {run_id}")
    return advice
