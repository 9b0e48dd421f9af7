# SPDX-License-Identifier: Apache-2.0
"""Runs that were repeated until one passed are named: the store knows them, in the order of its own."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from dashboards.__main__ import main as dashboards_main
from dashboards.points import RunPoints, run_points, unix_ns, utc_text
from dashboards.store import Store
from reports.__main__ import main
from reports.dossier.earlier import CLOCK, EARLIER_RUN, earlier_runs
from reports.dossier.errors import DossierError
from reports.dossier.gather import named_file
from reports.dossier.model import Dossier, Request
from reports.dossier.page import dossier_page
from reports.run.folder import RunFolder
from tests.reports.dossier.sample import gather, record, requirements_text, small_run

ONE = requirements_text("DAQ-031")
HOUR_NS = 3600 * 10**9


def points(run: RunFolder, **changes: object) -> RunPoints:
    return dataclasses.replace(run_points(run, "main"), **changes)  # type: ignore[arg-type]


def dossier_with(folder: Path, run: RunFolder, *stored: RunPoints) -> Dossier:
    """Return the dossier of a run, by a store that was given runs in this order."""
    file, store = folder / "runs.json", folder / "store.sqlite"
    with Store(store) as opened:
        for each in stored:
            opened.add_run(each)
    assert dashboards_main(["runs", "--store", str(store), "--output", str(file)]) == 0
    return gather([run.path], Request(None, None, None, None, (named_file("history", file),), ()))


def notes(found: Dossier, kind: str = EARLIER_RUN) -> list[str]:
    return [each.text for each in found.deviations if each.kind == kind]


@pytest.fixture
def failed(tmp_path: Path) -> RunFolder:
    return small_run(tmp_path / "1", record("fail", "too late"), requirements=ONE)


@pytest.fixture
def passed(tmp_path: Path, failed: RunFolder) -> RunFolder:
    return small_run(tmp_path / "2", record(), requirements=ONE)


def test_a_run_that_failed_before_is_named(tmp_path: Path, failed: RunFolder, passed: RunFolder):
    found = dossier_with(tmp_path, passed, points(failed), points(passed))
    where, name = "linux-rt on bench-1", failed.run_id
    assert notes(found) == [
        f"{where}: run {name} of {failed.manifest.start_utc}, fail, is not part of this dossier",
        f"{where}: the store begins with run {name}: which runs there were before it is not known",
    ]
    cover = dossier_page(found, ()).split("Contents")[0]
    assert f"run {failed.run_id} of" in cover
    assert notes(found, CLOCK) == []


def test_what_was_before_the_last_change_is_not_named(tmp_path: Path, failed: RunFolder, passed: RunFolder):
    old = points(failed, facts={**points(failed).facts, "linux-rt.kernel.release": "6.1"})
    assert notes(dossier_with(tmp_path, passed, old, points(passed))) == []


def test_a_change_of_another_target_hides_nothing(tmp_path: Path, failed: RunFolder, passed: RunFolder):
    before = points(failed, facts={**points(failed).facts, "windows.kernel.release": "10"})
    after = points(passed, facts={**points(passed).facts, "windows.kernel.release": "11"})
    assert f"run {failed.run_id} of" in notes(dossier_with(tmp_path, passed, before, after))[0]


def test_a_store_that_is_not_named_or_does_not_know_the_runs_is_said(
    tmp_path: Path, failed: RunFolder, passed: RunFolder
):
    assert "the store was not named" in notes(gather([passed.path]))[0]
    assert "the store was not named" in dossier_page(gather([passed.path]), ()).split("Contents")[0]
    assert "the store has none of its runs" in notes(dossier_with(tmp_path, passed, points(failed)))[0]


def test_a_clock_that_was_set_back_hides_no_run_and_is_seen(
    tmp_path: Path, failed: RunFolder, passed: RunFolder
):
    """The run that failed calls itself the later one; it was stored first."""
    began_ns = unix_ns(passed.manifest.start_utc) + HOUR_NS
    moved = [dataclasses.replace(each, time_ns=began_ns) for each in points(failed).points]
    late = points(failed, time_ns=began_ns, points=tuple(moved))
    found = dossier_with(tmp_path, passed, late, points(passed))
    assert f"run {failed.run_id} of {utc_text(began_ns)}, fail, is not part" in notes(found)[0]
    (clock,) = notes(found, CLOCK)
    assert clock.endswith("a clock set back")


def test_runs_of_one_bench_that_overlap_are_seen(failed: RunFolder, passed: RunFolder):
    found = gather([failed.path, passed.path])
    assert notes(found, CLOCK) == []
    one, two = found.runs
    until = dataclasses.replace(one.manifest, end_utc=utc_text(unix_ns(two.manifest.start_utc) + HOUR_NS))
    long = dataclasses.replace(one, manifest=until)
    (clock, *_rest) = earlier_runs(found.targets, (long, two), None)
    assert (clock.run_id, clock.kind) == (passed.run_id, CLOCK)


def test_verify_makes_it_again_without_the_store(tmp_path: Path, failed: RunFolder, passed: RunFolder):
    dossier_with(tmp_path, passed, points(failed), points(passed))
    output = tmp_path / "dossier.json"
    words = ["dossier", str(passed.path), "--history", str(tmp_path / "runs.json"), "--output", str(output)]
    assert main(words) == 0
    (tmp_path / "runs.json").unlink()
    assert main(["verify", str(output), "--runs", str(passed.path)]) == 0


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "runs.json: "),
        ({"schema": "x", "runs": []}, "schema: must be benchwright.runs/1"),
        ({"schema": "benchwright.runs/1"}, "runs"),
    ],
)
def test_a_wrong_file_of_runs_is_named(tmp_path: Path, passed: RunFolder, document: object, said: str):
    file = tmp_path / "runs.json"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    with pytest.raises(DossierError, match=said):
        gather([passed.path], Request(None, None, None, None, (named_file("history", file),), ()))
