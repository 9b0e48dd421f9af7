# SPDX-License-Identifier: Apache-2.0
"""`python -m reports` where something cannot be read or written: exit code 2, which is no change of a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reports.__main__ import PIPE_CLOSED, main
from reports.run.folder import RunFolder
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


def test_a_reader_that_has_seen_enough_ends_it_quietly(run: RunFolder) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "reports", "show", str(run.path)]
    done = subprocess.run(command, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (PIPE_CLOSED, "")
