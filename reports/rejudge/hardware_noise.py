# SPDX-License-Identifier: Apache-2.0
"""Hardware noise, as the second judge knows it: each noise of the kernel's ring, periods of rtla's table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_each
from reports.rejudge.kernel_ring import KernelRing
from reports.rejudge.rule import number_discrepancies, outcome_of
from reports.rejudge.traced import Meanwhile

Json = Mapping[str, Any]
NOISE, TABLE, RING = "noise.json", "hwnoise.txt", "ring.gz"
EMULATION = "emulation.ndjson"
EVENT = "osnoise/sample_threshold"
COLUMNS = 9
"""CPU, #periods, runtime, noise, share, most of a period, longest, by hardware, by NMIs."""


def noise_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, periods, U and outcome of each record again."""
    return judge_each(run, records, "hardware_noise", NOISE, _judge)


def _judge(record: Record, file: Path) -> Iterator[str]:
    facts: Json = json.loads(file.read_text("utf-8"))
    folder = file.parent
    named = {Path(each["path"]).name for each in record["evidence"]}
    for name in (TABLE, RING, *(["load.json"] if "load" in facts else [])):
        if name not in named:
            yield f"{name} is not among its evidence"
    kind = facts["load"]["kind"] if "load" in facts else ""
    beside = f"{kind} load" if kind else "nothing"
    [axis] = record["subject"]["axes"]
    if record["subject"]["target"] != facts["target"] or (axis["axis"], axis["value"]) != ("beside", beside):
        yield f"{NOISE} is of {facts['target']} beside {beside}"
    ring = KernelRing(folder / RING)
    if ring.dropped or not ring.is_whole:
        yield f"{RING}: events are missing: there is no figure"
    rows = _rows((folder / TABLE).read_text("utf-8"))
    noises = {
        cpu: [(time, ring.number(fields, "duration")) for time, fields in ring.events(EVENT, cpu)]
        for cpu in rows
    }
    for cpu in ring.cpus:
        if cpu not in rows and any(ring.events(EVENT, cpu)):
            yield f"{TABLE} has no row of CPU {cpu}, of which {RING} has noise"
    for cpu, row in rows.items():
        most_us = max((length for _, length in noises[cpu]), default=0) // 1000
        whole_us = sum(length for _, length in noises[cpu]) // 1000
        has_more = int(row[6]) > most_us or int(row[3]) > whole_us
        if has_more or int(row[7]) + int(row[8]) > len(noises[cpu]):
            yield f"{TABLE} has more noise of CPU {cpu} than {RING}"
    value = max((length for each in noises.values() for _, length in each), default=0)
    periods = min(int(row[1]) for row in rows.values())
    wanted = {"noise_threshold": facts["threshold_us"] * 1000}
    for name, said, here in (
        ("value", record["value"], value),
        ("n", record["n"], periods),
        ("parts of U", {each["name"]: each["value"] for each in record["uncertainty"]["parts"]}, wanted),
        ("kinds of its parts", {each["kind"] for each in record["uncertainty"]["parts"]}, {"bound"}),
    ):
        if said != here:
            yield f"{name}: {said}, {RING} says {here}"
    numbers = {each["name"]: each["value"] for each in record["conditions"]["numbers"]}
    share = max(round(1_000_000 * int(row[3]) / int(row[2])) for row in rows.values())
    if numbers.get("noise_ppm") != share:
        yield f"noise_ppm is {numbers.get('noise_ppm')}, {TABLE} says {share}"
    counted = {"cpus": len(rows), "noises": sum(map(len, noises.values()))}
    counted |= {name: facts[name] for name in ("threshold_us", "runtime_us")}
    yield from number_discrepancies(record, counted)
    meanwhile = Meanwhile(folder, facts["machine"]) if facts["machine"] != "own" else None
    if meanwhile and (unknown := [cpu for cpu in noises if meanwhile.is_unknown(cpu)]):
        yield f"{EMULATION} has no line of CPU {unknown[0]}"
        return
    outcome = outcome_of(record, value, periods)
    if outcome == "fail" and meanwhile and _is_excused(record, meanwhile, noises):
        outcome = "inconclusive"
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, {RING} comes to {outcome}"


def _rows(text: str) -> dict[int, list[str]]:
    """Return the rows of rtla's table by CPU, without its `#`."""
    found: dict[int, list[str]] = {}
    for line in text.splitlines():
        words = line.replace("#", " ").split()
        if "#" in line and len(words) == COLUMNS and words[0].isdigit():
            found[int(words[0])] = words
    return found


def _is_excused(record: Record, meanwhile: Meanwhile, noises: Mapping[int, list[tuple[int, int]]]) -> bool:
    """Say whether the machine may have taken what each noise is over limit + U, or nobody knows."""
    if not meanwhile.is_watched:
        return True
    above = record["limit"]["upper"] + record["uncertainty"]["expanded"]
    for cpu, each in noises.items():
        machine = meanwhile.of_cpu(cpu)
        for end, length in each:
            if length <= above:
                continue
            took = math.ceil(machine.took(*meanwhile.by_witness(end - length, end)) - 1e-6)
            if took < length - above:
                return False
    return True
