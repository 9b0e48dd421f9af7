# SPDX-License-Identifier: Apache-2.0
"""The commits between two runs, from real Git repositories; what cannot be read is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from dashboards.regressions import commits
from dashboards.regressions.changes import find_changes
from dashboards.regressions.commits import add_commits, commits_between
from dashboards.regressions.event import RunValue
from dashboards.regressions.series_events import event_of


def git(repository: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.invalid")
    return subprocess.run(
        ["git", "-C", str(repository), *identity, *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(repository: Path) -> str:
    git(repository, "commit", "--quiet", "--allow-empty", "--no-verify", "--no-gpg-sign", "-m", "next")
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return a repository with five commits in a row, and these."""
    repository = tmp_path_factory.mktemp("line")
    git(repository, "init", "--quiet")
    return repository, [commit(repository) for _ in range(5)]


def test_commits_between_are_oldest_first(line: tuple[Path, list[str]]) -> None:
    repository, made = line
    found = commits_between(repository, made[1], made[4])
    assert (found.hashes, found.note) == (tuple(made[2:]), "")
    assert commits_between(repository, made[1][:10], made[4][:10]) == found


def test_says_that_it_was_not_the_software(line: tuple[Path, list[str]]) -> None:
    repository, made = line
    found = commits_between(repository, made[2], made[2])
    assert (found.hashes, found.note) == ((), "both runs are of the same commit")


def test_names_changes_that_are_in_no_commit(line: tuple[Path, list[str]]) -> None:
    repository, made = line
    found = commits_between(repository, made[2], f"{made[3]}-dirty")
    assert found.hashes == (made[3],)
    assert found.note == "the run after the change had changed files that are in no commit"


def test_names_commits_that_were_left_behind(line: tuple[Path, list[str]]) -> None:
    repository, made = line
    back = commits_between(repository, made[4], made[1])
    assert (back.hashes, back.note) == (
        (),
        "3 commits of the run before the change are not in the run after it",
    )


def test_keeps_the_newest_of_very_many(line: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    repository, made = line
    monkeypatch.setattr(commits, "COMMITS_MAX", 2)
    found = commits_between(repository, made[0], made[4])
    assert (found.hashes, found.note) == (tuple(made[3:]), "only the newest 2 of 4")


@pytest.mark.parametrize("unknown", [None, "", "HEAD", "--all", "-dirty", "abc", "0" * 65])
def test_asks_git_for_hashes_only(line: tuple[Path, list[str]], unknown: str | None) -> None:
    repository, made = line
    assert (
        commits_between(repository, unknown, made[0]).note == "that of the run before the change is not known"
    )
    assert (
        commits_between(repository, made[0], unknown).note == "that of the run after the change is not known"
    )


def test_says_what_git_says(line: tuple[Path, list[str]], tmp_path: Path) -> None:
    repository, made = line
    elsewhere = commits_between(repository, "1" * 40, made[0])
    assert elsewhere.hashes == ()
    assert elsewhere.note.startswith("not to be read from Git: fatal: ")
    assert "not to be read from Git" in commits_between(tmp_path / "none", made[0], made[1]).note


def test_an_event_gets_the_commits_of_its_whole_range(line: tuple[Path, list[str]]) -> None:
    repository, made = line
    runs = [
        RunValue(f"r{day}", day, 5.0 + (day >= 40) + 0.4 * (day % 3 - 1), commit=made[day // 15])
        for day in range(60)
    ]
    values = np.array([run.value for run in runs])
    (change,) = find_changes(values)
    event = event_of("x", "ns", runs, values, change, "higher")
    told = add_commits(event, repository)
    first, last = (made.index(run.commit or "") for run in (event.range_before, event.range_after))
    assert told.commits == tuple(made[first + 1 : last + 1])
    assert told.figures == event.figures
