# SPDX-License-Identifier: Apache-2.0
"""The page of trends: one HTML file that needs no network, no server and no installation.

The same store gives the same bytes: nothing is read from the clock or the environment. Scripts and style are
named by their hashes in the page's content security policy, which forbids every connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from dashboards.errors import StoreError
from dashboards.points import PHYSICAL
from dashboards.store import Store
from dashboards.trends.content import content
from dashboards.trends.selection import Selection
from reports.durable import replace_file
from reports.errors import RunFolderError
from reports.quantities import SERIES

DEFAULT_PAGE = Path("results/trends.html")
SCRIPTS = (
    "format.js",
    "data.js",
    "filter.js",
    "scale.js",
    "view.js",
    "ink.js",
    "series_layer.js",
    "marks_layer.js",
    "chart.js",
    "chart_input.js",
    "dom.js",
    "tooltip.js",
    "events.js",
    "overview.js",
    "series_section.js",
    "health.js",
    "run_detail.js",
    "controls.js",
    "main.js",
)
"""The parts of the script, in the order in which they are put together."""
_WEB = Path(__file__).with_name("web")
_HEX = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render(store: Store, selection: Selection) -> str:
    """Return the page; raises StoreError and ConfigError as `content` does."""
    return page_of(content(store, selection), script())


def page_of(shown: dict[str, Any], script_text: str) -> str:
    """Return the page of what is to be shown, with a script."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow to load, and for this alone

    style = (_WEB / "style.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("dashboards.trends", "web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        data=json_in_html(shown),
        parts=[(name, PHYSICAL[name], row) for name, row in SERIES.items()],
        script=script_text,
        script_hash=_hash(script_text),
        style=style,
        style_hash=_hash(style),
    )


def write_page(store: Store, selection: Selection, path: Path) -> int:
    """Render the page into a file, whole or not at all; return the number of runs in it.

    Raises:
        StoreError: The store cannot be read, or the file cannot be written.
        ConfigError: A filter names what no run has.
    """
    shown = content(store, selection)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, page_of(shown, script()).encode())
    except (OSError, RunFolderError) as error:
        raise StoreError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return int(shown["number_of_runs"])


def script() -> str:
    """Return the script of the page: its parts, one behind the other, in a scope of their own."""
    parts = [(_WEB / name).read_text(encoding="utf-8").strip() for name in SCRIPTS]
    return "(() => {\n'use strict';\n" + "\n\n".join(parts) + "\n})();\n"


def json_in_html(value: Any) -> str:
    """Return JSON that no text in it can end the element that it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escape in _HEX.items():
        text = text.replace(character, escape)
    return text


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
