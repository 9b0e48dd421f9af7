# SPDX-License-Identifier: Apache-2.0
"""The undo journal survives the death of its writer, and takes changes back in reverse."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hw.errors import BenchError
from hw.journal import Journal
from tests.patience import HANG_S

# Makes a file a change, without end: written down first, made second, told third.
WRITER = """
import sys
from itertools import count
from pathlib import Path
from hw.journal import Journal

folder = Path(sys.argv[1])
journal = Journal("lab", {"file": print}, folder / "journal")
for number in count():
    path = folder / str(number)
    journal.record("file", path=str(path))
    path.touch()
    print(number, flush=True)
"""

# Gives the journal room for one record and a part of the next, as a disk has that fills up.
FULL_DISK = """
import resource
import sys
from pathlib import Path
from hw.errors import BenchError
from hw.journal import Journal

journal = Journal("lab", {"file": print}, Path(sys.argv[1]) / "journal")
journal.record("file", path="/nowhere/0")
size_bytes = journal.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes + size_bytes // 2, resource.RLIM_INFINITY))
try:
    journal.record("file", path="/nowhere/1")
except BenchError as error:
    print(error)
print(journal.path.stat().st_size - size_bytes, "bytes more")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.record("file", path="/nowhere/2")
"""


class Undo:
    """An undo action that deletes files and remembers in which order it was asked to."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, change: Mapping[str, Any]) -> None:
        """Delete the file of a change."""
        self.asked.append(Path(change["path"]).name)
        Path(change["path"]).unlink(missing_ok=True)


def _journal(tmp_path: Path, undo: Undo) -> Journal:
    return Journal("lab", {"file": undo}, tmp_path / "journal")


@pytest.mark.parametrize("changes", [1, 2, 17, 60])
def test_a_killed_run_is_undone_in_reverse(repository: Path, tmp_path: Path, changes: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], cwd=repository, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for _ in range(changes):
            writer.stdout.readline()
        writer.kill()
        writer.wait(HANG_S)
    assert writer.returncode == -signal.SIGKILL
    made = {path.name for path in tmp_path.iterdir()} - {"journal"}
    assert len(made) >= changes
    undo = Undo()
    journal = _journal(tmp_path, undo)
    assert made <= {Path(change["path"]).name for change in journal.pending()}
    assert journal.undo() == len(undo.asked)
    assert undo.asked == [str(number) for number in reversed(range(len(undo.asked)))]
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]
    assert journal.undo() == 0


def test_a_torn_last_line_is_a_change_that_was_not_made(tmp_path: Path) -> None:
    undo = Undo()
    journal = _journal(tmp_path, undo)
    for number in range(3):
        journal.record("file", path=f"/nowhere/{number}")
    written = journal.path.read_bytes()
    for kept in range(written[:-1].rfind(b"\n") + 1, len(written) - 1):
        journal.path.write_bytes(written[:kept])
        assert [change["path"] for change in journal.pending()] == ["/nowhere/0", "/nowhere/1"]
        undo.asked.clear()
        journal.undo()
        assert undo.asked == ["1", "0"]
        journal.record("file", path="/nowhere/3")
        assert [change["path"] for change in journal.pending()] == ["/nowhere/3"]


def test_a_record_that_does_not_fit_on_the_disk_is_an_error_and_leaves_no_trace(
    repository: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    assert "lab.journal: the undo journal cannot be written: File too large\n0 bytes more\n" in done.stdout
    undo = Undo()
    assert _journal(tmp_path, undo).undo() == 2
    assert undo.asked == ["2", "0"]


def test_a_record_is_not_glued_to_what_a_kill_has_left_of_one(tmp_path: Path) -> None:
    undo = Undo()
    journal = _journal(tmp_path, undo)
    for number in range(2):
        journal.record("file", path=f"/nowhere/{number}")
    journal.path.write_bytes(journal.path.read_bytes()[:-9])
    for number in range(2, 4):
        journal.record("file", path=f"/nowhere/{number}")
    journal.undo()
    assert undo.asked == ["3", "2", "0"]


def test_a_journal_that_cannot_be_written_is_an_error_of_the_bench(tmp_path: Path) -> None:
    (tmp_path / "journal").touch()
    with pytest.raises(BenchError, match="journal: the undo journal cannot be written: File exists"):
        _journal(tmp_path, Undo())
    (tmp_path / "journal").unlink()
    journal = _journal(tmp_path, Undo())
    journal.path.mkdir()
    with pytest.raises(BenchError, match=r"lab\.journal: the undo journal cannot be written: Is a directory"):
        journal.record("file", path="/nowhere/0")


def test_what_cannot_be_undone_is_told_when_the_journal_cannot_be_written(tmp_path: Path) -> None:
    journal = _journal(tmp_path, Undo())
    (tmp_path / "b").mkdir()
    journal.record("file", path=str(tmp_path / "b"))
    journal.path.with_suffix(".new").mkdir()
    with pytest.raises(BenchError, match=r"could not undo .*/b.*; the journal itself: Is a directory"):
        journal.undo()
    assert len(journal.pending()) == 1


def test_a_line_that_is_damaged_before_the_last_is_an_error(tmp_path: Path) -> None:
    journal = _journal(tmp_path, Undo())
    for name in "abc":
        journal.record("file", path=name)
    lines = journal.path.read_text().splitlines()
    journal.path.write_text("\n".join([lines[0], lines[1][:9], lines[2]]) + "\n")
    with pytest.raises(BenchError, match=r"lab\.journal:2: the undo journal is damaged"):
        journal.undo()
    assert journal.path.exists()


def test_what_cannot_be_undone_stays_and_the_others_are_undone(tmp_path: Path) -> None:
    undo = Undo()
    journal = _journal(tmp_path, undo)
    (tmp_path / "b").mkdir()  # unlink refuses a folder
    for name in "abc":
        journal.record("file", path=str(tmp_path / name))
    with pytest.raises(BenchError, match="could not undo"):
        journal.undo()
    assert undo.asked == ["c", "b", "a"]
    assert [Path(change["path"]).name for change in journal.pending()] == ["b"]
    (tmp_path / "b").rmdir()
    assert journal.undo() == 1
    assert not journal.path.exists()


def test_a_kind_that_nobody_can_undo_is_not_written_down(tmp_path: Path) -> None:
    journal = _journal(tmp_path, Undo())
    with pytest.raises(KeyError, match="volume"):
        journal.record("volume", name="x")
    assert journal.pending() == []


def test_a_journal_of_another_version_is_an_error_that_keeps_it(tmp_path: Path) -> None:
    journal = _journal(tmp_path, Undo())
    journal.path.write_text('{"kind": "volume", "name": "x"}\n')
    with pytest.raises(BenchError, match="could not undo"):
        journal.undo()
    assert len(journal.pending()) == 1
