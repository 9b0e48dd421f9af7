# SPDX-License-Identifier: Apache-2.0
"""How a run came out: one answer, from its manifest, its records and the hashes of its evidence.

Whoever says how a run came out asks here: the exit codes of `robot` and of `python -m resources.qualify`,
pages and matrix, `show`, the store and all that is drawn from it, the xUnit file. In this order:

1. **fail**: a value that counts fails, or a test failed with FAIL: or a plain assertion;
2. **error**: the bench, its input or this software is at fault: a test failed so, the run has noted a problem
   of its own, or evidence is not what the values were judged from;
3. **inconclusive**: a value, or a check of the bench by itself, has no verdict or does not pass; the run did
   not come to its end, or its last record is torn;
4. **unset**: a value has no sample, or there is none at all: nothing was shown;
5. **pass** otherwise. Of several targets each has to pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from reports.quantities import INSTRUMENT_CHECKS
from reports.record.measurement import Measurement, Outcome
from reports.run.asked import AskedSuite, Standing, State, count_states, standings
from reports.run.asked_before import asked_in
from reports.run.failed_tests import FailedTest, beyond_records, in_words
from reports.run.folder import MEASUREMENTS, Records, RunFolder
from reports.run.manifest import Manifest, count_outcomes
from reports.run.raw_data import hash_rows
from reports.run.tally import effective, overall, worst_outcome
from reports.run.targets import targets_of

PASS, FAIL, BAD_INPUT, NO_CAPABILITY, NO_VERDICT, BENCH_FAULT = range(6)
"""Exit codes of a qualification (docs/exit-codes.md)."""
NEXT_STEPS, GLOSSARY = "docs/my-run-did-not-pass.md", "docs/glossary.md"
"""Where a reader of a run that did not pass finds the next step, and the words of pages and messages."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run came out, or one of its targets.

    Attributes:
        exit_code: Of a qualification that came out so.
        counts: Values of targets that count, by outcome.
        judged: Those values.
        checks: Values by which the bench checked itself.
        requirements: What became of each requirement by its id; of several targets empty: each has its own.
        failed: Tests that failed and say more than their records do.
        problems: What is wrong with the run itself, in words; empty: nothing.
        targets: The same of each of several targets, by its name; empty: the run has one at most.
    """

    outcome: Outcome
    exit_code: int
    counts: dict[str, int]
    judged: tuple[Measurement, ...]
    checks: tuple[Measurement, ...]
    requirements: dict[str, Standing]
    failed: tuple[FailedTest, ...]
    problems: tuple[str, ...]
    targets: dict[str, RunOutcome]

    @property
    def states(self) -> dict[State, int]:
        """Return how many requirements have each state, over all targets; states of none are left out."""
        return count_states([self.requirements, *(each.requirements for each in self.targets.values())])

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why it is no pass, apart from the values, in words."""
        return (*self.problems, *in_words(self.failed))


def run_outcome(
    manifest: Manifest,
    found: Records,
    changed: Collection[str] = (),
    targets: Sequence[str] = (),
    asked: Sequence[AskedSuite] = (),
) -> RunOutcome:
    """Return how a run came out; a pure function.

    Args:
        manifest: Of the run.
        found: All its records.
        changed: Evidence that is missing, or not what its records were judged from; paths in the run.
        targets: All targets of the run.
        asked: What its suites ask of them.
    """
    failed = manifest.failed_tests or ()
    if len(targets) <= 1:
        whole = _scope(manifest, found, found.measurements, failed, changed)
        return replace(whole, requirements=standings(asked, "", whole.judged))
    each = {
        name: _scope(
            manifest,
            found,
            [record for record in found.measurements if record.subject.target == name],
            [test for test in failed if test.target in ("", name)],
            changed,
        )
        for name in targets
    }
    for name, scope in each.items():
        each[name] = replace(scope, requirements=standings(asked, name, scope.judged))
    return _scope(manifest, found, found.measurements, failed, changed, each)


def outcome_of(run: RunFolder) -> RunOutcome:
    """Return how the run of a folder came out, its evidence hashed anew.

    Raises:
        RunFolderError: A whole line of its measurements is no record, or a file cannot be read.
    """
    found = run.records()
    changed = [row.path for row in hash_rows(run.path, found.measurements, {}) if row.changed]
    targets = targets_of(run.path, run.manifest, found.measurements)
    return run_outcome(run.manifest, found, changed, targets, asked_in(run.path, run.manifest))


def _scope(
    manifest: Manifest,
    found: Records,
    records: Sequence[Measurement],
    failed: Iterable[FailedTest],
    changed: Collection[str],
    targets: dict[str, RunOutcome] | None = None,
) -> RunOutcome:
    """Return how a run, or a target of it, came out by these of its records and failed tests."""
    counting = effective(records)
    left = beyond_records(failed, counting)
    own = {evidence.path for record in records for evidence in record.evidence}
    wrong = [f"{path} is not what its measurements were judged from." for path in changed if path in own]
    ends: list[str] = []
    if manifest.end_utc is None:
        ends.append("The run did not come to its end; this is what was measured until then.")
    if found.torn is not None:
        ends.append(f"The last line of {MEASUREMENTS} is torn and not counted.")
    outcomes: set[Outcome] = {overall(counting), *(test.outcome for test in left)}
    outcomes |= {each.outcome for each in (targets or {}).values()}
    if manifest.problems or wrong:
        outcomes.add("error")
    if ends:
        outcomes.add("inconclusive")
    outcome = worst_outcome(outcomes)
    return RunOutcome(
        outcome=outcome,
        exit_code=_exit_code(outcome, manifest, left, nothing_judged=not counting),
        counts=count_outcomes(records),
        judged=tuple(each for each in counting if each.quantity not in INSTRUMENT_CHECKS),
        checks=tuple(each for each in counting if each.quantity in INSTRUMENT_CHECKS),
        requirements={},
        failed=left,
        problems=(*manifest.problems, *ends, *wrong),
        targets=targets or {},
    )


def _exit_code(
    outcome: Outcome, manifest: Manifest, left: Iterable[FailedTest], *, nothing_judged: bool
) -> int:
    tests = manifest.tests
    if outcome == "pass":
        return PASS
    if outcome == "fail":
        return FAIL
    if any(test.is_bad_input for test in left):
        return BAD_INPUT
    if outcome == "error":
        return BENCH_FAULT
    if nothing_judged and manifest.end_utc is not None and not tests.passed and not tests.failed:
        return NO_CAPABILITY if tests.skipped else BAD_INPUT
    return NO_VERDICT
