# SPDX-License-Identifier: Apache-2.0
"""Which targets a run has, where their evidence lies, and what was asked of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.asked import (
    ASKED,
    KEPT,
    AskedSuites,
    files_asked,
    find_asked,
    load_asked,
    note_asked,
    suite_name,
)
from reports.errors import RecordError
from reports.run_folder import RunFolder
from reports.targets import evidence_of, page_names, target_of_file, targets_of
from tests.dashboards.runs import record


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path, "virtual", "ci")


def test_targets_are_those_asked_read_back_and_measured(run: RunFolder) -> None:
    run.update(target={"windows": {"hostname": "w"}, "nic": {"driver": "igc"}, "kernel": "6.12"})
    note_asked(run, "embedded", "daq_replay")
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


def test_what_is_asked_is_noted_once(run: RunFolder) -> None:
    assert load_asked(run.path) == ()
    note_asked(run, "linux-rt", "daq_replay")
    note_asked(run, "windows", "daq_replay")
    note_asked(run, "linux-rt", "daq_replay", "daq12.toml")
    note_asked(run, "linux-rt", "daq_replay", "daq12.toml")
    assert load_asked(run.path) == (
        AskedSuites("linux-rt", "daq_replay", ("daq12.toml",)),
        AskedSuites("windows", "daq_replay"),
    )


def test_suites_have_the_name_of_their_file_or_folder(tmp_path: Path) -> None:
    folder = tmp_path / "timed_edges"
    folder.mkdir()
    assert suite_name(folder) == suite_name(folder / "__init__.robot") == "timed_edges"
    assert suite_name(folder / "clocks.robot") == "timed_edges/clocks.robot"


def test_the_files_of_a_target_are_those_of_its_suites() -> None:
    asked = (
        AskedSuites("linux-rt", "daq_replay/one.robot", ("daq12.toml",)),
        AskedSuites("linux-rt", "clock_sync/one.robot", ("clocks.toml",)),
        AskedSuites("windows", "daq_replay/one.robot"),
        AskedSuites("embedded", "daq_replay/one.robot", ("daq2.toml",)),
    )
    kept = ("clocks.toml", "daq12.toml", "daq2.toml", "loose.toml")
    assert set(files_asked(asked, "linux-rt", kept)) == {"daq12.toml", "clocks.toml", "loose.toml"}
    assert set(files_asked(asked, "windows", kept)) == {"daq12.toml", "daq2.toml", "loose.toml"}
    assert set(files_asked(asked, "embedded", kept)) == {"daq2.toml", "loose.toml"}
    assert set(files_asked(asked, "unknown", kept)) == set(files_asked((), "windows", kept)) == set(kept)


def test_a_damaged_note_is_an_error_or_counts_as_none(run: RunFolder) -> None:
    (run.evidence_folder(KEPT) / ASKED).write_text('{"schema": "benchwright.asked/1"}')
    with pytest.raises(RecordError, match=r"asked\.json"):
        load_asked(run.path)
    assert find_asked(run.path) == ()
