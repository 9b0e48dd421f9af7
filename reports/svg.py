# SPDX-License-Identifier: Apache-2.0
"""From a matplotlib figure to SVG that sits inside a page: the same bytes each time, in the page's colours.

Figures are drawn in ink names of `INKS`; each stands for a CSS variable of the page, so that one figure
serves light, dark and print. Text stays text: it can be searched, selected and read aloud.
"""

from __future__ import annotations

import html
import io
import re
from importlib import import_module
from typing import Any

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_matplotlib: Any = import_module("matplotlib")  # its own types are incomplete

INKS = {
    "ink": "#010101",
    "muted": "#010102",
    "line": "#010103",
    "band": "#010104",
    "page": "#010105",
    "type0": "#010106",
    "type1": "#010107",
    "type2": "#010108",
    "type3": "#010109",
    "fail": "#01010a",
    "inconclusive": "#01010b",
}
"""Colours to draw with, by the CSS variable that each stands for."""

_FONT_SIZE = 9
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": _FONT_SIZE,
    "axes.edgecolor": INKS["muted"],
    "axes.labelcolor": INKS["ink"],
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "text.color": INKS["ink"],
    "xtick.color": INKS["muted"],
    "ytick.color": INKS["muted"],
    "xtick.labelcolor": INKS["ink"],
    "ytick.labelcolor": INKS["ink"],
    "grid.color": INKS["line"],
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


def style(name: str) -> Any:
    """Return the context in which the figure `name` is made and saved."""
    return _matplotlib.rc_context({**_STYLE, "svg.hashsalt": f"benchwright {name}"})


def new_figure(width_in: float, height_in: float) -> Any:
    """Return an empty figure of a size in inches, laid out by constraints."""
    return Figure(figsize=(width_in, height_in), layout="constrained")


def to_svg(figure: Any, name: str, title: str, description: str) -> str:
    """Return a figure as an SVG element.

    Args:
        figure: The figure.
        name: Short name, unique on the page; it makes the ids unique.
        title: What the figure is, for those who cannot see it.
        description: What it shows.
    """
    buffer = io.StringIO()
    canvas: Any = FigureCanvasSVG(figure)
    canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"'DejaVu Sans'[^;\"]*", "inherit", text)
    text = re.sub(r"font: ([\d.]+px) inherit", r"font-size: \1", text)
    for ink, colour in INKS.items():
        text = text.replace(colour, f"var(--{ink})")
    label = f'<title id="{name}-title">{html.escape(title)}</title>'
    label += f'<desc id="{name}-desc">{html.escape(description)}</desc>'
    head, rest = text.split(">", 1)
    head = re.sub(r' (width|height|version|xmlns(:\w+)?)="[^"]*"', "", head)
    return f'{head} role="img" aria-labelledby="{name}-title {name}-desc">{label}{rest}'.strip()
