# SPDX-License-Identifier: Apache-2.0
"""The glossary explains the words of pages and messages, taken from the templates and tables themselves."""

from __future__ import annotations

import re
from pathlib import Path

from reports.run.selected import STATES

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted(
    path for path in (ROOT / "reports").rglob("*.j2") if "dossier" not in path.relative_to(ROOT).parts
)
PLAIN = {
    *(
        "",
        "at",
        "beside it",
        "clock, reading",
        "commit",
        "done",
        "file",
        "its offset",
        "mean bracket",
        "measured",
    ),
    *("memory", "of", "or", "order", "reason", "size", "what it is", "why", "shown in", "software", "wanted"),
    *("smallest", "largest", "smallest, largest", "average", "min", "max", "minimum", "mean", "difference"),
    *("programmed", "pairs", "late", "best", "evidence", "scheduling", "messages", "discarded reads"),
    *("messages of each stream", "of all", "stream, no.", "u of the", "\u03c3 of", "phc2sys's own log by"),
    "requirements skipped",
    *("requirements by what became of them", "transport, size, period", "sha-256", "in values", "in all"),
}
"""Headings that say by themselves what they are."""


def headings(template: str) -> set[str]:
    """Return the headings of a template's tables and tiles, in lower case, without what is filled in."""
    text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", "", template, flags=re.DOTALL)
    found = re.findall(r"<th\b[^>]*>(.*?)</th>", text, re.DOTALL)
    found += re.findall(r'class="name">(.*?)</div>', text, re.DOTALL)
    plain = [re.sub(r"<[^>]+>", "", each) for each in found]
    parts = [part for each in plain for part in re.split(r"[;:\u2215]|, an?d? |\[95 %\]|\(.*?\)|[≤±%]", each)]
    return {" ".join(part.split()).strip(" ,").lower() for part in parts}


def test_every_heading_of_a_table_is_explained() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text().lower()
    used = {heading for path in TEMPLATES for heading in headings(path.read_text())}
    assert len(used) > 80
    assert sorted(word for word in used - PLAIN if re.sub(r"s?\??$", "", word) not in glossary) == []


def test_every_state_and_every_word_of_the_terminal_is_explained() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text()
    assert [state for state in STATES if f"**{state}**" not in glossary] == []
    summary = (ROOT / "resources" / "qualify.py").read_text()
    words = re.findall(r'^        [A-Z_]+: "([A-Z ]+)",$', summary, re.MULTILINE)
    assert len(words) == 6
    steps = (ROOT / "docs" / "my-run-did-not-pass.md").read_text()
    assert [word for word in words if word != "PASS" and f"| {word} |" not in steps] == []
    assert [word for word in words if word.lower() not in glossary.lower()] == []


def test_each_outcome_has_its_next_step() -> None:
    steps = (ROOT / "docs" / "my-run-did-not-pass.md").read_text()
    wanted = {state for state in STATES if state not in ("pass", "not asked")}
    assert wanted <= {heading.lower() for heading in re.findall(r"^## (.*)$", steps, re.MULTILINE)}
