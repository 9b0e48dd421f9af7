# SPDX-License-Identifier: Apache-2.0
"""What did not go as planned: problems, repeated attempts, tests left out, things that were not recorded."""

from __future__ import annotations

from collections.abc import Sequence

from reports.dossier.environment import configuration_differences
from reports.dossier.model import Deviation, Run, Target
from reports.dossier.published import deviates, published_sets
from reports.dossier.source import Source, read_backs
from reports.run.provenance import OWN_NAME

FULL_PROFILES = ("acceptance", "soak")
"""Profiles that take the samples of an acceptance (docs/latency.md)."""
LIMIT = "limit"
"""Of a requirement that is not as it is published."""


def deviations_of(
    targets: Sequence[Target], runs: Sequence[Run], sources: Sequence[Source]
) -> tuple[Deviation, ...]:
    """Return all deviations: of each run in their order, then of the targets."""
    found: list[Deviation] = []
    if not published_sets():
        found.append(Deviation("", LIMIT, "no published limits are here: none was held against them"))
    for run, source in zip(runs, sources, strict=True):
        found += _of_run(run, source)
    for target in targets:
        found += _of_target(target, sources)
    return tuple(found)


def _of_run(run: Run, source: Source) -> list[Deviation]:
    manifest = run.manifest
    found = [("problem", problem) for problem in manifest.problems]
    found += [
        ("attempt", f"{each.suite}, attempt {each.number}: {each.outcome}: {each.reason}".removesuffix(": "))
        for each in manifest.attempts
    ]
    found += [("bench check", text) for text in source.bad_checks]
    if manifest.commit is None:
        files = manifest.tools.get(OWN_NAME)
        known = f"; version and files: {files}" if files else ""
        found.append(("suites", f"commit of the suites: not recorded{known}"))
    elif manifest.commit.endswith("-dirty"):
        found.append(("suites", f"files of the suites differed from their commit: {manifest.commit}"))
    if manifest.simulated is not False:
        found.append(
            ("bench", "the bench is simulated" if manifest.simulated else "real or simulated: not recorded")
        )
    if manifest.profile not in FULL_PROFILES:
        found.append(("profile", f"{manifest.profile}: fewer samples than {FULL_PROFILES[0]} takes"))
    found += _of_instruments(run)
    found += [
        ("test skipped", f"{test.name}: {test.value or 'no reason given'}") for test in run.tests_skipped
    ]
    found += [("test failed", f"{test.name}: {test.value or 'no message'}") for test in run.tests_failed]
    return [Deviation(manifest.run_id, kind, text) for kind, text in found]


def _of_instruments(run: Run) -> list[tuple[str, str]]:
    if run.instruments is None:
        return [("instrument", "instruments and their calibration: not recorded")]
    found: list[tuple[str, str]] = []
    for each in run.instruments:
        if each.remark:
            found.append(("instrument", f"{each.name}: {each.remark}"))
        elif each.calibration is None:
            found.append(("instrument", f"{each.name}: calibration not recorded"))
        elif each.calibration.due is None:
            found.append(("instrument", f"{each.name}: no date at which its calibration is due"))
    return found


def _of_target(target: Target, sources: Sequence[Source]) -> list[Deviation]:
    where = f"{target.name} on {target.bench}"
    found: list[Deviation] = []
    backs = read_backs(sources, target.bench, target.name)
    if not backs:
        found.append(Deviation("", "target", f"{where}: what it is was not recorded"))
    elif len(target.configurations) > 1:
        found += [
            Deviation("", "configuration", f"{where}: {text}") for text in configuration_differences(backs)
        ]
    for each in target.provisioning:
        found += [
            Deviation(each.run_id, "provisioning", f"{where}: {s.item}: {s.status}: {s.note or s.found}")
            for s in each.settings
            if s.status != "ok"
        ]
    for row in target.requirements:
        if deviates(row.published):
            found.append(Deviation("", LIMIT, f"{where}: {row.id}: {row.text}; {row.published}"))
        if not row.file:
            found.append(Deviation("", "requirement", f"{where}: {row.id} stands in no requirements file"))
        for result in row.results:
            thing = ", ".join(word for word in (result.subject, result.conditions) if word)
            found += [
                Deviation(
                    attempt.run_id,
                    "attempt",
                    f"{row.id} ({thing}): attempt {attempt.number}: {attempt.role}: {attempt.why}",
                )
                for attempt in result.attempts
                if attempt.role in ("not valid", "waived") and attempt.why != "simulated"
            ]
            if result.contradicted:
                found.append(
                    Deviation("", "attempt", f"{where}: {row.id} ({thing}): a later attempt did not pass")
                )
    return found
