# SPDX-License-Identifier: Apache-2.0
"""A page of a run by its section, and the words of markup."""

from __future__ import annotations

import re
from pathlib import Path

from reports.page.render import render_pages


def page_with(run: Path, section: str) -> str:
    """Return the first page of a run that has a section, by its address there."""
    return next(text for text in render_pages(run).values() if f'id="{section}"' in text)


def words_of(markup: str) -> str:
    """Return the text of markup, with one space between words."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", markup))
