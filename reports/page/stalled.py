# SPDX-License-Identifier: Apache-2.0
"""Whether a run of a simulated bench lacks a verdict for one reason alone: time that its machine took.

A build server shares its machine. Where that takes more time from messages than their budgets have, nothing
that runs on it can meet them: the run has no verdict on the target, and none on the software either. This
module tells such a run from one that has no verdict for a reason that a developer has to look into: each
value that did not pass must be explained in amounts, in every replay that did not show it within its limit.
It never applies to real hardware, where a bench that stalls is to be fixed, nor to a run that has shown
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from reports.clock_sync.verdict import BENCH_STALLED
from reports.daq_replay.capability import STREAM_QUANTITY
from reports.daq_replay.record_replays import RecordReplays
from reports.daq_replay.section import LatencySection
from reports.daq_replay.stream_groups import requirement_of
from reports.daq_replay.verdict import Standing, judge_latency
from reports.errors import RecordError
from reports.page.model import gather
from reports.record.measurement import Measurement
from reports.run.folder import RunFolder
from reports.run.tally import key_of

MIN_PASS_SHARE = 0.5
"""At least so many of the streams must have passed: else the run has shown nothing."""


def discrepancies(run: Path) -> list[str]:
    """Return why the lack of a verdict cannot be put down to the machine; empty: it can.

    Args:
        run: A finalised run folder.

    Raises:
        RunFolderError: The folder is none, or a whole line of its measurements is no record.
    """
    report = gather(run)
    everything = RunFolder.open(run).records().measurements
    found = [*report.problems]
    if not report.simulated:
        found.append("the bench is real: what makes it stall is to be fixed")
    undecided = sum(record.outcome != "pass" for record in (*report.records, *report.checks))
    if report.manifest.tests.failed > undecided:
        found.append(f"{report.manifest.tests.failed} tests failed, but only {undecided} values did not pass")
    every = [shown for _section, targets in report.sections for shown in targets]
    groups = [group for each in every if isinstance(each, LatencySection) for group in each.groups]
    if not groups:
        found.append("no latency was measured")
    for group in groups:
        passed = sum(row.record.outcome == "pass" for row in group.rows)
        if passed < MIN_PASS_SHARE * len(group.rows):
            found.append(f"{group.title}: only {passed} of {len(group.rows)} streams passed")
    replays = RecordReplays(run)
    for record in (*report.records, *report.checks):
        if record.outcome != "pass":
            found += _unexplained(replays, record, everything)
    return found


def _unexplained(
    replays: RecordReplays, record: Measurement, everything: Sequence[Measurement]
) -> Iterator[str]:
    """Say what of a value that did not pass the machine's time does not explain."""
    if record.outcome != "inconclusive":
        yield f"{record.requirement}: {record.outcome}: {record.reason}"
    elif record.quantity != STREAM_QUANTITY:
        if BENCH_STALLED not in record.reason:
            yield f"{record.requirement}: {record.reason}"
    else:
        attempts = [attempt for attempt in everything if key_of(attempt) == key_of(record)]
        standings = [_standing(replays, attempt) for attempt in attempts]
        for attempt, standing in zip(attempts, standings, strict=True):
            if standing not in ("explained", "clean", "short") or "explained" not in standings:
                yield f"{attempt.requirement}: {attempt.reason}"


def _standing(replays: RecordReplays, record: Measurement) -> Standing:
    """Judge a stream again by the evidence of one replay."""
    evidence = replays.of(record)
    if evidence is None or record.subject.stream is None:
        return "undecided"
    try:
        judged = judge_latency(
            int(record.subject.stream), requirement_of(record, evidence), evidence.replay()
        )
    except (RecordError, ValueError):
        return "undecided"
    return judged.standing
