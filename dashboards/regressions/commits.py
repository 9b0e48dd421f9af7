# SPDX-License-Identifier: Apache-2.0
"""The commits between two runs, read from a Git repository; what cannot be read is said, never guessed."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dashboards.regressions.event import Event

TIMEOUT_S = 10
COMMITS_MAX = 24
DIRTY = "-dirty"
_HASH = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits that one run has and an earlier one has not.

    Attributes:
        hashes: Oldest first, the newest COMMITS_MAX of them.
        note: Why there are none, or what they do not show; '' where nothing is to be said.
    """

    hashes: tuple[str, ...]
    note: str


def add_commits(event: Event, repository: Path) -> Event:
    """Return an event with the commits that can have caused it; never raises for what Git cannot say."""
    found = commits_between(repository, event.range_before.commit, event.range_after.commit)
    return event.with_commits(found.hashes, found.note)


def commits_between(repository: Path, before: str | None, after: str | None) -> Commits:
    """Return the commits of `after` that `before` has not.

    Args:
        repository: Working tree or bare repository that both commits are of.
        before: Commit of the earlier run as the manifest has it, with or without `-dirty`.
        after: Commit of the later run.
    """
    notes: list[str] = []
    hashes: list[str] = []
    for which, commit in (("before", before), ("after", after)):
        plain = (commit or "").removesuffix(DIRTY)
        if not _HASH.fullmatch(plain):
            return Commits((), f"that of the run {which} the change is not known")
        if plain != commit:
            notes.append(f"the run {which} the change had changed files that are in no commit")
        hashes.append(plain)
    try:
        listed = _log(repository, f"{hashes[0]}..{hashes[1]}")
        undone = _log(repository, f"{hashes[1]}..{hashes[0]}")
    except (OSError, subprocess.SubprocessError) as error:
        return Commits((), "; ".join([*notes, f"not to be read from Git: {_reason(error)}"]))
    if undone:
        notes.append(f"{len(undone)} commits of the run before the change are not in the run after it")
    if not listed and not undone:
        notes.append("both runs are of the same commit")
    if len(listed) > COMMITS_MAX:
        notes.append(f"only the newest {COMMITS_MAX} of {len(listed)}")
    return Commits(listed[-COMMITS_MAX:], "; ".join(notes))


def subjects_of(repository: Path, hashes: Iterable[str]) -> dict[str, str]:
    """Return the subject line of each commit that Git knows; none where it cannot be asked."""
    wanted = sorted(set(hashes))
    if not wanted:
        return {}
    try:
        lines = _git(repository, "log", "--no-walk", "--format=%H %s", *wanted, "--").splitlines()
    except (OSError, subprocess.SubprocessError):
        return {}
    return {name: subject for name, _, subject in (line.partition(" ") for line in lines)}


@functools.lru_cache(maxsize=1024)
def _log(repository: Path, commits: str) -> tuple[str, ...]:
    """Return the hashes of a range of commits, oldest first: it never becomes another."""
    return tuple(_git(repository, "rev-list", "--reverse", "--topo-order", commits, "--").split())


def _git(repository: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        check=True,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT_S,
    )
    return answer.stdout


def _reason(error: OSError | subprocess.SubprocessError) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        lines = str(error.stderr).strip().splitlines()
        return lines[-1] if lines else f"exit code {error.returncode}"
    return str(error)
