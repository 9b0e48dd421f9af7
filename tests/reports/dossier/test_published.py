# SPDX-License-Identifier: Apache-2.0
"""Another limit than the published one is not accepted without a word: both stand side by side."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from reports.__main__ import main
from reports.dossier.model import Dossier
from reports.dossier.page import dossier_page
from reports.dossier.published import (
    AS_PUBLISHED,
    NOT_PUBLISHED,
    deviates,
    published_sets,
    published_words,
)
from reports.record.measurement import Limit
from reports.requirements import Requirement
from tests.reports.dossier.sample import DAQ12, finished_run, gather, record, requirements_text, small_run
from tests.reports.dossier.test_gather import deviations, row

COVER = "Limits other than the published ones"


def tenfold(path: Path) -> Path:
    """Write the published file with the same name, ids and sources, and limits that are ten times as wide."""
    text = re.sub(r"(upper_\w+ = )(\d+)", r"\g<1>\g<2>0", DAQ12.read_text())
    path.write_text(text)
    assert text != DAQ12.read_text()
    return path


@pytest.fixture(scope="module")
def loose(tmp_path_factory: pytest.TempPathFactory) -> Dossier:
    """Return the dossier of a run whose limits are ten times as wide as those that are published."""
    folder = tmp_path_factory.mktemp("loose")
    return gather([finished_run(folder, requirements=tenfold(folder / "daq12.toml")).path])


def test_limits_ten_times_as_wide_are_named(loose: Dossier):
    assert row(loose, "DAQ-013").text == "one way latency, max, of stream 13: at most 100 ms, none lost"
    assert row(loose, "DAQ-013").published == (
        "published in daq12: one way latency, max, of stream 13: at most 10 ms, none lost"
    )
    rows = loose.targets[0].requirements
    assert [each.kind for each in loose.deviations].count("limit") == len(rows) == 48
    assert "DAQ-013: one way latency, max, of stream 13: at most 100 ms, none lost; published" in deviations(
        loose
    )


def test_the_cover_says_so_and_the_matrix_has_both(loose: Dossier):
    page = dossier_page(loose, ())
    cover = page[: page.index("Contents")]
    assert f"{COVER}:</b> 48 of 48: DAQ-010" in cover
    assert "at most 100 ms, none lost" in page
    assert "published in daq12: one way latency, max, of stream 13: at most 10 ms" in page


def test_the_command_line_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = finished_run(tmp_path, requirements=tenfold(tmp_path / "daq12.toml"))
    assert main(["dossier", str(run.path), "--output", str(tmp_path / "dossier.json")]) == 0
    assert "limits other than the published ones: 48" in capsys.readouterr().out


def test_published_limits_are_no_deviation(tmp_path: Path):
    found = gather([finished_run(tmp_path).path])
    assert {each.published for each in found.targets[0].requirements} == {AS_PUBLISHED}
    assert "limit" not in {each.kind for each in found.deviations}
    assert COVER not in dossier_page(found, ())


def published(name: str, requirement: str) -> Requirement:
    return next(
        one
        for each in published_sets()
        if each.name == name
        for one in each.requirements
        if one.id == requirement
    )


def words(asked: Requirement, name: str, simulated: bool = False) -> str:
    return published_words(asked, name, simulated=simulated, published=published_sets())


def test_the_limits_of_a_virtual_bench_are_not_those_of_hardware():
    name, requirement = "realtime-ethernet-virtual", "RTE-BULK-P99"
    asked = published(name, requirement)
    assert words(asked, name, simulated=True) == AS_PUBLISHED
    assert words(asked, name).startswith("published in realtime-ethernet: bulk rise, p99")
    assert words(published("realtime-ethernet", requirement), "realtime-ethernet") == AS_PUBLISHED


@pytest.mark.parametrize(
    "changes",
    [
        {"limit": Limit(10_000_001, None, "DAQ paper")},
        {"lost": 1},
        {"samples": 1},
        {"subject": ("stream", "20")},
        {"statistic": "p99"},
    ],
)
def test_whatever_is_asked_otherwise_is_named(changes: dict[str, object]):
    asked = published("daq12", "DAQ-013")
    assert not deviates(words(asked, "renamed"))
    assert deviates(words(dataclasses.replace(asked, **changes), "renamed"))  # type: ignore[arg-type]


def test_what_is_published_nowhere_is_a_sites_own(tmp_path: Path):
    text = requirements_text("SITE-1")
    found = gather([small_run(tmp_path, record(requirement="SITE-1"), requirements=text).path])
    assert row(found, "SITE-1").published == NOT_PUBLISHED
    assert found.conclusion.word == "accepted"
    cover = dossier_page(found, ()).split("Contents")[0]
    assert COVER not in cover
    assert "Limits that are published nowhere:</b> 1 of 1: SITE-1" in cover
