# SPDX-License-Identifier: Apache-2.0
"""The answers of a clock's trial, held against each other, its facts and its nodes: docs/clock-sync.md.

What an answer always has and in which words, docs/native-tools.md says; answers of versions before 0.2.2 are
not looked at here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import DAMAGE
from reports.rejudge.servo import servo_discrepancies
from reports.rejudge.summary import summary_discrepancies
from reports.rejudge.trial import FILTERED, TRIAL, facts_of, is_doubtful, series_discrepancies
from reports.rejudge.two_way import SERVER_FILE, TARGET_FILE
from reports.rejudge.version import WITH_NAMES, parsed

FOLDER = "clock_sync"
SEQUENTIAL = "sequential.ndjson"
TAI_UTC, TAI_UTC_SCHEMA = "tai-utc.json", "benchwright.tai_utc/1"
NEVER_TOLD_S = 37
"""What the tools use where a kernel says 0."""
COMPARE, OFFSET = "bw-clock compare", "bw-traffic offset"
KEYS = {
    "complete", "valid", "invalid_reasons", "device", "reference", "read", "filter_ns", "phc_read",
    "pause_max_ns", "step_threshold_ns", "gap_ns", "iterations", "discarded", "elapsed_ns", "start_tai_ns",
    "start_monotonic_ns", "offset", "window", "series", "steps", "steps_dropped", "gaps", "gaps_dropped",
    "reference_bound_ns", "device_bound", "memory", "scheduling",
}  # fmt: skip
FIXED: Mapping[str, Mapping[str, object]] = {
    FILTERED: {"read": "filtered", "filter_ns": 20_000, "step_threshold_ns": 100_000},
    SEQUENTIAL: {"read": "sequential", "filter_ns": None, "step_threshold_ns": 100_000},
}
LISTED_MAX = 1024
"""So many steps or gaps are listed; the others are counted as dropped."""
SAME_START_NS = 10_000_000_000
"""Two readings of one machine's clocks agree so far on when its uptime began, whatever paused between."""
APART_NS = 3_600_000_000_000
"""The end of a line lies far less behind its last exchange, however many were lost."""
NEAR_NS = 1_000_000_000
"""Of a line's end: farther back a clock may have wandered from it."""
SLACK = 2
ROWS_MIN = 10
LATER = 1.001
"""By so much a reference may be faster than a machine's own clock."""
TWO_WAY_KEPT_MAX = 4096
PLUG_IN = "plugin:"
PPB = 1_000_000_000

Json = Mapping[str, Any]


def clock_answer_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Say what contradicts each other in the trials that records are of; no record is worked out by it."""
    judged: dict[Path, set[str]] = {}
    for record in records:
        for each in record["evidence"]:
            path = run / each["path"]
            if FOLDER in path.parts and path.name == TRIAL:
                judged.setdefault(path.parent, set()).add(record["outcome"])
    told: list[str] = []
    for folder, outcomes in sorted(judged.items()):
        try:
            found = list(_trial_discrepancies(folder, is_decided=bool(outcomes & {"pass", "fail"})))
        except DAMAGE as error:
            found = [f"{type(error).__name__}: {error}"]
        told += [f"{folder.relative_to(run)}: {each}" for each in found]
    return told, 0


def _trial_discrepancies(folder: Path, *, is_decided: bool) -> Iterator[str]:
    facts, answers = facts_of(folder), _of_now(folder, (FILTERED, SEQUENTIAL))
    exchanges = _of_now(folder, (TARGET_FILE, SERVER_FILE))
    for name, answer in answers.items():
        yield from (f"{name}: {each}" for each in _comparison(answer, facts, FIXED[name]))
        if name == SEQUENTIAL:
            yield from (f"{name}: {each}" for each in _samples(answer))
    for name, answer in exchanges.items():
        yield from (f"{name}: {each}" for each in _exchanges(answer))
    began = [
        each["start_tai_ns"] - each["start_monotonic_ns"] for each in answers.values() if _is_sound(each)
    ]
    if began and max(began) - min(began) > SAME_START_NS:
        yield f"uptime began at {' and '.join(map(str, sorted(began)))}"
    if is_decided:
        used = [
            each["device"]["tai_utc_s"] for each in answers.values() if each["device"]["kind"] != "plugin"
        ]
        used += [each["tai_utc_s"] for each in exchanges.values()]
        yield from _tai_utc(folder, used)
    if FILTERED in answers:
        yield from servo_discrepancies(facts, answers[FILTERED], folder)


def _of_now(folder: Path, names: Sequence[str]) -> dict[str, Json]:
    """Return the results of those files that are there, of this version on, and not only half."""
    found = {name: read_result(folder / name) for name in names}
    return {
        name: answer
        for name, answer in found.items()
        if answer is not None and parsed(str(answer.get("version", "0"))) >= WITH_NAMES
    }


def _is_sound(answer: Json) -> bool:
    return not is_doubtful(answer) and not answer["steps"] and bool(answer["series"]["rows"])


def _comparison(answer: Json, facts: Json, fixed: Mapping[str, object]) -> Iterator[str]:
    if (answer.get("tool"), answer.get("type")) != (COMPARE, "result"):
        yield f"is a {answer.get('type')} of {answer.get('tool')}"
    if missing := KEYS - answer.keys():
        yield f"has no {', '.join(sorted(missing))}"
        return
    for key, value in fixed.items():
        if answer[key] != value:
            yield f"{key} is {answer[key]}, trials of clocks have {value}"
    for role, asked in (("device", facts["device"]), ("reference", facts["timecard"]["clock"])):
        clock = answer[role]
        is_named = clock["name"].startswith(PLUG_IN) if asked.startswith(PLUG_IN) else clock["name"] == asked
        if not is_named or clock["kind"] != asked.partition(":")[0]:
            yield f"its {role} is {clock['name']}, a {clock['kind']}; the trial is of {asked}"
    largest_ns = answer["reference"].get("bound_ns")
    if answer["reference"]["kind"] == "card" and largest_ns != answer["reference_bound_ns"]:
        yield f"reference_bound_ns is {answer['reference_bound_ns']}, the card has {largest_ns}"
    for name in ("steps", "gaps"):
        if answer[f"{name}_dropped"] and len(answer[name]) < LISTED_MAX:
            yield f"{name}_dropped is {answer[f'{name}_dropped']}, {len(answer[name])} {name} are listed"
    if not is_doubtful(answer) and answer["series"]["rows"]:
        yield from _times(answer)


def _samples(answer: Json) -> Iterator[str]:
    """Hold an answer that no record is of against itself."""
    yield from (f"offset: {each}" for each in summary_discrepancies(answer["offset"]))
    n = answer["offset"]["n"]
    if n + answer["discarded"] != answer["iterations"]:
        yield f"{answer['iterations']} iterations, {answer['discarded']} discarded, {n} kept"
    if answer["series"]["rows"]:
        yield from series_discrepancies(answer)


def _times(answer: Json) -> Iterator[str]:
    """Hold the times of an answer against its series; a clock that stepped may be the reference's own."""
    interval_ns = answer["series"]["interval_ns"]
    times = [row[0] for row in answer["series"]["rows"]]
    begin_ns, elapsed_ns = answer["start_tai_ns"], answer["elapsed_ns"]
    end_ns = times[-1] + interval_ns
    for step in answer["steps"]:
        if not begin_ns <= step["time_tai_ns"] <= end_ns:
            yield f"a step at {step['time_tai_ns']}, beyond its series"
    if answer["steps"]:
        return
    if not 0 <= times[-1] - begin_ns <= elapsed_ns * LATER + interval_ns:
        yield f"began at {begin_ns} and took {elapsed_ns} ns, its series ends at {times[-1]}"
    if not answer["discarded"] and times[0] != begin_ns:
        yield f"began at {begin_ns}, its series at {times[0]}, and nothing was discarded"
    steps = {after - before for before, after in pairwise(times)}
    if len(times) > ROWS_MIN and interval_ns not in steps:
        yield f"interval_ns is {interval_ns}, its rows are {min(steps)} ns apart and more"
    for gap in answer["gaps"]:
        from_ns, to_ns = gap["from_tai_ns"], gap["to_tai_ns"]
        if not begin_ns <= from_ns < to_ns - answer["gap_ns"] <= end_ns - answer["gap_ns"]:
            yield f"a gap from {from_ns} to {to_ns}, beyond its series, or too short for one"
        elif any(from_ns < time_ns and time_ns + interval_ns <= to_ns for time_ns in times):
            yield f"a gap from {from_ns} to {to_ns}, in which its series has samples"


def _exchanges(answer: Json) -> Iterator[str]:
    """Hold the line of two-way transfer against its exchanges: each bounds the offset, as the line does."""
    if answer.get("tool") != OFFSET:
        yield f"is of {answer.get('tool')}"
    rows, kept = answer["series"], answer["kept"]
    if kept > answer["exchanges"] or len(rows) > kept or (kept < TWO_WAY_KEPT_MAX and len(rows) != kept):
        yield f"{answer['exchanges']} exchanges, {kept} kept, its series has {len(rows)}"
    if is_doubtful(answer) or answer["clock_steps"] or not rows:
        return
    at_ns = answer["at_local_tai_ns"]
    if abs(at_ns - rows[-1][0]) > APART_NS:
        yield f"at_local_tai_ns is {at_ns}, its series ends at {rows[-1][0]}"
    for time_ns, offset_ns, bound_ns in (row for row in rows if abs(at_ns - row[0]) <= NEAR_NS):
        line_ns = answer["offset_ns"] + (time_ns - at_ns) * answer["rate_ppb"] / PPB
        line_bound_ns = answer["bound_ns"] + abs(at_ns - time_ns) * answer["bound_growth_ppb"] / PPB
        if abs(offset_ns - line_ns) > SLACK * (bound_ns + line_bound_ns):
            yield f"at {time_ns} the offset is {offset_ns}, the line has {line_ns:.0f}"
            return


def _tai_utc(folder: Path, used_s: Sequence[int]) -> Iterator[str]:
    """Hold TAI - UTC of the answers against that of the nodes, from the folder nearest above."""
    file = next((each / TAI_UTC for each in folder.parents if (each / TAI_UTC).exists()), None)
    if file is None or FOLDER not in file.parts:
        return
    document = json.loads(file.read_text("utf-8"))
    if document.get("schema") != TAI_UTC_SCHEMA:
        yield f"{TAI_UTC}: schema is {document.get('schema')!r}"
    of_nodes = {node["kernel_s"] or NEVER_TOLD_S for node in document["nodes"]}
    # Nodes that differ end what is measured next, and what was measured before stands.
    if len(of_nodes) == 1 and not {*used_s} <= of_nodes:
        yield f"TAI - UTC is {sorted({*used_s})} s, {TAI_UTC} has {sorted(of_nodes)} s"
