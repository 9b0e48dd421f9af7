# SPDX-License-Identifier: Apache-2.0
"""`python -m dashboards advise`: into the run folder once, whatever is asked, and never against it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dashboards.__main__ import main
from dashboards.regressions import run_history
from dashboards.regressions.run_history import run_histories, stored_run
from dashboards.run_import import read_run
from dashboards.store import Store
from reports import RunFolder
from reports.history.advice import ADVICE, Advice, find_advice
from reports.page.render import write_page
from reports.run.integrity import SUMS, changed_files
from resources.keep_run import keep_run
from tests.dashboards.runs import make_run, record

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Return a finalised run with one stream."""
    folder = make_run(tmp_path / "results", [record()])
    folder.close()
    write_page(folder.path)
    folder.finalise()
    return folder


def put_history(store: Path, run: RunFolder, runs: int) -> None:
    """Store runs like this one before it, their values a little less."""
    like = read_run(run.path, "adhoc")
    with Store(store) as opened:
        for number in range(runs):
            run_id, time_ns = f"before-{number:04}", like.time_ns - (runs - number) * HOUR_NS
            points = tuple(
                dataclasses.replace(
                    point,
                    time_ns=time_ns,
                    fields={**point.fields, "run_id": run_id}
                    | ({"value_ns": 9e5 + 100 * (7 * number % 11)} if "value_ns" in point.fields else {}),
                )
                for point in like.points
            )
            opened.add_run(dataclasses.replace(like, run_id=run_id, time_ns=time_ns, points=points))


def advice_in(run: RunFolder) -> Advice:
    found = find_advice(run.path, {}, run.run_id)
    assert found is not None
    return found


def test_advice_joins_the_run_once(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "s.sqlite"
    put_history(store, run, 20)
    command = ["advise", str(run.path), "--store", str(store)]
    assert main(command) == 0
    assert "1 values beyond their baseline (0.095 by chance); 1 of 1 series" in capsys.readouterr().out
    assert changed_files(run.path) == []
    advice = advice_in(run)
    assert (advice.branch, advice.history_most, advice.beyond[0].side) == ("adhoc", 20, "worse")
    sums = (run.path / SUMS).read_bytes()
    assert main(command) == 0
    assert "has its advice already" in capsys.readouterr().out
    assert main([*command, "--again"]) == 0
    assert (run.path / SUMS).read_bytes() == sums


def test_another_history_is_asked_again_only_when_told(run: RunFolder, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    command = ["advise", str(run.path), "--store", str(store)]
    assert main(command) == 0
    assert advice_in(run).history_most == 0
    put_history(store, run, 20)
    assert main(command) == 0
    assert advice_in(run).history_most == 0
    assert main([*command, "--again"]) == 0
    assert advice_in(run).history_most == 20
    assert changed_files(run.path) == []


def test_damaged_advice_is_made_anew(run: RunFolder, tmp_path: Path) -> None:
    command = ["advise", str(run.path), "--store", str(tmp_path / "s.sqlite")]
    assert main(command) == 0
    sums = (run.path / SUMS).read_bytes()
    (run.path / ADVICE).write_bytes(b"{}")
    assert main(command) == 0
    assert (run.path / SUMS).read_bytes() == sums
    assert changed_files(run.path) == []


def test_the_latest_run_is_meant_without_a_name(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["advise"]) == 0
    assert advice_in(run).run_id == run.run_id
    assert (tmp_path / "results" / "store.sqlite").exists()


def test_no_run_or_one_that_has_changed(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path / "s.sqlite")]
    assert main(["advise", str(tmp_path / "missing"), *store]) == 2
    (run.path / "evidence" / "more.txt").write_text("x")
    assert main(["advise", str(run.path), *store]) == 5
    assert "evidence/more.txt: not part of the run" in capsys.readouterr().err
    assert not (run.path / ADVICE).exists()


def test_a_qualification_says_what_it_could_not_advise(run: RunFolder, tmp_path: Path) -> None:
    """The run is stored all the same, and its verdict is not touched."""
    (run.path / "evidence" / "more.txt").write_text("x")
    kept = keep_run(run.path, tmp_path)
    assert kept.problem.startswith("no advice of the history: ")
    assert kept.advice == ""
    with Store(tmp_path / "store.sqlite") as store:
        assert store.branch_of_run(run.run_id) is not None


def test_so_many_runs_are_looked_at(run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_history, "RUNS_MAX", 20)
    store = tmp_path / "s.sqlite"
    put_history(store, run, 25)
    assert main(["import", str(run.path), "--store", str(store)]) == 0
    with Store(store) as opened:
        (history,) = run_histories(opened, stored_run(opened, run.run_id))
    assert len(history.runs) == 20 + 1
    assert [one.run_id for one in history.runs[:2]] == ["before-0005", "before-0006"]
    assert history.runs[-1].run_id == run.run_id


def test_advice_on_the_latest_names_newer_runs(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = RunFolder.create(run.path.parent, "virtual", "ci")
    assert newer.manifest.start_utc > run.manifest.start_utc
    store = str(tmp_path / "s.sqlite")
    assert main(["advise", str(run.path.parent / "latest"), "--store", store]) == 0
    assert f"a newer run {newer.run_id} was not finalised" in capsys.readouterr().err
    assert main(["advise", str(run.path), "--store", store]) == 0
    assert "a newer run" not in capsys.readouterr().err
