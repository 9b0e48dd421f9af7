# SPDX-License-Identifier: Apache-2.0
"""What a run no longer has: records without raw data, raw data without a record, tests without either.

Who takes something away and makes all hashes and counts anew leaves traces elsewhere in the folder. Runs of
the version before, and runs in which a measurement broke off, may have raw data that no record names.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from reports.rejudge.again import Record, every, kinds, of_suites
from reports.rejudge.kept import kept_requirements
from reports.rejudge.repeated import needs_no_record
from reports.rejudge.requirements import NO_SUBJECTS

MASK = "mask.csv"
TRIALS = ("trial.json", "edges.json")
TOLD = re.compile(r"(\S+): (pass|fail|inconclusive|unset|error): .+", re.DOTALL)
"""What Robot Framework's file says of each record as it is made: docs/reports.md, `Judged again`."""
DELAY_FOUND = re.compile(r"known delay .+ found with an error of .+")
OF_THE_BENCH = "BENCH-"
"""So begin the names of what the bench asks of itself."""
KNOWN_DELAY = "known_delay_error"
ATTEMPT = re.compile(r"attempt-([0-9]{1,9})")
ANSWER = re.compile(r"(recv|send-.+|witness(-target)?|offset-.+|filtered|sequential|card-.+|edge-serve)")
"""So are the answers named of tools that ran beside a measurement; what each said on stderr lies there."""
WITHIN, EMULATION = "witness-target.ndjson", "emulation.ndjson"
LATER_KEYS = ("left_out", "excluded_miss_probability", "file_sizes_bytes")
"""Of the manifest: no run that came to its end has them without an outcome."""
JUDGED = ("fail", "inconclusive")
"""First words of the message of a test that came to a verdict."""


def missing_discrepancies(run: Path, manifest: Mapping[str, Any], records: Sequence[Record]) -> Iterator[str]:
    """Say what was taken away from a run that came to its end."""
    if manifest["end_utc"] is None:
        return
    yield from _bare_records(records, is_before="outcome" not in manifest)
    yield from _told_discrepancies(run, records)
    if "outcome" not in manifest:
        later = [name for name in LATER_KEYS if name in manifest]
        yield from (f"run.json: outcome is missing, and {name} is there" for name in later)
        return
    if any(manifest["tests"].values()) and not (run / "output.xml").exists():
        yield "output.xml: missing, and run.json counts its tests"
    yield from _attempt_discrepancies(run, manifest)
    if not broke_off(manifest):
        yield from _loose_evidence(run, manifest, records)
        yield from _unmeasured(manifest, records)
        yield from _lone_answers(run)


def _lone_answers(run: Path) -> Iterator[str]:
    """Say of which tools there is either the answer or what it said on stderr, and not both.

    A target's witness that the consumer carries says there what it has to say; its answer is missing where
    the times at which it was overdue are kept.
    """
    names = {path.relative_to(run).as_posix() for path in (run / "evidence").rglob("*.*")}
    for name in sorted(names):
        path = PurePosixPath(name)
        other = path.with_suffix({".ndjson": ".err", ".err": ".ndjson"}.get(path.suffix, path.suffix))
        if name.endswith(f"/{WITHIN}") and path.with_name("recv.err").as_posix() in names:
            continue
        if path.name == EMULATION and '"overdue_tai_ns"' in (run / name).read_text("utf-8"):
            other = path.with_name(WITHIN)
        elif not ANSWER.fullmatch(path.stem):
            continue
        if other.as_posix() not in names:
            yield f"{name}: {other.name} is not beside it"


def _bare_records(records: Sequence[Record], *, is_before: bool) -> Iterator[str]:
    """Say which values have no raw data that they could be worked out from.

    Args:
        records: All of a run.
        is_before: It is of the version before, of which any file of evidence will do.
    """
    for number, record in enumerate(records, start=1):
        known = kinds().get(record["quantity"])
        wanted = known.raw if known else ()
        named = [PurePosixPath(each["path"]) for each in record["evidence"]]
        is_bare = wanted and not any(path.match(name) for path in named for name in wanted)
        if is_bare and record["value"] is not None and not (is_before and named):
            yield (
                f"measurements.jsonl:{number}: {record['requirement']}: {record['quantity']}: its evidence"
                f" has no {' or '.join(wanted)}"
            )


def _told_discrepancies(run: Path, records: Sequence[Record]) -> Iterator[str]:
    """Hold the records against what Robot Framework's file says of each as it was made."""
    output = run / "output.xml"
    if not output.exists():
        return
    told: Counter[tuple[str, str, str]] = Counter()
    delays = 0
    messages: list[str] = []
    for _event, item in ElementTree.iterparse(output):  # noqa: S314 - written by our own Robot Framework
        if item.tag == "msg":
            text = item.text or ""
            messages.append(text)
            delays += bool(DELAY_FOUND.fullmatch(text))
        elif item.tag == "test":
            found = (TOLD.fullmatch(text) for text in messages)
            told.update((item.get("name", ""), each[1], each[2]) for each in found if each)
            item.clear()
        if item.tag in ("test", "suite"):
            messages.clear()
    kept = Counter((each["test"], each["requirement"], each["outcome"]) for each in records)
    known = {*kept_requirements(run), *(each["requirement"] for each in records)}
    for (test, name, outcome), count in told.items():
        is_ours = name in known or name.startswith(OF_THE_BENCH)
        if is_ours and kept[test, name, outcome] < count:
            yield (
                f"{test!r}: output.xml tells of {count} records of {name} with {outcome},"
                f" there are {kept[test, name, outcome]}"
            )
    checks = sum(record["quantity"] == KNOWN_DELAY for record in records)
    if checks < delays:
        yield f"known-delay check: output.xml tells of {delays}, the records have {checks}"


def _attempt_discrepancies(run: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say where replays are missing: of each target they are numbered from 1; each but the last is listed."""
    numbers: dict[Path, list[int]] = {}
    for folder in (run / "evidence").rglob("attempt-*"):
        if folder.is_dir() and (match := ATTEMPT.fullmatch(folder.name)):
            numbers.setdefault(folder.parent, []).append(int(match[1]))
    for place, found in sorted(numbers.items()):
        where = place.relative_to(run).as_posix()
        if sorted(found) != list(range(1, len(found) + 1)):
            yield f"{where}: has attempts {sorted(found)}, and not each from 1 on"
    listed = Counter(attempt["suite"] for attempt in manifest["attempts"])
    replayed = {
        place.relative_to(run / "evidence").as_posix(): len(found) for place, found in numbers.items()
    }
    asked = manifest.get("asked") or ()
    ends = {(suite["target"],) for suite in asked}
    ends |= {(suite["target"], suite["stack"]) for suite in asked if "stack" in suite}
    suites = [name for name in {**listed, **replayed} if PurePosixPath(name).parts[1:] in ends]
    for suite in suites:
        count = replayed.get(suite, 0)
        if listed[suite] not in (count - 1, count):
            yield f"run.json: attempts: {listed[suite]} of {suite}, its evidence has {count}"


def broke_off(manifest: Mapping[str, Any]) -> bool:
    """Say whether a measurement may have left raw data and no record; of the version before: no."""
    messages = [each["message"] for each in manifest.get("failed_tests") or ()]
    return "outcome" in manifest and (
        manifest["end_utc"] is None
        or manifest["outcome"] in ("unset", "error")
        or bool(manifest.get("problems"))
        or any(message.partition(":")[0].lower() not in JUDGED for message in messages)
    )


def _loose_evidence(run: Path, manifest: Mapping[str, Any], records: Sequence[Record]) -> Iterator[str]:
    """Say which raw data of a measurement no record names, though a requirement asks for a verdict."""
    named = {each["path"] for record in records for each in record["evidence"]}
    folders = {PurePosixPath(path).parent.as_posix() for path in named}
    judged = _judged_names(run, manifest, records)
    loose = {name for again in every() for name in again.loose}
    for path in sorted((run / "evidence").rglob("*")):
        name = path.relative_to(run).as_posix()
        parts = path.relative_to(run / "evidence").parts
        folder = PurePosixPath(name).parent
        is_judged = len(parts) > 3 and folder.name in judged(parts[1], folder.parent.as_posix())
        is_replay = len(parts) in (4, 5) and ATTEMPT.fullmatch(folder.name) is not None
        if path.name == "recv.ndjson" and is_replay and name not in named:
            if not needs_no_record(path.parent, run, records):
                yield f"{name}: a replay that no record names"
        elif path.name == "known_delay.json" and is_replay and name not in named:
            yield f"{name}: a known-delay check that no record names"
        elif path.name == MASK and is_judged and name not in named:
            yield f"{name}: held against a mask, and no record names it"
        elif path.name in loose and len(parts) in (3, 4) and folder.as_posix() not in folders:
            yield f"{name}: raw data that no record names"
        elif path.name in TRIALS and is_judged and folder.as_posix() not in folders:
            yield f"{name}: a trial that no record names"


def _judged_names(
    run: Path, manifest: Mapping[str, Any], records: Sequence[Record]
) -> Callable[[str, str], Collection[str]]:
    """Return what tells the clocks, methods and others that are judged: so are trials named.

    It takes a target and the folder in which its trials are. A suite may measure a clock beside its own which
    another one judges; the records say which suites have trials in a folder. Where none is left, each may.
    """
    kept = kept_requirements(run)
    suites: list[tuple[str, set[str], set[str]]] = []
    for suite in manifest.get("asked") or ():
        ids = {name for file in suite.get("asks") or () for name in file["requirements"]}
        items = [item for name in ids for item in kept.get(name, [])]
        names = {value for item in items for key, value in item.items() if _is_subject(key, value)}
        suites.append((suite["target"], ids, names))
    in_folder: dict[str, set[str]] = {}
    for record in records:
        for each in record["evidence"]:
            folder = PurePosixPath(each["path"]).parent.parent.as_posix()
            in_folder.setdefault(folder, set()).add(record["requirement"])

    def names_in(target: str, folder: str) -> Collection[str]:
        there = in_folder.get(folder, set())
        own = [(ids, names) for of, ids, names in suites if of == target]
        here = [names for ids, names in own if ids & there] or [names for _, names in own]
        return {name for names in here for name in names}

    return names_in


def _is_subject(key: str, value: object) -> bool:
    return isinstance(value, str) and bool(value) and key not in NO_SUBJECTS


def is_mask_on_two_way(run: Path, record: Record) -> bool:
    """Say whether a record is of a mask on two-way transfer, of which the second judge knows nothing."""
    paths = [run / each["path"] for each in record["evidence"]]
    folders = [path.parent for path in paths if path.name == MASK]
    return any(
        (folder / "two-way-target.ndjson").exists() and not (folder / "filtered.ndjson").exists()
        for folder in folders
    )


def _unmeasured(manifest: Mapping[str, Any], records: Sequence[Record]) -> Iterator[str]:
    """Say what is asked and neither measured nor skipped in a run that came to `pass`."""
    if manifest["outcome"] != "pass":
        return
    measured = {
        (record["subject"]["target"], stack, record["requirement"])
        for record in records
        if record["quantity"] not in of_suites()
        for stack in (record["subject"].get("stack"), None)
    }
    for suite in manifest.get("asked") or ():
        skipped = {name for test in suite["skipped"] for name in test["requirements"]}
        for name in sorted({name for file in suite.get("asks") or () for name in file["requirements"]}):
            of, stack = suite["target"], suite.get("stack")
            if of and name not in skipped and (of, stack, name) not in measured:
                words = f" with stack {stack}" if stack else ""
                yield f"run.json: asked: {name} of {of}{words} has no record, and the run passed"
