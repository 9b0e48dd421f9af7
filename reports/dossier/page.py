# SPDX-License-Identifier: Apache-2.0
"""The dossier's pages as HTML for print, and as PDF/A-3b with the dossier's data inside.

The same dossier and run folders give the same bytes: nothing is read from the clock or the environment.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment

from reports.dossier.evidence_figures import late_messages
from reports.dossier.figure import FigureGroup
from reports.dossier.figures import draw_figures
from reports.dossier.model import Dossier, to_dossier_bytes
from reports.dossier.pdf import Attachment, Properties, render_pdf
from reports.dossier.published import deviates
from reports.dossier.view import Late, View, unknown
from reports.page.render import format_part, format_utc
from reports.quantities import PART_MEANINGS
from reports.record.measurement import Limit
from reports.templating import template_environment
from reports.units import exact_value, format_bytes, format_measured, format_value

ATTACHMENT = "dossier.json"
NOT_RECORDED = "not recorded"
SYMBOLS: dict[str, str] = {
    "pass": "✔",
    "fail": "✖",
    "inconclusive": "◐",
    "skipped": "↷",
    "untested": "○",
    "untested on hardware": "◇",
    "unset": "○",
    "error": "⚠",
}
"""What stands before a status or outcome; the word always stands behind it."""


@dataclass(frozen=True, slots=True)
class Section:
    """A numbered part of the dossier."""

    id: str
    number: str
    title: str


_SECTIONS = (
    ("conclusion", "Conclusion"),
    ("targets", "What was tested"),
    ("instruments", "What it was tested with"),
    ("rule", "How it was judged"),
    ("matrix", "Requirements and verdicts"),
    ("untested", "What was not tested"),
    ("waivers", "Waivers"),
    ("deviations", "Deviations and retries"),
    ("results", "Results"),
    ("figures", "Figures"),
    ("checks", "The bench's checks of itself"),
    ("attempts", "Repeated attempts"),
    ("runs", "Runs"),
)
_ANNEXES = (
    ("configuration", "Configuration of the targets, as read back"),
    ("provisioning", "What provisioning did"),
    ("hosts", "Hosts and tools"),
    ("files", "Files of requirements and raw data"),
    ("data", "The data in this file"),
)


def sections() -> tuple[Section, ...]:
    """Return the parts of every dossier, numbered; annexes by letters."""
    body = [Section(name, str(number), title) for number, (name, title) in enumerate(_SECTIONS, start=1)]
    letters = "ABCDEFGH"
    annexes = [Section(name, letter, title) for letter, (name, title) in zip(letters, _ANNEXES, strict=False)]
    return (*body, *annexes)


def write_dossier(dossier: Dossier, folders: Mapping[str, Path]) -> bytes:
    """Return the dossier as PDF/A-3b.

    Args:
        dossier: The dossier.
        folders: Run folders by run id, for the figures.

    Raises:
        ReportError: The pages cannot be made; the message says why.
    """
    return render_pdf(
        dossier_page(dossier, draw_figures(dossier, folders), late_messages(folders)),
        Properties(
            identifier=dossier.id,
            title=f"{dossier.title} ({dossier.id})",
            subject=f"Acceptance dossier: {dossier.conclusion.word}",
            author="",
            keywords=(dossier.id, *dict.fromkeys(target.name for target in dossier.targets)),
            time_utc=f"{dossier.date}T00:00:00Z",
        ),
        [
            Attachment(
                name=ATTACHMENT,
                data=to_dossier_bytes(dossier),
                media_type="application/json",
                description=f"All that {dossier.id} says, with every record, for machines",
                relationship="Data",
            )
        ],
    )


def dossier_page(dossier: Dossier, figures: Sequence[FigureGroup], late: Late = unknown) -> str:
    """Return the dossier as one HTML document for print; `late` as `View` takes it."""
    template = _environment().get_template("dossier.html.j2")
    every = sections()
    return template.render(
        dossier=dossier,
        sections=every,
        section={section.id: section for section in every},
        symbols=SYMBOLS,
        deviates=deviates,
        meanings=PART_MEANINGS,
        figures=figures,
        view=View(dossier, late),
        attachment=ATTACHMENT,
    )


@functools.cache
def _environment() -> Environment:
    """Return the templates' environment: each is compiled once in a process."""
    return template_environment(
        "reports.dossier",
        {
            "value": format_value,
            "measured": format_measured,
            "exact": exact_value,
            "size": format_bytes,
            "part": format_part,
            "utc": format_utc,
            "limit": format_limit,
            "words": in_words,
            "recorded": recorded,
            "breakable": breakable,
        },
    )


def format_limit(limit: Limit, unit: str) -> str:
    """Return a limit in words a formula would use: `≤ 10 ms`, `≥ 0`, `±10 µs`, `2 … 5 ms`."""
    if limit.lower is None:
        return f"≤ {format_value(limit.upper, unit)}"
    if limit.upper is None:
        return f"≥ {format_value(limit.lower, unit)}"
    if limit.lower == -limit.upper:
        return f"±{format_value(limit.upper, unit)}"
    return f"{format_value(limit.lower, unit)} … {format_value(limit.upper, unit)}"


def in_words(name: str) -> str:
    """Return a name of the records with spaces."""
    return name.replace("_", " ")


def recorded(text: str | None) -> str:
    """Return what was recorded, or that nothing was."""
    return text or NOT_RECORDED


def breakable(text: str) -> str:
    """Return a path or name that may be broken behind its separators."""
    for mark in "/.":
        text = text.replace(mark, f"{mark}\u200b")
    return text.replace("_", "_\u200b")
