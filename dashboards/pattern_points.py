# SPDX-License-Identifier: Apache-2.0
"""From the patterns that a run keeps to points of series: one for each series of latency that was searched.

A series without a pattern has its point, too: the run after it may have one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, cast

from dashboards.line_protocol import Field, Point, tag_text
from reports.errors import RecordError
from reports.run.folder import EVIDENCE, RunFolder

if TYPE_CHECKING:
    from reports.patterns.finding import Finding

PATTERN = "hil_pattern"
SAME = 0.1
"""Two patterns of one kind whose periods, or widths, differ by less are one."""


@dataclass(frozen=True, slots=True)
class SeenPattern:
    """A pattern as the history compares it.

    Attributes:
        kind: As in docs/patterns.md.
        words: Kind and period.
        period_s: Also of the gaps that are recovered from; None: it does not come again.
        width_ms: Of a grid that stays.
        end_s: When it is over, of what comes once.
    """

    kind: str
    words: str
    period_s: float | None = None
    width_ms: float | None = None
    end_s: float | None = None

    @classmethod
    def of(cls, finding: Finding, words: str, gaps_s: float | None) -> SeenPattern:
        """Return that of a finding, in words; gaps_s: the period of its series' gaps."""
        of = {name: each.value for name, each in finding.parameters.items()}
        period_s = of.get("period", gaps_s if finding.kind == "recovery" else None)
        width_ms = of.get("width") if finding.kind == "grid" else None
        return cls(finding.kind, words, period_s, width_ms, of.get("end"))

    def is_like(self, other: SeenPattern) -> bool:
        """Tell whether another one is the same, by its kind and how long or wide it is."""
        pairs = (self.period_s, other.period_s), (self.width_ms, other.width_ms)
        return self.kind == other.kind and all(
            one is None or two is None or abs(one - two) <= SAME * abs(one) for one, two in pairs
        )


def pattern_points(
    folder: RunFolder, branch: str, time_ns: int, common: Callable[[str], Mapping[str, Field]]
) -> Iterator[Point]:
    """Give a point for each series that was searched; none where the file cannot be read.

    Args:
        folder: The run.
        branch: Its class.
        time_ns: Its start.
        common: From a target to the fields that all points of it have.
    """
    if not (folder.path / EVIDENCE / "patterns").is_dir():
        return
    from reports.patterns.kept import read_patterns  # which takes as long as most commands
    from reports.patterns.sentence import period_words

    try:
        kept = read_patterns(folder.path)
    except RecordError:
        return
    for each in kept.series if kept else ():
        target = each.place.split("/")[1] if "/" in each.place else ""
        gaps_s = next((f.parameters["period"].value for f in each.findings if f.kind == "gap"), None)
        seen = [SeenPattern.of(one, period_words(one), gaps_s) for one in each.findings]
        manifest = folder.manifest
        tags = {
            "bench": manifest.bench,
            "target": target,
            "place": each.place,
            "series": each.name,
            "profile": manifest.profile,
        }
        fields: dict[str, Field] = {
            **common(target),
            "length_s": float(each.length_s),
            "n": each.n,
            "count": len(seen),
            "patterns": json.dumps([_without_none(one) for one in seen], ensure_ascii=False),
        }
        texts = {name: tag_text(value) for name, value in tags.items() if value}
        yield Point(PATTERN, {**texts, "branch": branch}, fields, time_ns)


def _without_none(seen: SeenPattern) -> dict[str, Any]:
    return {name: value for name, value in asdict(seen).items() if value is not None}


def patterns_in(text: str) -> list[SeenPattern]:
    """Return the patterns of a point's field; raises ValueError or TypeError where it is damaged."""
    found: object = json.loads(text)
    return [SeenPattern(**each) for each in cast("list[dict[str, Any]]", found)]
