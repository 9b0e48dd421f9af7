# SPDX-License-Identifier: Apache-2.0
"""The page of a night: one HTML file without a script, which needs no network."""

from __future__ import annotations

from collections.abc import Sequence

from reports.templating import template_environment
from tests.night.result import Result, Verdict
from tests.night.shift import stolen_text
from tests.night.state import State
from tests.night.summary import FAILED, NO_VERDICT, PASSED, SLOWER, Summary

_HEADINGS = {
    PASSED: ("Nothing failed", "pass"),
    FAILED: ("Something failed", "fail"),
    NO_VERDICT: ("No verdict", "inconclusive"),
}
"""By exit code, each with its class of style."""
_CLASSES = {
    Verdict.PASSED: "pass",
    Verdict.FAILED: "fail",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.SKIPPED: "skipped",
}


def render(summary: Summary) -> str:
    """Return the page."""
    filters = {"duration": _duration, "stolen": _stolen, "figure": _figure, "folder": _folder}
    heading, heading_class = _HEADINGS[summary.exit_code]
    if summary.exit_code == PASSED and len(summary.rows) < summary.parts:
        heading, heading_class = f"{heading} in {len(summary.rows)} of {summary.parts} parts", "partial"
    template = template_environment("tests.night", filters).get_template("summary.html.j2")
    return template.render(
        summary=summary,
        heading=heading,
        heading_class=heading_class,
        classes=_CLASSES,
        slower_limit=SLOWER,
        benchmarks=[row for row in (*summary.rows, *summary.elsewhere) if row.result.figures],
    )


def _folder(result: Result) -> str:
    return State(result.commit, result.diff).folder_name


def _duration(seconds: float) -> str:
    """Return a duration in minutes and seconds, short ones in seconds alone."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def _stolen(stolen: Sequence[float]) -> str:
    return f"{stolen_text(stolen)} s"


def _figure(value: float | None) -> str:
    return "\N{EN DASH}" if value is None else f"{value:.4g}"
