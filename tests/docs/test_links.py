# SPDX-License-Identifier: Apache-2.0
"""Every link between documents, and from them into the sources, leads somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
IMAGE_MAX_BYTES = 300_000


def documents() -> list[Path]:
    """Return all Markdown files of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.split()]


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub and GitLab make them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path, text: str) -> list[str]:
    """Return the links of a document that lead nowhere."""
    wrong: list[str] = []
    for link in LINK.findall(CODE.sub(" ", text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        inside = target.exists() and target.is_relative_to(ROOT)
        if not inside or (anchor and anchor not in anchors(target.read_text())):
            wrong.append(link)
    return wrong


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert broken(document, document.read_text()) == []


def test_broken_links_are_found() -> None:
    text = (
        "# Here\n[a](architecture.md) [b](nowhere.md) [c](#here) [d](#there) [e](reports.md#there) `[f](x)`"
    )
    assert broken(ROOT / "docs" / "latency.md", text) == ["nowhere.md", "#here", "#there", "reports.md#there"]


def test_every_document_can_be_reached_from_the_readme() -> None:
    """By links, or by their path in the text."""
    reached = {ROOT / "README.md"}
    waiting = list(reached)
    while waiting:
        document = waiting.pop()
        text = document.read_text()
        targets = {(document.parent / link.partition("#")[0]).resolve() for link in LINK.findall(text)}
        targets |= {ROOT / path for path in re.findall(r"\bdocs/[\w-]+\.md\b", text)}
        for target in targets:
            if target.suffix == ".md" and target.exists() and target not in reached:
                reached.add(target)
                waiting.append(target)
    assert {path for path in documents() if path.is_relative_to(ROOT / "docs")} <= reached


def test_images_are_small() -> None:
    images = list((ROOT / "docs" / "images").iterdir())
    assert images
    assert [image.name for image in images if image.stat().st_size > IMAGE_MAX_BYTES] == []
