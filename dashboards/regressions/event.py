# SPDX-License-Identifier: Apache-2.0
"""An event of a series: it became worse or better; between which runs, from what to what, which commits."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reports.units import format_value

Kind = Literal["regression", "improvement"]


class RunValue(NamedTuple):
    """What a run has measured of a series.

    Attributes:
        run_id: Id of the run.
        time_ns: Its start, in ns since 1970-01-01 UTC.
        value: The value, in the unit of the series.
        bench_key: What it was measured with; runs of different keys are never compared.
        commit: Commit of the suite, `-dirty` behind it where files were changed; '' or None: unknown.
    """

    run_id: str
    time_ns: int
    value: float
    bench_key: str = ""
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """Where the values of some runs lie, in the unit of the series."""

    runs: int
    median: float
    lower_quartile: float
    upper_quartile: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Level:
        """Return the level of one value or more."""
        low, median, high = (float(q) for q in np.quantile(values, (0.25, 0.5, 0.75)))
        return cls(len(values), median, low, high)


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a series; it advises, and never changes a verdict.

    Attributes:
        series: Name of the series.
        unit: Unit of its values.
        last_before: Most likely the last run before the change.
        first_after: Most likely the first run after it: the event's time.
        range_before: The change lies between this run, which is still before it,
        range_after: and this one, which is after it; how often is measured, see docs/regressions.md.
        seen: The run with which the change became visible.
        before: The baseline.
        after: The runs from `first_after` to `seen`.
        z: How strong the change is, see `split.Split`; positive: values went up.
        commits: Those from `range_before` to `range_after`, oldest first.
        commits_note: Why `commits` is empty, or may not be all there is; '' where it is complete.
    """

    kind: Kind
    series: str
    unit: str
    last_before: RunValue
    first_after: RunValue
    range_before: RunValue
    range_after: RunValue
    seen: RunValue
    before: Level
    after: Level
    z: float
    commits: tuple[str, ...] = ()
    commits_note: str = ""

    @property
    def ratio(self) -> float | None:
        """Return the median after over the median before; None where one of them is not above zero."""
        if self.before.median <= 0 or self.after.median <= 0:
            return None
        return self.after.median / self.before.median

    @property
    def title(self) -> str:
        """Return a few words for a mark on a panel: `regression: 5 ms → 6 ms (+20 %)`."""
        levels = f"{self._text(self.before.median)} → {self._text(self.after.median)}"
        share = "" if self.ratio is None else f" ({100 * (self.ratio - 1):+.3g} %)"
        return f"{self.kind}: {levels}{share}"

    @property
    def text(self) -> str:
        """Return what a reader wants to know, in sentences."""
        now = f"{self.series}: the median of {self.after.runs} runs from {self.first_after.run_id} is"
        then = f"of the {self.before.runs} runs to {self.last_before.run_id} it was"
        parts = [
            f"{now} {self._level(self.after)}; {then} {self._level(self.before)}.",
            f"The change lies between {self.range_before.run_id} and {self.range_after.run_id} (95 %).",
            f"Seen with {self.seen.run_id}, z = {self.z:+.2f}.",
        ]
        if self.commits:
            parts.append(f"Commits between: {' '.join(commit[:12] for commit in self.commits)}.")
        if self.commits_note:
            parts.append(f"Commits: {self.commits_note}.")
        return " ".join(parts)

    @property
    def figures(self) -> dict[str, float]:
        """Return the figures by name, each with its unit: `before_ns`, `ratio`, `z` and others."""
        suffix = f"_{unit}" if (unit := re.sub(r"\W+", "_", self.unit, flags=re.ASCII).strip("_")) else ""
        found = {
            f"before{suffix}": self.before.median,
            f"before_lower_quartile{suffix}": self.before.lower_quartile,
            f"before_upper_quartile{suffix}": self.before.upper_quartile,
            f"after{suffix}": self.after.median,
            f"after_lower_quartile{suffix}": self.after.lower_quartile,
            f"after_upper_quartile{suffix}": self.after.upper_quartile,
            "before_runs": float(self.before.runs),
            "after_runs": float(self.after.runs),
            "z": self.z,
        }
        return found if self.ratio is None else {**found, "ratio": self.ratio}

    def with_commits(self, commits: tuple[str, ...], note: str) -> Event:
        """Return the event with its commits, see `commits.commits_between`."""
        return dataclasses.replace(self, commits=commits, commits_note=note)

    def _text(self, value: float) -> str:
        return format_value(value, self.unit)

    def _level(self, level: Level) -> str:
        return (
            f"{self._text(level.median)} (half of them {self._text(level.lower_quartile)} .. "
            f"{self._text(level.upper_quartile)})"
        )
