# SPDX-License-Identifier: Apache-2.0
"""Whose network stack a replay went by: what started its programs, what carried them, and what was counted.

docs/stacks.md, `Which stack it was`. Of each replay these have to be of one stack: the commands of its
programs, what each program says carried its messages, the counters of the stack's ends, the folder, what the
stack's own command said when it was put on, and the records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_lines, read_result
from reports.rejudge.carried import COUNTED
from reports.rejudge.each import DAMAGE
from reports.rejudge.version import WITH_STACK_USED, Version

USED = "stack_used.json"
PUT_ON = Path("stack", "stack.ndjson")
SCHEMA = "benchwright.stack_used/1"
KERNEL, RTDIP = "kernel", "rtdip"
RTDIP_OPTION = "--rtdip"

Json = Mapping[str, Any]


def stack_discrepancies(
    run: Path, manifest: Json, records: Sequence[Record], version: Version
) -> Iterator[str]:
    """Say where a replay's stack is not the one that its record, folder or counters name."""
    is_needed = version >= WITH_STACK_USED
    named: dict[Path, list[Record]] = {}
    for record in records:
        for each in record["evidence"]:
            if Path(each["path"]).name == "recv.ndjson":
                named.setdefault(run / Path(each["path"]).parent, []).append(record)
    asked = {suite["stack"] for suite in manifest.get("asked") or () if suite.get("stack")}
    for answer in sorted((run / "evidence").rglob("recv.ndjson")):
        folder = answer.parent
        where = folder.relative_to(run).as_posix()
        result = read_result(answer)
        used = folder / USED
        if result is None:
            continue
        if not used.exists():
            if is_needed or "carrier" in result:
                yield f"{where}: {USED} is missing, and the version that wrote the replay always has it"
            continue
        try:
            document = json.loads(used.read_text("utf-8"))
            told = [
                *_document_discrepancies(folder, document, result),
                *_proof_discrepancies(folder, document),
            ]
            told += _place_discrepancies(folder, document["stack"], asked)
            told += _record_discrepancies(document["stack"], named.get(folder, ()))
        except DAMAGE as error:
            told = [f"{USED}: {type(error).__name__}: {error}"]
        yield from (f"{where}: {each}" for each in told)


def _document_discrepancies(folder: Path, document: Json, result: Json) -> Iterator[str]:
    """Hold each program's command against what it says carried it."""
    if document["schema"] != SCHEMA:
        yield f"{USED}: schema is {document['schema']}"
    if document["nonce"] != result["nonce"]:
        yield f"{USED}: nonce is {document['nonce']}, that of the replay {result['nonce']}"
    programs: Json = document["programs"]
    answers = {path.stem for path in folder.glob("send-*.ndjson")} | {"recv"}
    if set(programs) != answers:
        yield f"{USED}: programs are {sorted(programs)}, their answers {sorted(answers)}"
    carriers: set[str] = set()
    for name, program in programs.items():
        answer = read_result(folder / f"{name}.ndjson")
        wanted = _carrier(program)
        carriers.add(wanted)
        if answer is not None and answer.get("carrier") != wanted:
            yield f"{name}: carried by {answer.get('carrier')!r}, its command gives {wanted!r}"
    if programs["recv"]["node"] != document["receiver"]:
        yield f"{USED}: receiver is {document['receiver']}, recv ran on {programs['recv']['node']}"
    past = carriers - {KERNEL}
    if bool(past) != (document["counted"] is not None):
        yield f"{USED}: counted is {document['counted']}, carried by {', '.join(sorted(carriers))}"
    # Only one of them has a name of its own; a library has that of its file.
    if (document["stack"] == RTDIP) != (RTDIP in carriers) or (document["stack"] == KERNEL and past):
        yield f"{USED}: stack is {document['stack']}, carried by {', '.join(sorted(carriers))}"


def _carrier(program: Json) -> str:
    if RTDIP_OPTION in program["command"]:
        return RTDIP
    return ":".join(program["preload"]) or KERNEL


def _proof_discrepancies(folder: Path, document: Json) -> Iterator[str]:
    """Hold the counters of the stack's ends against the programs that used it."""
    file = folder / COUNTED
    if file.exists() != (document["counted"] is not None):
        is_there = "there" if file.exists() else "missing"
        yield f"{COUNTED} is {is_there}, {USED} says that {document['counted'] or 'nothing'} was counted"
    if not file.exists():
        return
    proof = json.loads(file.read_text("utf-8"))
    for name in ("stack", "receiver"):
        if proof[name] != document[name]:
            yield f"{COUNTED}: {name} is {proof[name]}, the replay's {document[name]}"
    nodes = {each["node"] for each in document["programs"].values() if _carrier(each) != KERNEL}
    if set(proof["ends"]) != nodes:
        yield f"{COUNTED}: has ends {sorted(proof['ends'])}, the stack was used on {sorted(nodes)}"
    for node, end in proof["ends"].items():
        if document["counted"] not in end:
            yield f"{COUNTED}: {node} has no {document['counted']}"
        negative = [name for name, count in end.items() if count < 0]
        yield from (f"{COUNTED}: {node}: {name} is {end[name]}: a counter that ran back" for name in negative)


def _place_discrepancies(folder: Path, stack: str, asked: set[str]) -> Iterator[str]:
    """Hold the folder's name, and what the stack's command said, against the stack."""
    place = folder.parent
    if place.name in asked and place.name != stack:
        yield f"is in a folder of {place.name}, its programs went by {stack}"
    for said in read_lines(place / PUT_ON, "stack"):
        if said.get("stack", stack) != stack:
            yield f"{PUT_ON} is of {said['stack']}, its programs went by {stack}"


def _record_discrepancies(stack: str, records: Sequence[Record]) -> Iterator[str]:
    for said in sorted({record["subject"].get("stack") or KERNEL for record in records} - {stack}):
        yield f"its records are of stack {said}, its programs went by {stack}"
