# SPDX-License-Identifier: Apache-2.0
"""The dossier, gathered from run folders, requirements and waivers, and from nothing else.

Neither the clock nor this machine enters: the same input gives the same dossier on any day.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.dossier.conclusion import conclude, effects, rule_text
from reports.dossier.deviations import deviations_of
from reports.dossier.environment import (
    configurations,
    fact_tables,
    impairments_of,
    provisioning_of,
    test_notes,
)
from reports.dossier.instruments import wiring_of
from reports.dossier.model import (
    DOSSIER_SCHEMA,
    Dossier,
    File,
    Pair,
    RequirementsFile,
    Run,
    Signatory,
    Target,
)
from reports.dossier.requirements import RequirementSet, merged, read_set, requirements_for
from reports.dossier.source import Source, distribution_in, read_backs, read_sources
from reports.dossier.traceability import Tried, matrix
from reports.dossier.waivers import NONE, Waivers, check_waivers, read_waivers
from reports.facts import flatten
from reports.record import parse_utc
from reports.tally import INSTRUMENT_CHECKS

_ID_DIGITS = 12
_KEPT_APART = ("instruments", "wiring")
"""Facts of the host that have a place of their own in the dossier."""


@dataclass(frozen=True)
class Request:
    """What a dossier is asked for.

    Attributes:
        runs: Run folders, in any order.
        requirements: Requirements files that hold before those that the runs kept.
        title: None: made of the targets' names.
        operator: Name of who ran the tests; None: to be filled in.
        reviewer: Name of who judges the dossier; None: to be filled in.
        date: Of the dossier; None: the last day of the runs and waivers.
    """

    runs: tuple[Path, ...]
    waivers: Path | None = None
    requirements: tuple[Path, ...] = ()
    title: str | None = None
    operator: str | None = None
    reviewer: str | None = None
    date: datetime.date | None = None


def gather(request: Request) -> Dossier:
    """Gather a dossier.

    Raises:
        DossierError: A run cannot be relied on, or a file of waivers or requirements is wrong; see its
            exit code.
        ReportError: A folder is no run folder, or a file of it cannot be read.
    """
    sources = read_sources(request.runs)
    named = [read_set(file, file.name) for file in request.requirements]
    sets = merged([*named, *(each for source in sources for each in source.requirement_sets)])
    waivers = _by_run_id(read_waivers(request.waivers) if request.waivers else NONE, sources)
    date = request.date or _last_day(sources, waivers)
    targets = tuple(
        _target(bench, name, sources, sets, waivers)
        for bench, name in dict.fromkeys(pair for source in sources for pair in source.targets())
    )
    check_waivers(
        waivers, date, {row.id for target in targets for row in target.requirements}, _tries(targets, sources)
    )
    runs = tuple(_run(source) for source in sources)
    names = dict.fromkeys(f"{target.name} on {target.bench}" for target in targets)
    return Dossier(
        schema=DOSSIER_SCHEMA,
        id=_id(request, sources, waivers, named),
        title=request.title or f"Acceptance of {', '.join(names) or 'no target'}",
        date=date.isoformat(),
        conclusion=conclude(targets, sets),
        rule=rule_text(),
        simulated=any(source.simulated for source in sources)
        or any(record.simulated for source in sources for record in source.records),
        targets=targets,
        runs=runs,
        requirements_files=tuple(
            RequirementsFile(
                each.path, each.name, each.schema, each.sha256, each.run_ids, len(each.requirements)
            )
            for each in sets
        ),
        waivers=effects(waivers, targets),
        deviations=deviations_of(targets, runs, sources),
        signatories=(Signatory("operator", request.operator), Signatory("reviewer", request.reviewer)),
    )


def _id(
    request: Request, sources: Sequence[Source], waivers: Waivers, named: Sequence[RequirementSet]
) -> str:
    """Return the id: of all that the dossier is made from."""
    made_from = {
        "schema": DOSSIER_SCHEMA,
        "runs": [[source.run_id, source.sums_sha256] for source in sources],
        "waivers": waivers.sha256,
        "requirements": [[each.path, each.sha256] for each in named],
        "title": request.title,
        "operator": request.operator,
        "reviewer": request.reviewer,
        "date": request.date.isoformat() if request.date else None,
    }
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    return f"BD-{digest[:_ID_DIGITS]}"


def _last_day(sources: Sequence[Source], waivers: Waivers) -> datetime.date:
    ends = [parse_utc(source.manifest.end_utc or source.manifest.start_utc).date() for source in sources]
    return max([*ends, *(waiver.date for waiver in waivers.all)])


def _by_run_id(waivers: Waivers, sources: Sequence[Source]) -> Waivers:
    """Return the waivers with runs by their id, where the file names their folder."""
    ids = {source.path.name: source.run_id for source in sources}
    return replace(
        waivers,
        all=tuple(
            replace(waiver, run=ids.get(waiver.run, waiver.run) if waiver.run else None)
            for waiver in waivers.all
        ),
    )


def _target(
    bench: str, name: str, sources: Sequence[Source], sets: Sequence[RequirementSet], waivers: Waivers
) -> Target:
    own = [source for source in sources if (bench, name) in source.targets()]
    asked = requirements_for(sets, [source.run_id for source in own])
    parts = {requirement.id: requirement.parts for _file, requirement in asked}
    tried = Tried(
        [candidate for source in own for candidate in source.candidates(bench, name, parts)],
        waivers,
        lambda attempt: distribution_in(own, attempt),
    )
    found = [
        provisioning_of(source.path, source.run_id, name) for source in own if bench == source.manifest.bench
    ]
    return Target(
        bench=bench,
        name=name,
        simulated=all(candidate.simulated for candidate in tried.candidates)
        if tried.candidates
        else all(source.simulated for source in own),
        configurations=configurations(read_backs(own, bench, name)),
        provisioning=tuple(each for each in found if each is not None),
        requirements=matrix(asked, tried, INSTRUMENT_CHECKS),
        checks=tried.results(lambda record: record.quantity in INSTRUMENT_CHECKS),
    )


def _run(source: Source) -> Run:
    manifest = source.manifest
    notes = test_notes(source.path)
    host = {key: value for key, value in manifest.host.items() if key not in _KEPT_APART}
    return Run(
        folder=source.path.name,
        manifest=manifest,
        sums_sha256=source.sums_sha256,
        instruments=source.instruments,
        wiring=wiring_of(manifest),
        impairments=impairments_of(source.path, source.records),
        host=fact_tables("", host),
        tools=tuple(Pair(tool, text) for tool, text in flatten(manifest.tools)),
        tests_skipped=notes.skipped,
        tests_failed=notes.failed,
        files=tuple(
            File(path, (source.path / path).stat().st_size, digest) for path, digest in source.sums.items()
        ),
    )


def _tries(targets: Sequence[Target], sources: Sequence[Source]) -> dict[str, dict[str, int]]:
    """Return by run and requirement the largest number of an attempt."""
    found: dict[str, dict[str, int]] = {source.run_id: {} for source in sources}
    for target in targets:
        for row in target.requirements:
            for attempt in (attempt for result in row.results for attempt in result.attempts):
                known = found[attempt.run_id]
                known[row.id] = max(known.get(row.id, 0), attempt.number_in_run)
    return found
