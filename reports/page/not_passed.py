# SPDX-License-Identifier: Apache-2.0
"""What did not pass, the worst first: each with its cause, its section and its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports.page.model import Report
from reports.record.measurement import Measurement
from reports.run.selected import UNTESTED, State
from reports.run.tally import WORST_FIRST, relative_margin

NO_RECORD = "no test recorded a value; see the failed tests among the problems"


@dataclass(frozen=True, slots=True)
class NotPassed:
    """One thing that did not pass.

    Attributes:
        target: Which of several targets it is of; empty: the run has one.
        requirement: Its id, and the network stack where the run has several.
        record: Its value; None: there is none.
        reason: Why, by the record or the test.
        cause: What the evidence says beside that; empty: nothing.
        section: Words and address of where the pages show it; the address may be empty.
    """

    state: State
    target: str
    requirement: str
    record: Measurement | None
    reason: str
    cause: str
    section: tuple[str, str]

    @property
    def lost(self) -> int:
        """Return how many were lost, where that and not the value is why; 0: it is the value."""
        record = self.record
        if record is None or record.lost <= record.allowed_lost or (record.margin or 0) < 0:
            return 0
        return record.lost


def not_passed(reports: Iterable[Report], pages: Mapping[str, str]) -> list[NotPassed]:
    """Return what did not pass on targets, the worst outcome and the least margin first.

    Args:
        reports: The report of each target.
        pages: Name of each target's page, from which it is linked to; empty: the page is its own.
    """
    found = [each for report in reports for each in _of_target(report, pages.get(report.target, ""))]
    return sorted(found, key=_rank)


def _rank(each: NotPassed) -> tuple[int, float]:
    if each.record is None:
        return len(WORST_FIRST), 0.0
    return WORST_FIRST.index(each.record.outcome), relative_margin(each.record) or 0.0


def _of_target(report: Report, page: str) -> Iterable[NotPassed]:
    names = {record: name for name, each in report.requirements.items() for record in each.records}
    for record in (*report.records, *report.checks):
        if record.outcome != "pass":
            words, anchor, cause = _shown(report, record)
            place = (words, f"{page}#{anchor}" if anchor else "")
            reason, id_ = record.reason, names.get(record, record.requirement)
            yield NotPassed(record.outcome, report.target, id_, record, reason, cause, place)
    for name, standing in report.unmeasured:
        if standing.state == UNTESTED:
            place = ("Not measured", f"{page}#unmeasured")
            yield NotPassed(UNTESTED, report.target, name, None, standing.reason or NO_RECORD, "", place)


def _shown(report: Report, record: Measurement) -> tuple[str, str, str]:
    """Return words and anchor of the section that shows a record, and what its evidence says."""
    for section, found in report.sections:
        for shown in found:
            if record in shown.records:
                anchor, words = section.contents[0]
                return words, anchor, shown.cause(record)
    anchors = {anchor for section, _ in report.sections for anchor, _ in section.contents}
    if record in report.checks and not any(record in records for _, records in report.others):
        return "Instrument", "instrument" if "instrument" in anchors else "", ""
    return "Other measurements", "others", ""
