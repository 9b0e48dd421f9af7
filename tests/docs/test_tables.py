# SPDX-License-Identifier: Apache-2.0
"""Every table of a document is whole: a head, its line, and as many cells in each row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_links import ROOT, documents

BLOCK = re.compile(r"```.*?```", re.DOTALL)
LINE = re.compile(r"\|( *:?-+:? *\|)+")


def wrong_rows(text: str) -> list[str]:
    """Return the rows that belong to no table, or have more or fewer cells than its head."""
    wrong: list[str] = []
    rows: list[str] = []
    for line in [*BLOCK.sub("", text).split("\n"), ""]:
        if line.startswith("|"):
            rows.append(line)
            continue
        if rows and not (len(rows) > 1 and LINE.fullmatch(rows[1])):
            wrong.append(rows[0])
        elif rows:
            wrong += [row for row in rows if _cells(row) != _cells(rows[0])]
        rows = []
    return wrong


def _cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row))


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_are_whole(document: Path) -> None:
    assert wrong_rows(document.read_text()) == []


def test_broken_tables_are_found() -> None:
    whole = "| a | b |\n|---|---|\n| 1 | `x\\|y` |\n"
    assert wrong_rows(f"{whole}\n```\n| no table\n```\n") == []
    assert wrong_rows(f"{whole}\n| 2 | 3 |\n| 4 | 5 |\n\n{whole}| 6 |\n") == ["| 2 | 3 |", "| 6 |"]
