# SPDX-License-Identifier: Apache-2.0
"""A figure of the dossier: SVG in the colours of print, its caption, its place on a page."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reports.dossier.model import Attempt, Result
from reports.section import PrintFigure

LATENCY = "one_way_latency"
"""Quantity that is held against a budget of its stream."""
UPRIGHT_IN = 8.4
"""Width at which figures are drawn for an upright page."""
_PRINT = {
    "ink": "#17212b",
    "muted": "#4a5560",
    "line": "#d3d9e0",
    "band": "#f0f3f6",
    "page": "#ffffff",
    "type0": "#1768ac",
    "type1": "#c1530b",
    "type2": "#1d7f5c",
    "type3": "#8e3b8a",
    "fail": "#b0211b",
    "inconclusive": "#875400",
}
"""Colours of print by the names of `reports.svg.INKS`."""


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """Figures that belong together under one heading; upright: on pages of that format, several a page."""

    title: str
    figures: tuple[PrintFigure, ...]
    upright: bool = False


def shown_attempt(result: Result) -> Attempt:
    """Return the attempt whose value the pages show."""
    return next(attempt for attempt in result.attempts if attempt.number == result.shown)


def printed(svg: str, prefix: str) -> str:
    """Return a figure in the colours and the font of print, its ids made unique by a prefix."""
    if not svg:
        return ""
    if prefix:
        svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
        svg = re.sub(r"url\(#", f"url(#{prefix}-", svg)
        svg = re.sub(r'\bhref="#', f'href="#{prefix}-', svg)
        svg = re.sub(
            r'aria-labelledby="([^" ]+) ([^" ]+)"', rf'aria-labelledby="{prefix}-\1 {prefix}-\2"', svg
        )
    svg = re.sub(r"var\(--(\w+)\)", lambda found: _PRINT[found[1]], svg)
    svg = svg.replace("font-family: inherit", "font-family: DejaVu Sans")
    return svg.replace("<svg ", '<svg font-family="DejaVu Sans" ', 1)
