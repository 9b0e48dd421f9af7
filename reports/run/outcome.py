# SPDX-License-Identifier: Apache-2.0
"""How a run came out: one answer, from its manifest, its records and the hashes of its evidence.

Whoever says how a run came out asks here: the exit codes of `robot` and of `python -m resources.qualify`,
pages and matrix, `show`, the store and all that is drawn from it, the xUnit file. In this order:

1. **fail**: a value that counts fails, or a test failed with FAIL: or a plain assertion;
2. **error**: the bench, its input or this software is at fault: a test failed so, the run has noted a problem
   of its own, or evidence is not what the values were judged from;
3. **inconclusive**: a value, or a check of the bench by itself, has no verdict or does not pass; the run did
   not come to its end, was interrupted or not finalised, or its last record is torn;
4. **unset**: a value has no sample, or there is none at all: nothing was shown;
5. **pass** otherwise. Of several targets each has to pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from reports.quantities import INSTRUMENT_CHECKS
from reports.record.measurement import Measurement, Outcome
from reports.run.failed_tests import FailedTest, beyond_records, in_words
from reports.run.folder import MEASUREMENTS, Records, RunFolder
from reports.run.manifest import Manifest, count_outcomes
from reports.run.raw_data import hash_rows
from reports.run.selected import SelectedSuite, Standing, State, count_states, standings
from reports.run.selected_before import selected_in
from reports.run.tally import effective, overall, worst_outcome
from reports.run.targets import targets_of

PASS, FAIL, BAD_INPUT, NO_CAPABILITY, NO_VERDICT, BENCH_FAULT = range(6)
"""Exit codes of a qualification (docs/exit-codes.md)."""
NEXT_STEPS, GLOSSARY = "docs/my-run-did-not-pass.md", "docs/glossary.md"
"""Where a reader of a run that did not pass finds the next step, and the words of pages and messages."""
MISSED_SHOWN = 10
"""Of values that did not pass, in a terminal and in the xUnit file; `show` and the pages have all."""
NOT_FINALISED = (
    "The run was not finalised: it was ended while its page was written."
    " `python -m reports finish RUN` writes page and sums."
)


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
    def missed(self) -> tuple[str, ...]:
        """Return the values and the bench's checks that did not pass, in words: the first of them."""
        wrong = [each for each in (*self.judged, *self.checks) if each.outcome != "pass"]
        lines = [_missed(each) for each in wrong[:MISSED_SHOWN]]
        further = len(wrong) - len(lines)
        return (*lines, *([f"{further} more did not pass"] if further else []))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why it is no pass, apart from the values, in words."""
        return (*self.problems, *in_words(self.failed))


def run_outcome(
    manifest: Manifest,
    found: Records,
    changed: Collection[str] = (),
    targets: Sequence[str] = (),
    selected: Sequence[SelectedSuite] = (),
    *,
    finalised: bool = True,
) -> RunOutcome:
    """Return how a run came out; a pure function.

    Args:
        manifest: Of the run.
        found: All its records.
        changed: Evidence that is missing, or not what its records were judged from; paths in the run.
        targets: All targets of the run.
        selected: What its suites select of them.
        finalised: Whether the run has its pages and sums, or is about to get them.
    """
    failed = manifest.failed_tests or ()
    ends = _ends(manifest, found, finalised=finalised)
    if len(targets) <= 1:
        whole = _scope(manifest, ends, found.measurements, failed, changed)
        return replace(whole, requirements=standings(selected, "", whole.judged, whole.checks))
    each = {
        name: _scope(
            manifest,
            ends,
            [record for record in found.measurements if record.subject.target == name],
            [test for test in failed if test.target in ("", name)],
            changed,
        )
        for name in targets
    }
    for name, scope in each.items():
        each[name] = replace(scope, requirements=standings(selected, name, scope.judged, scope.checks))
    return _scope(manifest, ends, found.measurements, failed, changed, each)


def outcome_of(run: RunFolder, *, finalising: bool = False) -> RunOutcome:
    """Return how the run of a folder came out, its evidence hashed anew.

    Args:
        run: The folder.
        finalising: The caller finalises it: that its sums are still missing says nothing.

    Raises:
        RunFolderError: A whole line of its measurements is no record, or a file cannot be read.
    """
    found = run.records()
    changed = [row.path for row in hash_rows(run.path, found.measurements, {}) if row.changed]
    targets = targets_of(run.path, run.manifest, found.measurements)
    return run_outcome(
        run.manifest,
        found,
        changed,
        targets,
        selected_in(run.path, run.manifest),
        finalised=finalising or run.finalised,
    )


def _ends(manifest: Manifest, found: Records, *, finalised: bool) -> tuple[str, ...]:
    """Return what is missing at the end of a run, in words."""
    ends: list[str] = []
    if manifest.end_utc is None:
        ends.append("The run did not come to its end; this is what was measured until then.")
    elif not finalised:
        ends.append(NOT_FINALISED)
    if manifest.finished_utc is not None:
        ends.append(
            f"It was finished at {manifest.finished_utc}, after its process had died: it has no seal."
        )
    if found.torn is not None:
        ends.append(f"The last line of {MEASUREMENTS} is torn and not counted.")
    return tuple(ends)


def _scope(
    manifest: Manifest,
    ends: Sequence[str],
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
    if manifest.interrupted is not None and (stopped := [test for test in left if test.is_stopped]):
        left = tuple(test for test in left if not test.is_stopped)
        ends = (*ends, _interrupted(manifest.interrupted, len(stopped)))
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


def _missed(record: Measurement) -> str:
    stream = f"stream {record.subject.stream}" if record.subject.stream else ""
    of = ", ".join(filter(None, (record.subject.target, record.requirement, stream)))
    return f"{record.outcome} {of}: {record.reason}"


def _interrupted(counted: str, tests: int) -> str:
    ended = "1 test was not begun or ended" if tests == 1 else f"{tests} tests were not begun or ended"
    return f"The run was interrupted{f', {counted}' if counted else ''}; {ended}."


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
