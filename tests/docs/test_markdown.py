# SPDX-License-Identifier: Apache-2.0
"""Tables and fences of every document are whole."""

from __future__ import annotations

import re
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.docs.test_links import ROOT, documents

FENCE = re.compile(r"^( *)```", re.MULTILINE)
BLOCK = re.compile(r"```.*?```", re.DOTALL)
LINE = re.compile(r"\|( *:?-+:? *\|)+")


def wrong_rows(text: str) -> list[str]:
    """Return the rows of no table (head and line), and those with more or fewer cells than their head."""
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


def wrong_fences(text: str) -> list[str]:
    """Return the fences that end elsewhere than they begin, counted from the margin: they break a list."""
    depths = [len(depth) for depth in FENCE.findall(text)]
    pairs = zip_longest(depths[::2], depths[1::2])
    return [f"fence {number}: {begin}, {end}" for number, (begin, end) in enumerate(pairs, 1) if begin != end]


def _cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row))


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_are_whole(document: Path) -> None:
    assert wrong_rows(document.read_text()) == []


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_fences_are_whole(document: Path) -> None:
    assert wrong_fences(document.read_text()) == []


def test_broken_tables_are_found() -> None:
    whole = "| a | b |\n|---|---|\n| 1 | `x\\|y` |\n"
    assert wrong_rows(f"{whole}\n```\n| no table\n```\n") == []
    assert wrong_rows(f"{whole}\n| 2 | 3 |\n| 4 | 5 |\n\n{whole}| 6 |\n") == ["| 2 | 3 |", "| 6 |"]


def test_broken_fences_are_found() -> None:
    whole = "1. a\n   ```sh\n   b\n   ```\n"
    assert wrong_fences(whole) == []
    assert wrong_fences(f"{whole}2. c\n```sh\n   d\n   ```\n```\n") == ["fence 2: 0, 3", "fence 3: 0, None"]
