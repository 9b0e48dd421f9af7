# SPDX-License-Identifier: Apache-2.0
"""The dossier lists the patterns of its runs; what it concludes is the same with and without them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reports.dossier.model import Dossier, from_dossier_json, to_dossier_bytes
from reports.dossier.page import dossier_page
from reports.patterns.kept import PATTERNS
from reports.record.json_text import load_json
from reports.run.folder import RunFolder
from reports.run.integrity import write_sums
from reports.run.seal import seal
from tests.reports.dossier.sample import KEY, TARGET, finished_run, gather
from tests.reports.pages import words_of
from tests.reports.patterns.sample_patterns import ramp_series, write_sample_patterns


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Return a run without patterns."""
    return finished_run(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def without(run: RunFolder) -> Dossier:
    """Return its dossier."""
    return gather([run.path])


def _with(run: RunFolder, folder: Path, text: str | None = None) -> Path:
    """Return a copy with patterns, sealed anew."""
    copy = folder / run.path.name
    shutil.copytree(run.path, copy)
    place = f"control_loops/{TARGET}"
    write_sample_patterns(copy, ramp_series(place, "whole"), ramp_series(place, "hop 2"))
    if text is not None:
        (copy / PATTERNS).write_text(text)
    seal(copy, KEY)
    write_sums(copy)
    return copy


def test_patterns_are_listed_and_conclude_nothing(run: RunFolder, without: Dossier, tmp_path: Path) -> None:
    found = gather([_with(run, tmp_path)])
    assert found.runs[0].patterns is not None
    [listed] = found.runs[0].patterns
    assert listed.name == f"control_loops/{TARGET}: whole, hop 2"
    assert listed.value is not None
    assert "and jump back each 5 s" in listed.value
    words = words_of(dossier_page(found, ()))
    assert "Patterns over time" in words
    assert "They are information: no verdict and no conclusion follows from them." in words
    assert (found.conclusion, found.targets) == (without.conclusion, without.targets)
    assert (found.waivers, found.deviations) == (without.waivers, without.deviations)
    assert found.conclusion.word == "accepted"
    assert from_dossier_json(load_json(to_dossier_bytes(found))) == found


def test_a_run_that_was_not_searched_has_no_line(without: Dossier) -> None:
    assert without.runs[0].patterns is None
    assert b'"patterns"' not in to_dossier_bytes(without)
    assert "Patterns over time" not in words_of(dossier_page(without, ()))


def test_a_file_that_cannot_be_read_is_said_and_concludes_nothing(
    run: RunFolder, without: Dossier, tmp_path: Path
) -> None:
    found = gather([_with(run, tmp_path, "{}")])
    assert found.runs[0].patterns is not None
    assert (found.runs[0].patterns[0].value or "").startswith("cannot be read: found.json")
    assert found.conclusion == without.conclusion
