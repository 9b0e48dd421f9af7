# SPDX-License-Identifier: Apache-2.0
"""Runs that a dossier does not name: what the store of a laboratory knows of the same bench and target.

`python -m dashboards runs` writes them, in the order in which they were stored: a clock that was set back
does not change it. What counts is every run since bench or target last changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reports.dossier.errors import DossierError
from reports.dossier.model import Deviation, Request, Run, Target
from reports.record.codec import from_json
from reports.record.json_text import load_json
from reports.record.measurement import parse_utc

SCHEMA = "benchwright.runs/1"
EARLIER_RUN = "earlier run"
"""A run that is not part of the dossier, or that it is not known whether there were any."""
CLOCK = "clock of the bench"


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the store knows it.

    Attributes:
        targets: What had changed since the run before, in words, by the name of each target; empty: nothing.
    """

    run_id: str
    start_utc: str
    bench: str
    outcome: str
    targets: dict[str, str]


@dataclass(frozen=True, slots=True)
class History:
    """All runs of a store, in the order in which they were stored."""

    schema: str
    runs: tuple[StoredRun, ...]


def history_of(asked: Request) -> History | None:
    """Return the runs that a dossier was asked for with; None: none were named.

    Raises:
        DossierError: There is more than one file of them, or it is wrong.
    """
    files = [file for file in asked.files if file.role == "history"]
    if len(files) > 1:
        raise DossierError(f"{files[1].name}: a second file of stored runs; one is allowed")
    if not files:
        return None
    try:
        found = from_json(History, load_json(files[0].text))
        for run in found.runs:
            parse_utc(run.start_utc)
    except ValueError as error:  # RecordError is one
        raise DossierError(f"{files[0].name}: {error}") from error
    if found.schema != SCHEMA:
        raise DossierError(f"{files[0].name}: schema: must be {SCHEMA}, found {found.schema!r}")
    return found


def earlier_runs(targets: Sequence[Target], runs: Sequence[Run], history: History | None) -> list[Deviation]:
    """Return which earlier runs a dossier does not name, or why that is not known, and clocks set back."""
    found = [Deviation(run_id, CLOCK, text) for run_id, text in _overlaps(runs)]
    if history is None:
        unknown = "the store was not named (--history): which runs there were before is not known"
        return [*found, Deviation("", EARLIER_RUN, unknown)]
    ids = {run.manifest.run_id for run in runs}
    for target in targets:
        own = [each for each in history.runs if each.bench == target.bench and target.name in each.targets]
        where = f"{target.name} on {target.bench}"
        found += [Deviation("", EARLIER_RUN, f"{where}: {text}") for text in _unnamed(own, target.name, ids)]
    for bench in dict.fromkeys(target.bench for target in targets):
        stored = [each for each in history.runs if each.bench == bench]
        found += [
            Deviation(
                "", CLOCK, f"{bench}: {_began(later)}, and was stored after {_began(one)}: a clock set back"
            )
            for one, later in pairwise(stored)
            if parse_utc(later.start_utc) < parse_utc(one.start_utc)
        ]
    return found


def _began(run: StoredRun) -> str:
    return f"run {run.run_id} began at {run.start_utc}"


def _unnamed(stored: Sequence[StoredRun], target: str, ids: Collection[str]) -> Iterator[str]:
    """Yield in words what the store knows of a target before the last run of the dossier."""
    places = [place for place, each in enumerate(stored) if each.run_id in ids]
    if not places:
        yield "the store has none of its runs: which there were before is not known"
        return
    for place in range(places[-1], -1, -1):
        each = stored[place]
        if each.run_id not in ids:
            yield f"run {each.run_id} of {each.start_utc}, {each.outcome}, is not part of this dossier"
        if each.targets[target] and place <= places[0]:
            return
    yield f"the store begins with run {stored[0].run_id}: which runs there were before it is not known"


def _overlaps(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """Yield each run that began before another one of its bench ended: one of a name is open at a time."""
    for bench in dict.fromkeys(run.manifest.bench for run in runs):
        own = [run.manifest for run in runs if run.manifest.bench == bench]
        for one, later in pairwise(own):
            if one.end_utc is not None and parse_utc(later.start_utc) < parse_utc(one.end_utc):
                yield later.run_id, f"{bench}: it began before run {one.run_id} ended: a clock set back"
