# SPDX-License-Identifier: Apache-2.0
"""`python -m reports` where something cannot be read or written: exit code 2, which is no change of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from reports.__main__ import PIPE_CLOSED, main
from reports.run.folder import MEASUREMENTS, RunFolder
from reports.run.integrity import changed_files
from tests.reports.sample_run import make_run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    made = make_run(tmp_path_factory.mktemp("results"))
    made.finalise()
    return made


@pytest.mark.parametrize("command", ["verify", "show", "render", "stalled", "dossier", "clock-log"])
def test_what_lies_below_a_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert main([command, str(file / "sub")]) == 2
    assert f"{file}/sub" in capsys.readouterr().err


def test_a_file_that_another_user_may_not_read_is_named_and_the_others_are_looked_at(
    run: RunFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = run.path.parent / "locked"
    opened = Path.open

    def deny(self: Path, *arguments: object, **options: object) -> object:
        if self.parent == locked:
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)  # type: ignore[call-overload]

    locked.mkdir()
    (locked / "SHA256SUMS").write_text("")
    monkeypatch.setattr(Path, "open", deny)
    assert main(["verify", str(locked), str(run.path)]) == 2
    said = capsys.readouterr()
    assert f"reports: {locked}/SHA256SUMS: Permission denied" in said.err
    assert f"{run.path}: " in said.out
    assert "files unchanged" in said.out


def test_an_output_that_cannot_be_written_is_named(
    run: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert main(["render", str(run.path), "--output", str(file / "page.html")]) == 2
    assert str(file) in capsys.readouterr().err


def test_what_has_one_reason_is_shown_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, close=False)
    made = run.records().measurements
    late = [replace(each, outcome="inconclusive", reason="generator late") for each in made]
    other = replace(late[-1], reason="a reason of its own")
    (run.path / MEASUREMENTS).write_text("".join(f"{each.to_line()}\n" for each in [*late[:-1], other]))
    run.close()
    run.finalise()
    assert main(["show", str(run.path)]) == 0
    said = [line.strip() for line in capsys.readouterr().out.splitlines()]
    (row,) = [line for line in said if line.endswith("generator late")]
    assert f" and {len(late) - 2} more  generator late" in row
    assert [line for line in said if line.endswith("a reason of its own")]


OUTPUT = {"dossier": ("--output", os.devnull + "/none.json")}
"""Commands write nothing here."""


def test_a_run_that_is_still_written_is_neither_finished_nor_called_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = make_run(tmp_path / "results")
    older.finalise()
    writing = RunFolder.create(tmp_path / "results", "virtual", "ci")
    writing.hold()
    assert main(["finish", str(writing.path)]) == 2
    assert "still being written" in capsys.readouterr().err
    assert main(["show", str(tmp_path / "results" / "latest")]) == 0
    assert f"a newer run {writing.run_id} is still running" in capsys.readouterr().out.splitlines()[0]
    for command in ("verify", "stalled", "finish", "dossier"):
        main([command, str(tmp_path / "results" / "latest"), *OUTPUT.get(command, ())])
        assert f"reports: a newer run {writing.run_id} is still running" in capsys.readouterr().err, command
        main([command, str(older.path), *OUTPUT.get(command, ())])
        assert "a newer run" not in capsys.readouterr().err, "nobody takes that for the newest"
    writing.let_go()
    assert main(["show", str(tmp_path / "results" / "latest")]) == 0
    assert f"a newer run {writing.run_id} was not finalised" in capsys.readouterr().out.splitlines()[0]
    assert main(["finish", str(writing.path)]) == 0
    assert (tmp_path / "results" / "latest").resolve() == writing.path
    assert RunFolder.open(writing.path).manifest.end_utc is None


def test_an_older_run_that_is_finished_is_verified_and_does_not_become_the_latest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed = make_run(tmp_path)
    newer = make_run(tmp_path)
    newer.finalise()
    assert main(["finish", str(killed.path)]) == 0
    assert "no seal" in capsys.readouterr().out
    assert changed_files(killed.path) == []
    assert (tmp_path / "latest").resolve() == newer.path


def test_a_killed_run_is_finished_though_the_latest_cannot_be_read(tmp_path: Path) -> None:
    killed, latest = make_run(tmp_path), make_run(tmp_path)
    latest.finalise()
    (latest.path / "run.json").write_text("{")
    assert main(["finish", str(killed.path)]) == 0
    assert changed_files(killed.path) == []
    assert (tmp_path / "latest").resolve() == killed.path


def test_a_reader_that_has_seen_enough_ends_it_quietly(run: RunFolder) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "reports", "show", str(run.path)]
    done = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (PIPE_CLOSED, "")


def test_an_interruption_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reports.patterns.command.read_csv", interrupted)
    assert main(["patterns", "series.csv"]) == 4
    assert capsys.readouterr().err == "reports: broken off\n"
