# SPDX-License-Identifier: Apache-2.0
"""The section of the page on the history: what has changed with this run, as advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.history.advice import Advice, AdvisedCommit, BeyondBaseline, SeriesChange, find_advice
from reports.history.plots import figure_beyond, figure_change

CHANGES_DRAWN = 12
CHANGES_LISTED = 48
BEYOND_SHOWN = 6
COMMITS_LISTED = 24


@dataclass(frozen=True, slots=True)
class DrawnChange:
    """A change with its figure as SVG."""

    change: SeriesChange
    figure: str


@dataclass(frozen=True, slots=True)
class DrawnBeyond:
    """A value beyond its baseline with its figure as SVG."""

    value: BeyondBaseline
    figure: str


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A commit, and in the range of how many of the changes it lies."""

    commit: AdvisedCommit
    changes: int


@dataclass(frozen=True, slots=True)
class AdviceSection:
    """What the page shows of the advice.

    Attributes:
        advice: None where it cannot be read: `problem` says why.
        notes: What the commits do not show, each once.
    """

    advice: Advice | None
    problem: str = ""
    drawn: tuple[DrawnChange, ...] = ()
    listed: tuple[SeriesChange, ...] = ()
    beyond: tuple[DrawnBeyond, ...] = ()
    commits: tuple[CommitRow, ...] = ()
    commits_more: int = 0
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> str:
        """Return how many changes there are of each kind, in words."""
        kinds = Counter(change.kind for change in self.advice.changes) if self.advice else Counter[str]()
        words = [
            f"{kinds[kind]} {kind}{'' if kinds[kind] == 1 else 's'}"
            for kind in ("regression", "improvement")
            if kinds[kind]
        ]
        return " and ".join(words) or "no change"

    @property
    def history(self) -> str:
        """Return how many runs of history there are, as a number or a range."""
        if self.advice is None:
            return ""
        least, most = self.advice.history_least, self.advice.history_most
        return str(least) if least == most else f"{least} to {most}"


def gather_advice(folder: Path, added: Mapping[str, bytes], run_id: str) -> AdviceSection | None:
    """Return the section of a run folder; None: nobody has asked the history. Never raises for its file."""
    try:
        advice = find_advice(folder, added, run_id)
    except RecordError as error:
        return AdviceSection(None, problem=str(error))
    if advice is None:
        return None
    commits = _commits(advice)
    return AdviceSection(
        advice,
        drawn=tuple(
            DrawnChange(change, figure_change(f"change{number}", change))
            for number, change in enumerate(advice.changes[:CHANGES_DRAWN])
        ),
        listed=advice.changes[:CHANGES_LISTED],
        beyond=tuple(
            DrawnBeyond(value, figure_beyond(f"beyond{number}", value))
            for number, value in enumerate(advice.beyond[:BEYOND_SHOWN])
        ),
        commits=tuple(commits[:COMMITS_LISTED]),
        commits_more=max(0, len(commits) - COMMITS_LISTED),
        notes=tuple(dict.fromkeys(c.commits_note for c in advice.changes if c.commits_note)),
    )


def _commits(advice: Advice) -> list[CommitRow]:
    """Return the commits of all changes, those in the ranges of most changes first."""
    known: dict[str, AdvisedCommit] = {}
    counts: Counter[str] = Counter()
    for change in advice.changes:
        for commit in change.commits:
            known.setdefault(commit.hash, commit)
            counts[commit.hash] += 1
    order = {name: place for place, name in enumerate(known)}
    ranked = sorted(known, key=lambda name: (-counts[name], order[name]))
    return [CommitRow(known[name], counts[name]) for name in ranked]
