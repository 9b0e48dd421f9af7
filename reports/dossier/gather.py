# SPDX-License-Identifier: Apache-2.0
"""The dossier, gathered from run folders, requirements and waivers, and from nothing else.

Neither the clock nor this machine enters: the same input gives the same dossier on any day.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from reports.dossier.conclusion import UNCHECKED, conclude, effects, rule_text, unsealed
from reports.dossier.deviations import deviations_of
from reports.dossier.earlier import earlier_runs, history_of
from reports.dossier.environment import (
    configurations,
    fact_tables,
    impairments_of,
    provisioning_of,
    test_notes,
)
from reports.dossier.errors import DossierError
from reports.dossier.instruments import wiring_of
from reports.dossier.model import (
    DOSSIER_SCHEMA,
    Dossier,
    File,
    NamedFile,
    Pair,
    Request,
    RequirementsFile,
    Run,
    Seal,
    Signatory,
    Target,
)
from reports.dossier.patterns import patterns_of
from reports.dossier.source import (
    Source,
    absent_runs,
    broken_runs,
    distribution_in,
    read_backs,
    read_sources,
)
from reports.dossier.traceability import STACK, TargetTrials, matrix
from reports.dossier.waivers import NONE, Scope, Trial, Waivers, check_waivers, read_waivers
from reports.page.facts import flatten
from reports.quantities import INSTRUMENT_CHECKS
from reports.record.codec import to_json
from reports.record.measurement import parse_utc
from reports.requirement_forms import read_set
from reports.requirements import Requirement, RequirementSet, merged, requirements_for
from reports.run.benches import TrustedSeals, read_benches, read_fingerprint, seal_of
from reports.run.selected import SelectedRequirement, SelectedSuite, selected_by_stack, selected_of
from reports.run.selected_before import selected_in

_ID_DIGITS = 12
_KEPT_APART = ("instruments", "wiring")
"""Facts of the host that have a place of their own in the dossier."""


NOTHING_ASKED = Request(None, None, None, None, ())


def named_file(role: Literal["waivers", "requirements", "benches", "history"], path: Path) -> NamedFile:
    """Read a file that the command line names.

    Raises:
        DossierError: It cannot be read, or is not UTF-8.
    """
    try:
        data = path.read_bytes()
        return NamedFile(role, path.name, hashlib.sha256(data).hexdigest(), data.decode())
    except OSError as error:
        raise DossierError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DossierError(f"{path}: {error}") from error


def gather(runs: Sequence[Path], asked: Request = NOTHING_ASKED) -> Dossier:
    """Gather a dossier.

    Args:
        runs: Run folders, in any order.
        asked: Everything else. Requirements files named there hold before those that the runs kept. Without a
            title one is made of the targets' names; without a date it is the last day of runs and waivers.

    Raises:
        DossierError: A run cannot be relied on, or a file of waivers or requirements is wrong; see its
            exit code.
        ReportError: A folder is no run folder, or a file of it cannot be read.
    """
    sources = read_sources(runs)
    named = [read_set(file.text.encode(), file.name) for file in asked.files if file.role == "requirements"]
    sets = merged([*named, *(each for source in sources for each in source.requirement_sets)])
    waivers = waivers_of(asked)
    date = _given_date(asked, sources) or _last_day(sources, waivers)
    targets = tuple(
        _target(bench, name, sources, sets, waivers)
        for bench, name in dict.fromkeys(pair for source in sources for pair in source.targets())
    )
    absent = absent_runs(sources)
    check_waivers(waivers, date, _scope(targets, sources, absent))
    history = history_of(asked)
    trusted = trusted_of(asked)
    shown = tuple(_run(source, trusted) for source in sources)
    names = dict.fromkeys(f"{target.name} on {target.bench}" for target in targets)
    return Dossier(
        schema=DOSSIER_SCHEMA,
        id=_id(sources, asked),
        title=asked.title or f"Acceptance of {', '.join(names) or 'no target'}",
        date=date.isoformat(),
        conclusion=conclude(targets, sets, absent, [*unsealed(shown), *broken_runs(sources)], waivers),
        rule=rule_text(),
        simulated=any(source.simulated for source in sources)
        or any(record.simulated for source in sources for record in source.records),
        targets=targets,
        runs=shown,
        requirements_files=tuple(
            RequirementsFile(
                each.path, each.name, each.schema, each.sha256, each.run_ids, len(each.requirements)
            )
            for each in sets
        ),
        waivers=effects(waivers, targets, absent),
        deviations=(*earlier_runs(targets, shown, history), *deviations_of(targets, shown, sources)),
        signatories=(Signatory("operator", asked.operator), Signatory("reviewer", asked.reviewer)),
        asked=asked,
    )


def _id(sources: Sequence[Source], asked: Request) -> str:
    """Return the id: of all that the dossier is made from."""
    runs = [[source.run_id, source.sums_sha256] for source in sources]
    made_from = {"schema": DOSSIER_SCHEMA, "runs": runs, "asked": to_json(asked)}
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    return f"BD-{digest[:_ID_DIGITS]}"


def waivers_of(asked: Request) -> Waivers:
    """Return the waivers that a dossier was asked for with; raises DossierError."""
    files = [file for file in asked.files if file.role == "waivers"]
    if len(files) > 1:
        raise DossierError(f"{files[1].name}: a second file of waivers; one is allowed")
    return read_waivers(files[0].text.encode(), files[0].name) if files else NONE


def _given_date(asked: Request, sources: Sequence[Source]) -> datetime.date | None:
    if asked.date is None:
        return None
    try:
        date = datetime.date.fromisoformat(asked.date)
    except ValueError as error:
        raise DossierError(f"date: {asked.date!r} is no date YYYY-MM-DD") from error
    last = max(map(_day_of, sources))
    if date < last:
        raise DossierError(f"date: {date} is before {last} (UTC), when the last run ended")
    return date


def _last_day(sources: Sequence[Source], waivers: Waivers) -> datetime.date:
    return max([*map(_day_of, sources), *(waiver.date for waiver in waivers.all)])


def _day_of(source: Source) -> datetime.date:
    """Return the last day of a run, UTC."""
    return parse_utc(source.manifest.end_utc or source.manifest.start_utc).date()


def _target(
    bench: str, name: str, sources: Sequence[Source], sets: Sequence[RequirementSet], waivers: Waivers
) -> Target:
    own = [source for source in sources if (bench, name) in source.targets()]
    wanted = {source.run_id: selected_of(selected_in(source.path, source.manifest), name) for source in own}
    own_sets = _sets_of_target(sets, wanted)
    asked = requirements_for(own_sets, list(wanted))
    skipped = {name: each.skipped for of_run in wanted.values() for name, each in of_run.items()}
    stacks = stacks_selected([selected_in(source.path, source.manifest) for source in own], name)
    by_id = {requirement.id: requirement for _file, requirement in asked}
    tried = TargetTrials(
        f"{name} on {bench}",
        [
            candidate
            for source in own
            for candidate in source.candidates(bench, name, by_id, _kept_by(own_sets, source.run_id))
        ],
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
        requirements=matrix(asked, skipped, tried, INSTRUMENT_CHECKS, stacks),
        checks=tried.results(lambda record: record.quantity in INSTRUMENT_CHECKS),
    )


def stacks_selected(runs: Iterable[Sequence[SelectedSuite]], target: str) -> dict[str, tuple[str, ...]]:
    """Return, by requirement, the network stacks with which a run asks it of a target, where it has several.

    Args:
        runs: What each run has noted.
        target: Name of the target.
    """
    found: dict[str, dict[str, None]] = {}
    for asked in runs:
        for name, stack in selected_by_stack(asked, target):
            if stack is not None:
                found.setdefault(name, {})[stack] = None
    return {name: tuple(each) for name, each in found.items()}


def _kept_by(sets: Iterable[RequirementSet], run_id: str) -> dict[str, Requirement]:
    """Return the requirements that a run has kept, by their ids."""
    return {one.id: one for each in sets if run_id in each.run_ids for one in each.requirements}


def _sets_of_target(
    sets: Sequence[RequirementSet],
    wanted: Mapping[str, Mapping[str, SelectedRequirement]],
) -> list[RequirementSet]:
    """Return the files of requirements, of those that a run kept what it asked of a target.

    Args:
        sets: All files.
        wanted: What each run asked of it, by run and id.
    """
    found: list[RequirementSet] = []
    for each in sets:
        if not each.run_ids:  # named on the command line
            found.append(each)
            continue
        name = Path(each.path).name
        asking = {
            run_id: {one for one, ask in wanted[run_id].items() if ask.file == name}
            for run_id in each.run_ids
            if run_id in wanted
        }
        ids = {one for of_run in asking.values() for one in of_run}
        kept = tuple(one for one in each.requirements if one.id in ids)
        if kept:
            runs = tuple(run_id for run_id, of_run in asking.items() if of_run)
            found.append(replace(each, requirements=kept, run_ids=runs))
    return found


def trusted_of(asked: Request) -> TrustedSeals | None:
    """Return what the seals of the runs are held against; None: nothing was named.

    Raises:
        DossierError: There is more than one list of benches.
        ReportError: A fingerprint or the list is wrong.
    """
    files = [file for file in asked.files if file.role == "benches"]
    if len(files) > 1:
        raise DossierError(f"{files[1].name}: a second list of benches; one is allowed")
    if not asked.is_sealed_checked:
        return None
    try:
        keys = tuple(read_fingerprint(text) for text in asked.sealed_by)
    except ValueError as error:
        raise DossierError(f"sealed_by: {error}") from error
    return TrustedSeals(keys, read_benches(files[0].text.encode(), files[0].name) if files else ())


def _seal(source: Source, trusted: TrustedSeals | None) -> Seal:
    key = seal_of(source.path)
    if trusted is None:
        return Seal(key, "", UNCHECKED)
    remark = trusted.discrepancy(source.path, source.manifest)
    return Seal(key, "" if remark else trusted.bench_of(key, source.manifest), remark)


def _run(source: Source, trusted: TrustedSeals | None) -> Run:
    manifest = source.manifest
    notes = test_notes(source.path)
    host = {key: value for key, value in manifest.host.items() if key not in _KEPT_APART}
    return Run(
        folder=source.path.name,
        manifest=manifest,
        sums_sha256=source.sums_sha256,
        seal=_seal(source, trusted),
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
        patterns=patterns_of(source.path),
    )


def _scope(targets: Sequence[Target], sources: Sequence[Source], absent: Iterable[str]) -> Scope:
    """Return what waivers may be of."""
    days: dict[str, datetime.date | None] = {source.run_id: _day_of(source) for source in sources}
    requirements: dict[str, list[str]] = {}
    trials: dict[Trial, None] = {}
    for target in targets:
        where = f"{target.name} on {target.bench}"
        requirements[where] = [row.id for row in target.requirements]
        for row in target.requirements:
            attempts = [attempt for result in row.results for attempt in result.attempts]
            for each in attempts:
                stack = each.record.subject.stack
                trials[Trial(each.run_id, row.id, where, stack, each.number_in_run)] = None
            for part in row.missing:
                kind, _, stack = part.partition(" ")
                if kind == STACK:
                    trials[Trial("", row.id, where, stack, 0)] = None
    return Scope(requirements, days | dict.fromkeys(absent), tuple(trials))
