# SPDX-License-Identifier: Apache-2.0
"""A whole run judged again: records, manifest, Robot Framework's own file, raw data."""

from __future__ import annotations

import hashlib
import json
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from reports.rejudge.again import Judge, Record, checks, every, kinds
from reports.rejudge.answers import json_lines
from reports.rejudge.arithmetic import discrepancies
from reports.rejudge.each import DAMAGE
from reports.rejudge.facts import fact_discrepancies, read_back
from reports.rejudge.hardware_way import hardware_discrepancies
from reports.rejudge.latency import latency_discrepancies
from reports.rejudge.listed import listed_discrepancies
from reports.rejudge.missing import broke_off, is_mask_on_two_way, missing_discrepancies
from reports.rejudge.outcome import outcome_discrepancies
from reports.rejudge.part_names import with_present_names
from reports.rejudge.requirements import requirement_discrepancies
from reports.rejudge.samples import sample_discrepancies
from reports.rejudge.seal import seal_discrepancies
from reports.rejudge.selected import selected_discrepancies
from reports.rejudge.simulated import simulation_discrepancies
from reports.rejudge.stack_used import stack_discrepancies
from reports.rejudge.times import time_discrepancies
from reports.rejudge.tools import tool_discrepancies
from reports.rejudge.version import version_discrepancies, version_of

OUTCOMES = ("pass", "fail", "inconclusive", "unset", "error")
MESSAGE_MAX = 400
KEYWORDS = ("known-delay check",)
"""What stands in place of a test where a record is made by a suite's setup."""
ALWAYS_REASONED = ("path_shift",)
"""Quantities whose records say in words what was found, whatever the outcome."""
SAME = ("requirement", "quantity", "statistic", "subject", "conditions")
"""What makes two records attempts at the same thing."""


@dataclass(frozen=True)
class RejudgeResult:
    """What came of it.

    Attributes:
        problems: What differs, in words; empty: nothing.
        contradicted: Those by which a record contradicts itself or the raw data that it was judged from.
        worked_out: Records whose value and verdict were worked out from raw data.
        records: All of them; of the others it was looked at whether they are consistent in themselves, with
            their requirement and with the hashes of their evidence.
    """

    problems: tuple[str, ...]
    contradicted: tuple[str, ...]
    worked_out: int
    records: int


def rejudge(run: Path) -> RejudgeResult:
    """Judge a run again; a folder of any version, finished or not."""
    problems: list[str] = []
    contradicted: list[str] = []
    records: list[Record] = []
    worked_out = 0
    for number, line in enumerate(json_lines(run / "measurements.jsonl"), start=1):
        try:
            records.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            problems.append(f"measurements.jsonl:{number}: {error}")
    try:
        manifest: dict[str, Any] = json.loads((run / "run.json").read_text("utf-8"))
        records = [with_present_names(record) for record in records]
        for number, record in enumerate(records, start=1):
            where = f"measurements.jsonl:{number}: {record['requirement']}"
            contradicted += [f"{where}: {discrepancy}" for discrepancy in discrepancies(record)]
            problems += [f"{where}: {discrepancy}" for discrepancy in _identity(run, record, manifest)]
        contradicted += simulation_discrepancies(run, manifest, records)
        problems += seal_discrepancies(run)
        problems += listed_discrepancies(run, manifest)
        problems += requirement_discrepancies(run, records, manifest)
        problems += selected_discrepancies(run, manifest, records)
        problems += fact_discrepancies(run, manifest)
        version = version_of(run, manifest)
        problems += tool_discrepancies(run, manifest, records, version)
        contradicted += hardware_discrepancies(run, manifest, records)
        problems += missing_discrepancies(run, manifest, records)
        problems += time_discrepancies(run, manifest)
        problems += version_discrepancies(manifest, records, version)
        problems += stack_discrepancies(run, manifest, records, version)
        problems += sample_discrepancies(manifest, records, version)
        found, worked_out = latency_discrepancies(
            run, records, confirmed="outcome" in manifest, broke_off=broke_off(manifest)
        )
        contradicted += found
        for judge in _judges():
            found, count = judge(run, records)
            contradicted += found
            worked_out += count
        if not contradicted:
            problems += _left_discrepancies(run, manifest, records, worked_out)
        problems += _manifest_discrepancies(run, manifest, records)
    except DAMAGE as error:
        contradicted.append(f"cannot be judged again: {type(error).__name__}: {error}")
    return RejudgeResult((*contradicted, *problems), tuple(contradicted), worked_out, len(records))


def _judges() -> Iterator[Judge]:
    return (judge for again in every() for judge in again.judges)


def _left_discrepancies(
    run: Path, manifest: Mapping[str, Any], records: Sequence[Record], worked_out: int
) -> Iterator[str]:
    """Say which values were not worked out, though their quantity is judged again; not of the version before.

    Without a file that says how (the times of a known-delay check's sections), a judge can say nothing.
    """
    again = {name for name, kind in kinds().items() if kind.raw and kind.is_judged}
    judged = [each for each in records if each["quantity"] in again]
    if "outcome" not in manifest or worked_out >= len(judged):
        return
    for number, record in enumerate(records, start=1):
        if record["value"] is None or record not in judged or is_mask_on_two_way(run, record):
            continue
        if not any(judge(run, [record])[1] for judge in (*_judges(), latency_discrepancies)):
            yield (
                f"measurements.jsonl:{number}: {record['requirement']}: {record['quantity']}: could not be"
                " worked out again from its evidence"
            )


def _identity(run: Path, record: Record, manifest: Mapping[str, Any]) -> Iterator[str]:
    if bool(record["reason"]) == (record["outcome"] == "pass") and record["quantity"] not in ALWAYS_REASONED:
        yield f"{record['outcome']} with the reason {record['reason']!r}"
    if record["run_id"] != manifest["run_id"]:
        yield f"is of run {record['run_id']}"
    if (
        record["subject"]["bench"] != manifest["bench"]
        or record["conditions"]["profile"] != manifest["profile"]
    ):
        yield f"is of bench {record['subject']['bench']}, profile {record['conditions']['profile']}"
    if manifest["simulated"] is not None and record["simulated"] != manifest["simulated"]:
        yield f"simulated is {record['simulated']}, in the run {manifest['simulated']}"
    named = {part for each in record["evidence"] for part in Path(each["path"]).parts}
    known = read_back(manifest)
    if known and record["subject"]["target"] not in known | named:
        yield f"is of target {record['subject']['target']}, of which the run knows nothing"
    begin, made = _time(manifest["start_utc"]), _time(record["time_utc"])
    if made is None or begin is None or made < begin:
        yield f"was made at {record['time_utc']}, the run began at {manifest['start_utc']}"
    elif manifest["end_utc"] and made > (_time(manifest["end_utc"]) or made):
        yield f"was made at {record['time_utc']}, the run ended at {manifest['end_utc']}"
    for evidence in record["evidence"]:
        path = run / evidence["path"]
        if not path.is_file():
            yield f"{evidence['path']} is missing"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != evidence["sha256"]:
            yield f"{evidence['path']} is not what it was judged from"


def _time(text: str) -> datetime | None:
    """Read an RFC 3339 time in UTC; None where it is none."""
    try:
        return datetime.fromisoformat(text) if text.endswith("Z") else None
    except (ValueError, RecursionError):
        return None


def _manifest_discrepancies(
    run: Path, manifest: Mapping[str, Any], records: Sequence[Record]
) -> Iterator[str]:
    if manifest["end_utc"] is None:
        yield "run.json: the run did not come to its end"
        return
    counts = dict.fromkeys(OUTCOMES, 0) | Counter(
        record["outcome"] for record in _effective(records) if record["quantity"] not in checks()
    )
    with_checks = dict.fromkeys(OUTCOMES, 0) | Counter(record["outcome"] for record in _effective(records))
    # Without an outcome of its own it is of the version before, which counts the bench's checks of itself.
    if manifest["counts"] != (counts if "outcome" in manifest else with_checks):
        yield f"run.json: counts are {manifest['counts']}, the records give {counts}"
    yield from outcome_discrepancies(run, manifest, _effective(records))
    output = run / "output.xml"
    if output.exists():
        yield from _test_discrepancies(output, manifest, records)


def _effective(records: Sequence[Record]) -> list[Record]:
    """Return the last record of each thing that was measured, or its first fail."""
    chosen: dict[str, Record] = {}
    for record in records:
        key = json.dumps([record[name] for name in SAME], sort_keys=True)
        if key not in chosen or chosen[key]["outcome"] != "fail":
            chosen[key] = record
    return list(chosen.values())


def _failed_teardown(suite: ElementTree.Element) -> list[tuple[str, str]]:
    """Return name and message of a suite whose teardown failed: no test of it says so."""
    ended = suite.find("kw[@type='TEARDOWN']/status")
    status = suite.find("status")
    if ended is None or status is None or ended.get("status") != "FAIL":
        return []
    return [(suite.get("name", ""), _one_line(status.text))]


def _one_line(message: str | None) -> str:
    return " ".join((message or "").split())[:MESSAGE_MAX]


def _test_discrepancies(
    output: Path, manifest: Mapping[str, Any], records: Sequence[Record]
) -> Iterator[str]:
    """Hold the manifest's tests, and those that records name, against Robot Framework's own file."""
    names: set[str] = set()
    found: Counter[str] = Counter()
    failed: list[tuple[str, str]] = []
    for _event, item in ElementTree.iterparse(output):  # noqa: S314 - written by our own Robot Framework
        if item.tag == "suite":
            failed += _failed_teardown(item)
        if item.tag != "test":
            continue
        status = item.find("status")
        word = status.get("status", "") if status is not None else ""
        found[word] += 1
        names.add(item.get("name", ""))
        if word == "FAIL" and status is not None:
            failed.append((item.get("name", ""), _one_line(status.text)))
        item.clear()
    said = manifest["tests"]
    for name, word in (("passed", "PASS"), ("failed", "FAIL"), ("skipped", "SKIP")):
        if said[name] != found[word]:
            yield f"run.json: tests.{name} is {said[name]}, output.xml has {found[word]}"
    listed = manifest.get("failed_tests")
    if listed is not None and [(each["name"], each["message"]) for each in listed] != failed:
        yield "run.json: failed_tests are not those of output.xml"
    for test in {record["test"]: None for record in records}:
        if test not in names and test not in KEYWORDS:
            yield f"{test!r}: a record is of it, and output.xml has no such test"
