# SPDX-License-Identifier: Apache-2.0
"""What the pages show of the largest pattern that a target takes within its budgets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.largest_pattern.capability import QUANTITY
from reports.largest_pattern.search import FILE, LargestPattern, Trial, read_largest_pattern
from reports.record.histogram import Quantile
from reports.record.measurement import Measurement
from reports.section import Section, TargetData, TargetView


@dataclass(frozen=True, slots=True)
class LargestPatternResult:
    """The record, and the search that it was made from.

    Attributes:
        found: None: the evidence cannot be read, `problem` says why.
    """

    record: Measurement
    found: LargestPattern | None
    problem: str

    @property
    def size(self) -> str:
        """Return the number that was found, of how many; empty where the evidence cannot be read."""
        if self.found is None:
            return ""
        number = f"at least {self.found.low}" if self.found.found is None else str(self.found.found)
        return f"{number} of {len(self.found.order)}"

    @property
    def lateness(self) -> Quantile | None:
        """Return the 99 % quantile of the generator's lateness at the number, the largest of its trials."""
        rated = [each for trial in (self.found.shown if self.found else ()) if (each := lateness_of(trial))]
        return max(rated, key=lambda quantile: quantile.value_ns, default=None)

    @property
    def trials(self) -> tuple[tuple[Trial, Quantile | None], ...]:
        """Return the trials as they were made, each with the lateness of its generator."""
        return tuple((trial, lateness_of(trial)) for trial in (self.found.trials if self.found else ()))


def lateness_of(trial: Trial) -> Quantile | None:
    """Return the 99 % quantile of the generator's lateness in a trial."""
    if trial.lateness_p99_ns is None:
        return None
    return Quantile(trial.lateness_p99_ns, trial.lateness_p99_lower_ns, trial.lateness_p99_upper_ns)


@dataclass(frozen=True, slots=True)
class LargestPatternSection(TargetView):
    """What was found of a target, with each of its network stacks."""

    results: tuple[LargestPatternResult, ...]

    @property
    def records(self) -> tuple[Measurement, ...]:
        """Return the records."""
        return tuple(result.record for result in self.results)


def gather_largest_pattern(found: TargetData) -> LargestPatternSection | None:
    """Return the section of a target; None: it was not looked for."""
    records = [each for each in found.records if each.quantity == QUANTITY]
    return LargestPatternSection(tuple(_result(found.folder, each) for each in records)) if records else None


def _result(run: Path, record: Measurement) -> LargestPatternResult:
    place = next((each.path for each in record.evidence if each.path.endswith(f"/{FILE}")), "")
    if not place:
        return LargestPatternResult(record, None, f"the record names no {FILE}")
    try:
        return LargestPatternResult(record, read_largest_pattern(run / place), "")
    except RecordError as error:
        return LargestPatternResult(record, None, str(error))


SECTION = Section(
    (("largest-pattern", "Largest pattern"),), "largest_pattern/section.html.j2", gather_largest_pattern
)
