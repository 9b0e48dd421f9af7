# SPDX-License-Identifier: Apache-2.0
"""The section on the timeline: legs beside the paper's, what the clocks did, a known delay, bulk data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from reports.errors import ReportError
from reports.record.measurement import Measurement
from reports.section import PrintFigure, Section, TargetData, TargetView
from reports.timeline.bulk import Bulk, load_bulk_transfer
from reports.timeline.bulk_evidence import BULK_FILE, BULK_FOLDER
from reports.timeline.capability import CAPABILITY, FROM_TARGET, TO_TARGET
from reports.timeline.clock_record import ClockRecord
from reports.timeline.delayed_legs import DELAY_FOLDERS, FoundDelay, found_delays
from reports.timeline.leg import Leg, quantile_ns
from reports.timeline.legs import Legs, load_stimulus_response
from reports.timeline.legs_evidence import FOLDER, LEGS_FILE
from reports.timeline.legs_plots import figure_clock, figure_legs
from reports.timeline.place_errors import BESIDE_CARD, PlaceErrors, load_place_errors
from reports.timeline.verdict import contradiction_text, leg_uncertainty

PAPER_MEAN_NS = {TO_TARGET: 67_440, FROM_TARGET: 64_830}
"""Distributed control loops on Linux, 4.2.2: server to client, and back; 48 bytes over TCP."""
LEGS_CAPTION = (
    "Each message from one program to the other, with U (band). Right: how often each time came. The slowest"
    " one in a hundred may lie above."
)
CLOCK_CAPTION = "What each reading says of the clock, less a line through all; bars: U of the reading."


@dataclass(frozen=True, eq=False)
class LegRow:
    """What the table shows of a leg, in ns."""

    leg: Leg
    median_ns: int
    u_ns: float
    mean_ns: float
    p99_ns: int
    paper_mean_ns: int
    negative: int
    missing: int


@dataclass(frozen=True, eq=False)
class ClockRow:
    """What the table shows of a clock: readings, rate in ppb, median of their U and bound, in ns."""

    record: ClockRecord
    rate_ppb: float
    u_ns: float
    bound_ns: float
    breaks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class TimelineSection(TargetView):
    """What the section shows.

    Attributes:
        legs: None: the evidence could not be read.
        errors: Of places beside a card; None: none was read.
        bulk: None: none was sent, or the evidence could not be read.
        problems: Why.
    """

    judged: tuple[Measurement, ...]
    legs: Legs | None
    delays: tuple[FoundDelay, ...] = ()
    errors: PlaceErrors | None = None
    bulk: Bulk | None = None
    problems: tuple[str, ...] = ()

    @property
    def records(self) -> Sequence[Measurement]:
        """Return the records that it shows."""
        return self.judged

    @property
    def rows(self) -> list[LegRow]:
        """Return the legs that have a message."""
        if self.legs is None:
            return []
        return [
            LegRow(
                leg,
                quantile_ns(leg.time_ns, 0.5),
                leg_uncertainty(leg, "median").expanded,
                float(np.mean(leg.time_ns)),
                quantile_ns(leg.time_ns, 0.99),
                PAPER_MEAN_NS[leg.name],
                negative,
                self.legs.missing(leg),
            )
            for leg, negative in zip(self.legs.legs, self.legs.negative, strict=True)
            if len(leg)
        ]

    @property
    def clocks(self) -> list[ClockRow]:
        """Return the clocks of both ends."""
        found: list[ClockRow] = []
        for record in self.legs.clocks if self.legs else ():
            local_ns, tai_ns = (int(each[-1] - each[0]) for each in (record.local_ns, record.tai_ns))
            rate_ppb = 1e9 * (local_ns - tai_ns) / tai_ns if tai_ns else 0.0
            every = self.legs.breaks if self.legs else ()
            breaks = tuple(f"{one.kind} of {one.size_ns} ns" for node, one in every if node == record.node)
            u_ns, bound_ns = (float(np.median(each)) for each in (record.u_ns, record.bound_ns))
            found.append(ClockRow(record, rate_ppb, u_ns, bound_ns, breaks))
        return found

    @property
    def place_medians(self) -> tuple[float, ...]:
        """Return the medians of error, U, bound and the card's own error, in ns; empty: no card was read."""
        if self.errors is None or not len(self.errors):
            return ()
        places = self.errors.places
        every = np.abs(self.errors.error_ns), places.u_ns, places.bound_ns, self.errors.card_ns
        return tuple(float(np.median(each)) for each in every)

    @property
    def contradiction(self) -> str:
        """Return the worst contradiction in words; empty: there is none."""
        causes = self.legs.causality if self.legs else None
        return contradiction_text(causes) if causes and causes.contradictions else ""

    @property
    def figures(self) -> list[tuple[str, str]]:
        """Return figures with their captions."""
        return list(self._drawn())

    @property
    def print_figures(self) -> Iterable[PrintFigure]:
        """Return the figure of the legs."""
        return [PrintFigure(svg, caption, "wide") for svg, caption in islice(self._drawn(), 1)]

    def _drawn(self) -> Iterator[tuple[str, str]]:
        """Draw one figure after the other, that of the legs first."""
        if self.legs is None:
            return
        if all(map(len, self.legs.legs)):
            yield figure_legs("timeline-legs", self.legs), LEGS_CAPTION
        ends = self.legs.facts.server, self.legs.facts.client
        for place, each in enumerate(self.legs.clocks):
            if each.tai_ns.size > 1 and ends[place].exchanges:  # the reference itself is a line
                caption = f"{each.node}, {each.source}. {CLOCK_CAPTION}"
                yield figure_clock(f"timeline-clock-{place}", each), caption


def gather_timeline(measured: TargetData) -> TimelineSection | None:
    """Return the section of a target; None: nothing was measured."""
    folder = measured.evidence(FOLDER)
    judged = tuple(each for each in measured.records if each.quantity in CAPABILITY.quantities)
    has_legs, has_card = ((each / LEGS_FILE).exists() for each in (folder, folder / BESIDE_CARD))
    has_bulk = (folder / BULK_FOLDER / BULK_FILE).exists()
    if not judged and not has_legs and not has_card and not has_bulk:
        return None
    legs, bulk, errors, delays = None, None, None, tuple[FoundDelay, ...]()
    problems: list[str] = []
    try:
        if has_bulk:
            bulk = measured.once(load_bulk_transfer, folder / BULK_FOLDER)
    except ReportError as error:
        problems.append(str(error))
    try:
        if has_card:
            errors = measured.once(load_place_errors, folder / BESIDE_CARD)
    except ReportError as error:
        problems.append(str(error))
    try:
        if has_legs or not (has_bulk or has_card):
            legs = measured.once(load_stimulus_response, folder)
        if all((folder / name / LEGS_FILE).exists() for name in DELAY_FOLDERS):
            delays = tuple(measured.once(found_delays, folder))
    except ReportError as error:
        problems.append(str(error))
    return TimelineSection(judged, legs, delays, errors, bulk, tuple(problems))


SECTION = Section((("timeline", "One timeline"),), "timeline/section.html.j2", gather_timeline)
