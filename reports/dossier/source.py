# SPDX-License-Identifier: Apache-2.0
"""The runs that a dossier rests on: read whole, and refused where they cannot be relied on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from reports.dossier.attempts import Candidate
from reports.dossier.distribution import Distributions
from reports.dossier.environment import ReadBack
from reports.dossier.errors import CHANGED, INTERRUPTED, DossierError
from reports.dossier.instruments import doubts_by, instruments_of
from reports.dossier.model import Attempt, Distribution, Instrument
from reports.dossier.traceability import requirement_doubt
from reports.quantities import INSTRUMENT_CHECKS
from reports.record.measurement import Measurement
from reports.rejudge.run import rejudge
from reports.requirement_forms import sets_of_run
from reports.requirements import Requirement, RequirementSet
from reports.run.folder import MEASUREMENTS, Records, RunFolder
from reports.run.integrity import SUMS, changed_files, read_sums, sha256_file
from reports.run.manifest import EARLIER, EARLIER_SUITE, Manifest
from reports.run.outcome import run_outcome
from reports.run.tally import effective, key_of
from reports.run.targets import MACHINE_FACTS


@dataclass(frozen=True)
class Source:
    """A run folder that came to its end and has not changed since.

    Attributes:
        sums: Hash of each file, by its path.
        distributions: What its evidence says of records' samples.
    """

    path: Path
    manifest: Manifest
    records: tuple[Measurement, ...]
    sums: dict[str, str]
    sums_sha256: str
    instruments: tuple[Instrument, ...] | None
    requirement_sets: tuple[RequirementSet, ...]
    distributions: Distributions

    @property
    def run_id(self) -> str:
        """Return the id of the run."""
        return self.manifest.run_id

    @property
    def simulated(self) -> bool:
        """Say whether the run says of itself that its bench is simulated."""
        return self.manifest.simulated is True

    @property
    def earlier_runs(self) -> list[str]:
        """Return the ids of earlier runs that this one repeats, as its manifest lists them."""
        listed = [each.reason for each in self.manifest.attempts if each.suite == EARLIER_SUITE]
        return [text.removeprefix(EARLIER) for text in listed if text.startswith(EARLIER)]

    @property
    def bad_checks(self) -> list[str]:
        """Return the bench's checks of itself that did not pass, in words."""
        checks = effective(record for record in self.records if record.quantity in INSTRUMENT_CHECKS)
        return [
            f"check {record.requirement} of the bench: {record.outcome}: {record.reason}".removesuffix(": ")
            for record in checks
            if record.outcome != "pass"
        ]

    @property
    def facts(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the name of each target that was read back, with its facts."""
        found: dict[str, object] = self.manifest.target
        tables = [(name, cast("dict[str, Any]", f)) for name, f in found.items() if isinstance(f, dict)]
        return [(name, facts) for name, facts in tables if MACHINE_FACTS & facts.keys()]

    def targets(self) -> list[tuple[str, str]]:
        """Return bench and name of each target that the run has facts or records of."""
        named = [(record.subject.bench, record.subject.target) for record in self.records]
        named += [(self.manifest.bench, name) for name, _facts in self.facts]
        return list(dict.fromkeys(named))

    def candidates(
        self,
        bench: str,
        target: str,
        asked: Mapping[str, Requirement],
        kept: Mapping[str, Requirement],
    ) -> list[Candidate]:
        """Return the records of one target as attempts.

        Args:
            bench: Its bench.
            target: Its name.
            asked: The requirements, by their ids.
            kept: The same as this run has kept them.
        """
        bad_checks = self.bad_checks
        numbers: Counter[tuple[object, ...]] = Counter()
        found: list[Candidate] = []
        for record in self.records:
            if (record.subject.bench, record.subject.target) != (bench, target):
                continue
            numbers[key_of(record)] += 1
            doubts = [] if record.quantity in INSTRUMENT_CHECKS else list(bad_checks)
            doubts += doubts_by(self.instruments, record)
            doubts += [
                f"{each.path} is not what it was judged from"
                for each in record.evidence
                if self.sums.get(each.path) != each.sha256
            ]
            name = record.requirement
            other = requirement_doubt(record, asked.get(name), kept.get(name))
            doubts += [other] if other else []
            simulated = record.simulated or self.simulated
            found.append(Candidate(self.run_id, numbers[key_of(record)], record, simulated, tuple(doubts)))
        return found


def read_source(path: Path) -> Source:
    """Read a run folder.

    Raises:
        DossierError: The run did not come to its end, or bytes are not those that were finalised.
        RunFolderError: The folder is no run folder, or a file of it cannot be read.
    """
    run = RunFolder.open(path)
    if run.manifest.end_utc is None:
        raise DossierError(f"{path}: the run did not come to its end: no dossier", INTERRUPTED)
    if not run.finalised:
        raise DossierError(f"{path}: {SUMS} is missing: the run was not finalised: no dossier", INTERRUPTED)
    changed = changed_files(run.path)
    if changed:
        more = f" ({len(changed)} files in all)" if len(changed) > 1 else ""
        raise DossierError(f"{path}: {changed[0]}{more} since the run was finalised: no dossier", CHANGED)
    records = run.records()
    if records.torn is not None:
        raise DossierError(f"{path}: the last line of {MEASUREMENTS} is torn: no dossier", INTERRUPTED)
    if problems := list(rejudge(run.path).contradicted):
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise DossierError(
            f"{path}: judged again, it is not the same: {problems[0]}{more}: no dossier", CHANGED
        )
    return Source(
        path=run.path,
        manifest=run.manifest,
        records=records.measurements,
        sums=read_sums(run.path),
        sums_sha256=sha256_file(run.path / SUMS),
        instruments=instruments_of(run.manifest),
        requirement_sets=tuple(sets_of_run(run.path, run.run_id)),
        distributions=Distributions(run.path),
    )


def read_sources(paths: Iterable[Path]) -> list[Source]:
    """Read run folders and return them by the time of their start; raises as `read_source` does."""
    found = sorted(
        (read_source(path) for path in paths), key=lambda each: (each.manifest.start_utc, each.run_id)
    )
    if not found:
        raise DossierError("no run: name at least one run folder")
    for one, other in pairwise(found):
        if one.run_id == other.run_id:
            raise DossierError(f"{one.path} and {other.path} are the same run {one.run_id}: name it once")
    return found


def distribution_in(sources: Iterable[Source], attempt: Attempt) -> Distribution | None:
    """Return what the evidence of an attempt says of its samples, from the run that it is of."""
    return next(
        (each.distributions.of(attempt.record) for each in sources if each.run_id == attempt.run_id), None
    )


def read_backs(sources: Iterable[Source], bench: str, target: str) -> list[ReadBack]:
    """Return the facts of a target in each run that has them."""
    return [
        ReadBack(source.run_id, facts)
        for source in sources
        for name, facts in source.facts
        if (source.manifest.bench, name) == (bench, target)
    ]


def broken_runs(sources: Sequence[Source]) -> list[str]:
    """Return what is wrong with runs themselves, apart from their values, in words.

    A run that a later one of the dossier repeats counts by that one.
    """
    repeated = {earlier for source in sources for earlier in source.earlier_runs}
    return [
        f"run {source.run_id}: {reason}"
        for source in sources
        if source.run_id not in repeated
        for reason in run_outcome(source.manifest, Records(source.records, None)).reasons
    ]


def absent_runs(sources: Sequence[Source]) -> dict[str, str]:
    """Return the ids of earlier runs that no folder was named of, each with the run that repeated it."""
    present = {source.run_id for source in sources}
    return {
        earlier: source.run_id
        for source in sources
        for earlier in source.earlier_runs
        if earlier not in present
    }
