# SPDX-License-Identifier: Apache-2.0
"""Which targets a run has, and where their evidence lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.run.folder import RunFolder
from reports.run.targets import evidence_of, page_names, target_of_file, targets_of
from tests.dashboards.runs import record
from tests.reports.sample_run import ask


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "virtual", "ci")


def test_targets_are_those_asked_read_back_and_measured(run: RunFolder) -> None:
    run.update(target={"windows": {"hostname": "w"}, "nic": {"driver": "igc"}, "kernel": "6.12"})
    ask(run, "embedded", "daq_replay")
    assert targets_of(run.path, run.manifest, [record()]) == ("embedded", "windows", "linux-rt")


def test_facts_that_are_of_no_machine_make_no_target(run: RunFolder) -> None:
    run.update(target={"kernel": "6.12", "nic": {"driver": "igc"}})
    assert targets_of(run.path, run.manifest, []) == ()


def test_evidence_lies_in_the_targets_folder_or_in_that_of_older_runs(run: RunFolder) -> None:
    folder = run.evidence_folder("clock_sync")
    assert evidence_of(run.path, "clock_sync", "windows", ["windows"]) == folder
    own = run.evidence_folder("clock_sync", "windows")
    assert evidence_of(run.path, "clock_sync", "windows", ["windows"]) == own
    assert evidence_of(run.path, "clock_sync", "") == folder


def test_one_of_several_targets_never_gets_the_evidence_of_another(run: RunFolder) -> None:
    run.evidence_folder("clock_sync", "windows")
    found = evidence_of(run.path, "clock_sync", "linux-rt", ["linux-rt", "windows"])
    assert found == run.path / "evidence" / "clock_sync" / "linux-rt"
    assert not found.exists()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("evidence/daq_replay/arm/attempt-1/recv.ndjson", "arm"),
        ("evidence/daq_replay/linux-rt/arm/recv.ndjson", "linux-rt"),
        ("evidence/consoles/arm.log", "arm"),
        ("evidence/provisioning/linux-rt/apply.ndjson", "linux-rt"),
        ("evidence/consoles/impair.log", None),
        ("evidence/requirements/daq12.toml", None),
    ],
)
def test_files_of_a_target(name: str, target: str | None) -> None:
    assert target_of_file(name, ["linux-rt", "arm"]) == target


def test_pages_have_names_that_are_fit_and_differ() -> None:
    assert page_names("q.html", ["linux-rt", "a/b", "a_b", "A_B"]) == {
        "linux-rt": "q-linux-rt.html",
        "a/b": "q-a_b.html",
        "a_b": "q-a_b-2.html",
        "A_B": "q-A_B-3.html",
    }
