# SPDX-License-Identifier: Apache-2.0
"""Files of evidence that have to agree with themselves: sums with what they sum, schemas, versions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from reports.rejudge.again import Record, every
from reports.rejudge.answers import json_lines
from reports.rejudge.arithmetic import TOLERANCE
from reports.rejudge.summary import summary_discrepancies
from reports.rejudge.version import WITH_NAMES, WITH_UNCLAIMED, Version, parsed

Json = Mapping[str, Any]

WITNESS_SAYS = {"windows", "windows_dropped", "cpus", "stalled_ns", "stalled_fraction", "elapsed_ns"}
"""What a witness says since it has sums; one of the version before has fewer."""
CLOCKS_APART_NS = 1_000
"""Between stamps of a wake-up by two clocks, one after the other."""
SUMMARY_SAYS = {"n", "buckets", "overflow", "min_ns", "max_ns", "mean_ns", "stddev_ns", "p50_ns", "p999_ns"}


def tool_discrepancies(
    run: Path, manifest: Json, records: Sequence[Record], version: Version
) -> Iterator[str]:
    """Look through the documents, the tools' answers and the misses that records were judged from.

    Args:
        run: Its folder.
        manifest: Its `run.json`.
        records: All of it.
        version: That wrote it.
    """
    always = version >= WITH_NAMES
    schemas = {name: schema for again in every() for name, schema in again.schemas.items()}
    targets = {each["path"]: record["subject"]["target"] for record in records for each in record["evidence"]}
    for path, target in targets.items():
        name, file = Path(path).name, run / path
        if not file.is_file():
            continue
        if name.endswith(".ndjson"):
            for answer in _answers(file):
                is_miss = name == "misses.ndjson"
                told = (
                    _miss_discrepancies(answer)
                    if is_miss
                    else _answer_discrepancies(answer, manifest, always)
                )
                yield from (f"{path}: {said}" for said in told)
        elif name in schemas:
            document = json.loads(file.read_text("utf-8"))
            if document.get("schema", None if always else schemas[name]) != schemas[name]:
                yield f"{path}: schema is {document.get('schema')}"
            if name == "role.json" and document["target"] != target:
                yield f"{path}: of target {document['target']}, its records are of {target}"


def _answers(file: Path) -> Iterator[Json]:
    for line in json_lines(file):
        if line.startswith("{"):
            yield json.loads(line)


def _answer_discrepancies(answer: Json, manifest: Json, always: bool) -> Iterator[str]:
    """Hold the result of a tool against itself, and its version against the manifest's.

    Args:
        answer: As the tool wrote it.
        manifest: `run.json`.
        always: Whether the version may not be missing.
    """
    if answer.get("type") != "result":
        return
    tool = str(answer.get("tool", "")).partition(" ")[0]
    wanted, version = manifest["tools"].get(tool), answer.get("version")
    if wanted is not None and (version or always) and version != wanted.rpartition(" ")[2]:
        yield f"version is {version}, the manifest has {wanted}"
    if always and answer.get("tool") == "bw-traffic witness" and (missing := WITNESS_SAYS - answer.keys()):
        yield f"{', '.join(sorted(missing))}: missing, and a witness of this version always says so"
    if WITNESS_SAYS.issubset(answer) and not answer["windows_dropped"]:
        yield from _stall_discrepancies(answer)
    if "unclaimed_ns" not in answer and _must_say_unclaimed(answer):
        yield "unclaimed_ns is missing, and this version of a witness that keeps CPUs awake always has it"
    for key in ("target_ran_ns", "unclaimed_ns"):
        if answer.get(key) is not None:
            yield from _share_discrepancies(answer, key)
    of_streams = "streams" in answer  # those are looked at with the latencies
    for place, summary in () if of_streams else _summaries(answer):
        yield from (f"{place}: {said}" for said in summary_discrepancies(summary))


def _summaries(value: Any, place: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the distributions of an answer, and where they stand in it."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if members.keys() >= SUMMARY_SAYS:
            yield place, members
            return
        for key, member in members.items():
            yield from _summaries(member, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for number, member in enumerate(cast("list[Any]", value)):
            if isinstance(member, dict):
                yield from _summaries(member, f"{place}.{number}")


def _stall_discrepancies(answer: Json) -> Iterator[str]:
    """Hold each CPU's sums, and the time that any of them stalled, against the windows."""
    windows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for begin_ns, end_ns, cpu in answer["windows"]:
        windows[cpu].append((begin_ns, end_ns))
    for each in answer["cpus"]:
        lengths = [end - begin for begin, end in windows.pop(each["cpu"], [])]
        found = (len(lengths), sum(lengths), max(lengths, default=0))
        said = (each["stalls"], each["stalled_ns"], each["max_ns"])
        if lengths and said != found:
            yield f"CPU {each['cpu']}: stalls, their sum and the longest, ns: {said}, the windows: {found}"
    if windows:
        yield f"windows of CPUs {sorted(windows)}, which it did not watch"
    together_ns, end_ns = 0, 0
    for begin, end in sorted((begin, end) for begin, end, _cpu in answer["windows"]):
        together_ns += max(0, end - max(begin, end_ns))
        end_ns = max(end_ns, end)
    if together_ns != answer["stalled_ns"]:
        yield f"stalled_ns is {answer['stalled_ns']}, the windows give {together_ns}"
    fraction = answer["stalled_ns"] / answer["elapsed_ns"]
    if abs(answer["stalled_fraction"] - fraction) > TOLERANCE:
        yield f"stalled_fraction is {answer['stalled_fraction']}, the times give {fraction:.9f}"


def _must_say_unclaimed(answer: Json) -> bool:
    """Say whether an answer is that of a witness which kept CPUs awake, and of a version that tells more."""
    if answer.get("tool") != "bw-traffic witness":
        return False
    is_awake = any(cpu.get("utilisation") is not None for cpu in answer["cpus"])
    return is_awake and parsed(str(answer.get("version", 0))) >= WITH_UNCLAIMED


def _share_discrepancies(answer: Json, key: str) -> Iterator[str]:
    """Hold a share of the time between two wake-ups against that time."""
    windows, ran_ns = answer["windows"], answer[key]
    if len(windows) != len(ran_ns):
        yield f"{key} is of {len(ran_ns)} windows, there are {len(windows)}"
        return
    for (begin, end, cpu), own in zip(windows, ran_ns, strict=True):
        longest = end - begin + answer["period_ns"]
        if not 0 <= own <= longest + CLOCKS_APART_NS:
            yield f"{key}: {own} ns on CPU {cpu}, from one wake-up to the next {longest} ns"


def _miss_discrepancies(miss: Json) -> Iterator[str]:
    """Hold what a miss says it took against its times."""
    received, scheduled = miss.get("received_reference_tai_ns"), miss.get("scheduled_tai_ns")
    if received is None or scheduled is None:
        return
    where = f"stream {miss['stream']}, message {miss['sequence']}"
    late_ns = miss["received_minus_scheduled_ns"]
    if late_ns != received - scheduled:
        yield f"{where}: received {late_ns} ns after its slot, by its times {received - scheduled} ns"
    sent_ns, lateness_ns = miss["received_minus_sent_ns"], miss["lateness_ns"]
    if sent_ns is not None and lateness_ns is not None and sent_ns != late_ns - lateness_ns:
        yield f"{where}: received {sent_ns} ns after it was sent, by its lateness {late_ns - lateness_ns} ns"
