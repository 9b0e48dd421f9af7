# SPDX-License-Identifier: Apache-2.0
"""Each suite of the folder selects the requirements that it judges, of the one file that both have."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from resources.keywords.requirement_scope import names_in
from resources.timeline.bulk_keywords import TimelineBulkLibrary
from resources.timeline.keywords import TimelineLibrary

suite_class: Any = importlib.import_module("robot.api").TestSuite
SUITES = Path("robot/timeline")
FILE = SUITES / "requirements" / "timeline_virtual.toml"


@pytest.mark.parametrize(
    ("suite", "wanted"),
    [
        ("stimulus_response.robot", {"TL-TO-TARGET", "TL-FROM-TARGET"}),
        ("bulk.robot", {"TL-BULK-PAYLOAD", "TL-BULK-SEGMENTS"}),
    ],
)
def test_suite_selects_what_it_judges(
    repository: Path, monkeypatch: pytest.MonkeyPatch, suite: str, wanted: set[str]
) -> None:
    monkeypatch.chdir(repository)
    named = names_in(suite_class.from_file_system(SUITES / suite))
    found = [
        (path.name, requirement)
        for each in (TimelineLibrary(FILE), TimelineBulkLibrary(FILE))
        for path, requirements in each.selected(named)
        for requirement in requirements
    ]
    assert sorted(found) == sorted((FILE.name, each) for each in wanted)
