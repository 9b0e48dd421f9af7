# SPDX-License-Identifier: Apache-2.0
"""What a section of the report is: a capability gathers what a run has of it, pages and dossier show it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar, cast

from reports.record.histogram import Summary
from reports.record.measurement import Measurement, Number, UncertaintyPart
from reports.run.targets import evidence_of

Evidence = TypeVar("Evidence")
Size = Literal["whole", "wide", "half"]
"""A landscape page of its own, its width, half of its width."""


@dataclass(frozen=True, slots=True)
class TargetData:
    """What a run has of one target.

    Attributes:
        folder: The run folder.
        records: The target's measurements that count.
        attempts: Its measurements of all attempts.
        target: Empty: the run has one at most.
        targets: All targets of the run.
        read: What was read for one section, by reader and folder: another one need not read it again.
    """

    folder: Path
    records: Sequence[Measurement] = ()
    attempts: Sequence[Measurement] = ()
    target: str = ""
    targets: Sequence[str] = ()
    read: dict[tuple[Callable[[Path], object], Path], object] = field(
        default_factory=dict[tuple[Callable[[Path], object], Path], object], compare=False, repr=False
    )

    def once(self, reader: Callable[[Path], Evidence], folder: Path) -> Evidence:
        """Return what a reader makes of a folder, which is read for the first section that asks alone."""
        key = (reader, folder)
        if key not in self.read:
            self.read[key] = reader(folder)
        return cast(Evidence, self.read[key])

    def evidence(self, capability: str) -> Path:
        """Return the folder that holds the target's evidence of a capability; it need not exist."""
        return evidence_of(self.folder, capability, self.target, self.targets)


@dataclass(frozen=True, slots=True)
class PrintFigure:
    """A figure for the dossier: SVG in the page's inks, what it shows and how to read it, its place."""

    svg: str
    caption: str
    size: Size


class TargetView:
    """What a section shows of one target; pages call the template's macros with it."""

    @property
    def records(self) -> Collection[Measurement]:
        """Return the records that it shows: the page lists them nowhere else."""
        raise NotImplementedError

    @property
    def parts(self) -> Iterable[tuple[str, UncertaintyPart]]:
        """Return the parts of those uncertainties that stand in no record, each after its unit."""
        return ()

    def cause(self, record: Measurement) -> str:
        """Return what the evidence of one of `records` says of why it did not pass; empty: nothing."""
        del record
        return ""

    @property
    def evidence_problems(self) -> Iterable[str]:
        """Return what of the evidence cannot be read, or is not as it has to be, for the head of the page."""
        return ()

    @property
    def print_figures(self) -> Iterable[PrintFigure]:
        """Return its figures for the dossier, those without SVG left out there."""
        return ()


@dataclass(frozen=True, slots=True)
class Samples:
    """What the evidence of one record says of its samples.

    Attributes:
        what: In words.
        buckets: Lower edge, width, count of each, in ascending order.
        has_sign: Neither end is the good one: quantiles of both are told.
        unit: Of everything but counts.
    """

    what: str
    n: int
    minimum: Number
    mean: Number | None
    maximum: Number
    buckets: Sequence[Sequence[Number]]
    has_sign: bool
    unit: str = "ns"

    @classmethod
    def of_summary(cls, what: str, summary: Summary, *, has_sign: bool = False) -> Samples | None:
        """Return those of a tool's summary in ns; None: it has none."""
        if not summary.n or summary.min_ns is None or summary.max_ns is None:
            return None
        found = (summary.n, summary.min_ns, summary.mean_ns, summary.max_ns, summary.buckets)
        return cls(what, *found, has_sign)


SampleReader = Callable[[Measurement], Samples | None]
"""From a record of a run to its samples; raises ReportError or OSError where evidence cannot be read."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section.

    Attributes:
        contents: Its entries in the page's list of contents: anchor and words. The first anchor is its name.
        template: From reports/, or an absolute path. Its macro `section(shown)` draws all of it, with
            its heading. It may have `tiles(every)`, list items from what it shows of each target;
            and, on the page over several, from `reports.page.overview.TargetRow`s, `over_targets(rows)`, a
            table, and `instrument_over_targets(rows)`, one of the bench's own errors.
        gather: Reads what a run has of one target; None: nothing. What cannot be read it says itself.
        samples: From a run folder to the reader of its records' samples, for the dossier.
    """

    contents: tuple[tuple[str, str], ...]
    template: str
    gather: Callable[[TargetData], TargetView | None]
    samples: Callable[[Path], SampleReader] | None = None

    @property
    def name(self) -> str:
        """Return its anchor."""
        return self.contents[0][0]
