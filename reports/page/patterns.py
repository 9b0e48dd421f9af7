# SPDX-License-Identifier: Apache-2.0
"""What the page shows of the patterns that a run keeps, for each section: its own series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reports.errors import RecordError
from reports.patterns.finding import Finding
from reports.patterns.kept import RunPatterns, SearchedSeries, read_patterns
from reports.patterns.plot import figure_patterns
from reports.patterns.sentence import parameter_words, sentence

FIGURES_MAX = 6
"""Of one section."""
ALIKE = 0.02
TIMES = {"period", "start", "end"}
"""Two series whose patterns differ by less in these have the same."""
CLOCKS = "clock_sync"


@dataclass(frozen=True)
class ShownPatterns:
    """A series with its patterns, and others of the same measurement that have the same.

    Attributes:
        series: The first one.
        also: Names of the others.
        name: Of its figure, unique on the page.
    """

    series: SearchedSeries
    also: tuple[str, ...]
    name: str

    @property
    def title(self) -> str:
        """Return what it is of: the folder of the measurement, and which series."""
        return f"{self.series.place.partition('/')[2]}: {self.series.name}"

    @cached_property
    def findings(self) -> list[Finding]:
        """Return its patterns, those that come once in the order of time."""
        return sorted(self.series.findings, key=_start_s)

    @cached_property
    def sentences(self) -> list[str]:
        """Return what its patterns look like."""
        return [sentence(each, self.series.place.startswith(CLOCKS)) for each in self.findings]

    @cached_property
    def parameters(self) -> list[str]:
        """Return the parameters of each."""
        return [parameter_words(each) for each in self.findings]

    @cached_property
    def figure(self) -> str:
        """Return it drawn, as SVG."""
        drawn = self.series.drawn
        return figure_patterns(self.name, drawn, self.series.name, self.sentences) if drawn else ""

    @property
    def shown_part(self) -> str:
        """Return in words what of it is not drawn; empty: all is."""
        drawn = self.series.drawn
        if drawn is None:
            return ""
        words: list[str] = []
        if drawn.to_s - drawn.from_s < 0.98 * self.series.length_s:
            words.append(
                f"Drawn: {drawn.to_s - drawn.from_s:.3g} of {self.series.length_s:.4g} s, from its middle."
            )
        has_grid = any(each.kind == "grid" for each in self.findings)
        if has_grid and not any(each.kind == "grid" for each in drawn.lines):
            words.append("The grid is too fine to be drawn.")
        return " ".join(words)


@dataclass(frozen=True, slots=True)
class SectionPatterns:
    """What a section shows of patterns.

    Attributes:
        drawn: Those with a figure,
        listed: and those without, as there are too many.
        searched: How many series of it were searched.
        left_out: How many were not, by why.
        problem: Why none can be shown; empty: they can.
        is_bounded: The profile takes no more series of the run than were searched.
    """

    drawn: tuple[ShownPatterns, ...] = ()
    listed: tuple[ShownPatterns, ...] = ()
    searched: int = 0
    left_out: tuple[tuple[str, int], ...] = ()
    problem: str = ""
    is_bounded: bool = False


class PagePatterns:
    """The patterns of a run folder; read once, and shown by capability and target."""

    def __init__(self, run: Path) -> None:
        """Read them; a file that cannot be read is said, and shows nothing."""
        self._found: RunPatterns | None = None
        self._problem = ""
        try:
            self._found = read_patterns(run)
        except RecordError as error:
            self._problem = str(error)

    def of(self, capability: str, target: str) -> SectionPatterns | None:
        """Return what is shown of a capability; None: nothing of it was looked at.

        Args:
            capability: Its folder.
            target: Of several; empty: the run has one at most.
        """
        if self._problem:
            return SectionPatterns(problem=self._problem)
        if self._found is None:
            return None
        own = [each for each in self._found.series if _is_of(each.place, capability, target)]
        why: dict[str, int] = {}
        for each in self._found.left_out:
            if _is_of(each.place, capability, target):
                why[each.why] = why.get(each.why, 0) + 1
        if not own and not why:
            return None
        groups = list(grouped([each for each in own if each.findings], capability))
        return SectionPatterns(
            tuple(groups[:FIGURES_MAX]),
            tuple(groups[FIGURES_MAX:]),
            len(own),
            tuple(why.items()),
            is_bounded=len(self._found.series) >= self._found.series_max,
        )


def _start_s(finding: Finding) -> float:
    start = finding.parameters.get("start")
    return start.value if start else -1.0


def _is_of(place: str, capability: str, target: str) -> bool:
    folder, _, rest = place.partition("/")
    return folder == capability and (not target or rest.split("/")[0] == target)


def grouped(series: Sequence[SearchedSeries], capability: str) -> Iterator[ShownPatterns]:
    """Give each series with those of the same measurement that have the same patterns.

    Args:
        series: All have a pattern.
        capability: Its folder, for the names of figures.
    """
    left = list(series)
    number = 0
    while left:
        first = left.pop(0)
        alike = [each for each in left if each.place == first.place and _are_alike(each, first)]
        left = [each for each in left if not any(each is same for same in alike)]
        yield ShownPatterns(first, tuple(each.name for each in alike), f"{capability}-pattern-{number}")
        number += 1


def _are_alike(one: SearchedSeries, other: SearchedSeries) -> bool:
    """Tell whether two series have the same kinds of patterns, at the same times."""
    if [each.kind for each in one.findings] != [each.kind for each in other.findings]:
        return False
    pairs = [
        (each.parameters[name].value, same.parameters[name].value)
        for each, same in zip(one.findings, other.findings, strict=True)
        for name in TIMES & each.parameters.keys() & same.parameters.keys()
    ]
    return bool(pairs) and all(abs(left - right) <= ALIKE * abs(left) for left, right in pairs)
