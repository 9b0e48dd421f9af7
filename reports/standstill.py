# SPDX-License-Identifier: Apache-2.0
"""Whether a run of a simulated bench lacks a verdict for one reason alone: the machine stood still.

A build server shares its machine. When that machine stands still for longer than a budget, nothing that
runs on it can meet the budget: the run has no verdict on the target, and none on the software either. This
module tells such a run from one that has no verdict for a reason that a developer has to look into. It never
applies to real hardware, where a bench that stands still is to be mended.
"""

from __future__ import annotations

from pathlib import Path

from reports.answers import WitnessResult
from reports.page_model import gather
from reports.record import Measurement
from reports.stream_groups import STREAM_QUANTITY, Instrument
from reports.sync_offset import STOOD_STILL

MIN_STALL_SHARE = 0.5
"""At least so many of a stream's misses lie in standstills. The others are no fail: it would stand."""
MIN_PASS_SHARE = 0.5
"""At least so many of the streams must have passed, unless the whole run was not quiet."""


def objections(run: Path) -> list[str]:
    """Return why the lack of a verdict cannot be put down to the machine's standstill; empty: it can.

    Args:
        run: A finalised run folder.

    Raises:
        RunFolderError: The folder is none, or a whole line of its measurements is no record.
    """
    report = gather(run)
    found = [*report.problems]
    if not report.simulated:
        found.append("the bench is real: what makes it stand still is to be mended")
    undecided = sum(record.outcome != "pass" for record in (*report.records, *report.checks))
    if report.manifest.tests.failed > undecided:
        found.append(f"{report.manifest.tests.failed} tests failed, but only {undecided} values did not pass")
    if not report.groups:
        found.append("no latency was measured")
    found += [
        f"{record.requirement}: {record.outcome}: {record.reason}"
        for record in report.records
        if record.outcome not in ("pass", "inconclusive")
    ]
    found += [
        f"{record.requirement}: {record.reason}" for record in report.checks if record.outcome != "pass"
    ]
    found += [
        f"{record.requirement}: {record.reason}"
        for record in report.records
        if record.quantity != STREAM_QUANTITY
        and record.outcome == "inconclusive"
        and STOOD_STILL not in record.reason
    ]
    for group in report.groups:
        for instrument in group.instruments:
            found += _of_replay(instrument)
        passed = sum(row.record.outcome == "pass" for row in group.rows)
        quiet = any(not instrument.evidence.replay().not_quiet() for instrument in group.instruments)
        if quiet and passed < MIN_PASS_SHARE * len(group.rows):
            found.append(f"{group.title}: only {passed} of {len(group.rows)} streams passed")
    return found


def _of_replay(instrument: Instrument) -> list[str]:
    if instrument.witness is None:
        return [f"{instrument.attempt}: no stall witness"]
    replay = instrument.evidence.replay()
    not_quiet = replay.not_quiet()
    found = [f"{instrument.attempt}: {cause}" for cause in replay.causes() if cause not in not_quiet]
    if not_quiet:
        return found
    for row in instrument.rows:
        misses = row.stream.misses if row.stream else 0
        in_stall = instrument.misses_in_stall.get(row.stream.id, 0) if row.stream else 0
        if row.record.outcome != "inconclusive" or _is_in_guard_band(row.record, instrument.witness):
            continue
        if not misses or in_stall < MIN_STALL_SHARE * misses:
            found.append(f"{row.record.requirement}: {row.record.reason}")
    return found


def _is_in_guard_band(record: Measurement, witness: WitnessResult) -> bool:
    """Say whether a value is no miss but within U of its limit, on a bench that stood still at times."""
    upper, value = record.limit.upper, record.value
    if upper is None or value is None or value > upper or not witness.windows:
        return False
    return value + record.uncertainty.expanded > upper
