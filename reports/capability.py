# SPDX-License-Identifier: Apache-2.0
"""What a capability says of itself: `reports/CAP/capability.py` holds one as `CAPABILITY`.

The rest of a folder goes by its file names: `section.py` has `SECTION`, what the report shows of it;
`again.py` has `AGAIN`, what the second judge knows of it. Nothing else of a capability stands anywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from reports.requirement_keys import Keys

VERDICT = "verdict"
"""Series of what is no time: it is followed with the verdicts."""
Worse = Literal["higher", "lower", "farther from zero"]
"""Where values get worse to: a latency higher, a number of producers lower, an offset farther from zero."""


@dataclass(frozen=True, slots=True)
class Series:
    """Times, in ns, that the store, trends and Grafana keep together.

    Attributes:
        title: On pages.
        words: What a reader has to know of the values.
        subject: What tells them apart: an axis.
        followed: Fields that the adviser follows besides the value.
    """

    title: str
    words: str
    subject: str
    followed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Quantity:
    """One quantity.

    Attributes:
        unit: Of its values.
        series: What the adviser follows it in: the name of a series, or VERDICT; None: the records'
            verdict alone.
        worse: Where its values get worse to.
        is_check: By it the bench checks itself: it cannot fail the target, only leave it undecided.
        has_distribution: A record is of one set of samples, whose distribution the evidence holds.
    """

    unit: str = "ns"
    series: str | None = None
    worse: Worse = "higher"
    is_check: bool = False
    has_distribution: bool = False


@dataclass(frozen=True)
class Capability:
    """Something that Benchwright measures.

    Attributes:
        position: Its place in the report, in trends and in Grafana, among those of the others.
        quantities: What it measures, each by its name in records.
        axes: What a value may be of besides target and stack, with the word that stands before its values
            where they do not speak for themselves.
        series: By the name that measurements of the store have behind `hil_`.
        part_meanings: Parts of U by the names that records have for them, and what each means.
        requirements: Forms of a requirement by quantity, of its own or of another capability; of several
            that counts which lacks least. A quantity without one takes what any may have.
    """

    position: int
    quantities: Mapping[str, Quantity]
    axes: Mapping[str, str] = field(default_factory=dict[str, str])
    series: Mapping[str, Series] = field(default_factory=dict[str, Series])
    part_meanings: Mapping[str, str] = field(default_factory=dict[str, str])
    requirements: Mapping[str, tuple[Keys, ...]] = field(default_factory=dict[str, tuple[Keys, ...]])
