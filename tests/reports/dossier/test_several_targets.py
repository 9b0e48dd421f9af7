# SPDX-License-Identifier: Apache-2.0
"""A dossier of a run with several targets: each has its own requirements, figures and environment."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from reports.dossier.figure import FigureGroup
from reports.dossier.figures import draw_figures
from reports.dossier.model import Dossier
from reports.dossier.page import dossier_page
from reports.dossier.pdf import Properties, render_pdf
from reports.page.model import gather_run
from reports.run.folder import RunFolder
from tests.reports.clock_run import add_clock_trial
from tests.reports.dossier.sample import gather
from tests.reports.sample_clock import compare_answer
from tests.reports.sample_run import make_run_of_targets

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = make_run_of_targets(tmp_path_factory.mktemp("results"), simulated=False, close=False)
    kept = run.path / "evidence" / "requirements" / "daq2.toml"
    kept.write_text(kept.read_text().replace("upper_us = 100000", "upper_us = 100001"))
    for target in ("linux-rt", "windows"):
        add_clock_trial(run, compare_answer(), target=target)
    run.close()
    run.finalise()
    return run


@pytest.fixture(scope="module")
def dossier(run: RunFolder) -> Dossier:
    return gather([run.path])


@pytest.fixture(scope="module")
def groups(run: RunFolder, dossier: Dossier) -> tuple[FigureGroup, ...]:
    return draw_figures(dossier, {run.run_id: run.path})


def test_each_target_has_the_requirements_of_its_own_files(dossier: Dossier) -> None:
    """The embedded target's file has other limits under the same ids: no contradiction, but its own."""
    rows = {target.name: [row.id for row in target.requirements] for target in dossier.targets}
    assert len(rows["linux-rt"]) == len(rows["windows"]) == 49
    assert rows["embedded"] == [f"DAQ-0{number}" for number in (10, 11, 12, 13, 30, 31, 32, 33)]


def test_the_dossier_asks_of_each_target_what_its_report_does(dossier: Dossier, run: RunFolder) -> None:
    """A kind that takes no part in a suite is not asked its requirements, here as there."""
    for target, report in zip(dossier.targets, gather_run(run.path).targets, strict=True):
        assert {row.id for row in target.requirements} == report.requirements.keys()
        unmeasured = [name for name, _standing in report.unmeasured]
        assert sorted(row.id for row in target.requirements if not row.results) == sorted(unmeasured)


def test_each_target_has_its_own_figures(groups: tuple[FigureGroup, ...], run: RunFolder) -> None:
    titles = [group.title for group in groups]
    assert [title for title in titles if title.startswith("Clocks and edges")] == [
        f"Clocks and edges: run {run.run_id}, target {target}" for target in ("linux-rt", "windows")
    ]
    captions = [figure.caption for group in groups for figure in group.figures]
    for target in ("linux-rt", "windows", "embedded"):
        assert sum(f"daq_replay/{target}/attempt-1 of run" in caption for caption in captions) == 1


def test_three_targets_fit_on_few_pages_that_tell_each_value_once(dossier: Dossier, tmp_path: Path) -> None:
    """What many rows share stands above them; hashes are attached."""
    html = dossier_page(dossier, ())
    file = tmp_path / "dossier.pdf"
    file.write_bytes(render_pdf(html, Properties("BD-1", "t", "s", "", (), "2026-11-22T00:00:00Z")))
    done = subprocess.run(["pdfinfo", str(file)], capture_output=True, check=True, text=True)
    pages = re.search(r"Pages: +(\d+)", done.stdout)
    assert pages is not None
    assert int(pages[1]) <= 24
    requirements = [row for target in dossier.targets for row in target.requirements]
    for row in requirements:
        assert row.id in html
    first = "Network Acceleration and Time Synchronization for Data Acquisition Systems, Table 1"
    assert html.count(first) <= len({row.file for row in requirements})
    conditions = "stack kernel, clock two-way, profile ci, phase aligned-12"
    assert html.count(conditions) <= 4 * len(dossier.targets)
    assert html.count(dossier.runs[0].files[0].sha256) == 0


def test_no_id_of_a_figure_stands_twice(groups: tuple[FigureGroup, ...]) -> None:
    ids = [
        name
        for group in groups
        for figure in group.figures
        for name in re.findall(r'\bid="([^"]+)"', figure.svg)
    ]
    assert ids
    assert len(ids) == len(set(ids))
