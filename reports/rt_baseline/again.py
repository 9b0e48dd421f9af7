# SPDX-License-Identifier: Apache-2.0
"""Wake-ups, as the second judge knows them: from the histograms that cyclictest prints as text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from reports.rejudge.again import Again, Kind, Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import judge_each
from reports.rejudge.hardware_noise import NOISE, noise_discrepancies
from reports.rejudge.machine import Machine, less_target
from reports.rejudge.rule import number_discrepancies, outcome_of
from reports.rejudge.timerlat import TIMERLAT, timerlat_discrepancies

Json = Mapping[str, Any]

DOCUMENT = "wakeups.json"
TEXT, WRITTEN = "cyclictest.hist", "cyclictest.json"
WITNESS, LOAD = "witness.ndjson", "load.json"
EMULATION = "emulation.ndjson"
TAIL = Fraction(1, 10_000)
"""Of the wake-ups, that lie above a p99.99."""
GIVEN_AWAY = Fraction(1, 40)
"""Of an interval of 95 %, at its upper end."""
_ROW = re.compile(r"[0-9]+(?:\s+[0-9]+)+")


class Text:
    """Histograms as columns, one a thread: `cyclictest --histfile`."""

    def __init__(self, text: str) -> None:
        """Read rows of latency and counts, and the lines of words below them."""
        self.columns: list[dict[int, int]] = []
        self.said: dict[str, list[int]] = {}
        for line in text.splitlines():
            if _ROW.fullmatch(line.strip()):
                us, *counts = map(int, line.split())
                self.columns = self.columns or [{} for _ in counts]
                for column, count in zip(self.columns, counts, strict=True):
                    if count and us in column:
                        raise ValueError(f"{TEXT}: has a row of {us} us twice")
                    if count:
                        column[us] = count
            elif line.startswith("# ") and ": " in line and "Thread" not in line:
                name, _, numbers = line[2:].partition(": ")
                self.said[name] = [int(each) for each in numbers.split()]

    def problems(self, facts: Json) -> Iterator[str]:
        """Say where sums, cycles or overflows are not as they have to be."""
        sums = [sum(column.values()) for column in self.columns]
        if not sums or sums != self.said["Total"]:
            yield f"{TEXT}: its rows sum up to {sums}, it says {self.said.get('Total')}"
        if any(self.said["Histogram Overflows"]):
            yield f"{TEXT}: overflows {self.said['Histogram Overflows']}: there is no figure"
        if any(each != facts["cycles"] for each in sums):
            yield f"{TEXT}: {sums} wake-ups, {facts['cycles']} a thread were asked for"
        if [max(column, default=0) for column in self.columns] != self.said["Max Latencies"]:
            yield f"{TEXT}: its rows end elsewhere than at {self.said['Max Latencies']}"
        ends, width = [max(column, default=0) for column in self.columns], facts["histogram_us"]
        if max(ends, default=0) >= width:
            yield f"{TEXT}: goes on to {ends}, {DOCUMENT} has it end before {width}"

    def other_document(self, threads: Json) -> Iterator[str]:
        """Say where the threads of cyclictest.json, which the page shows, have other histograms."""
        if len(threads) != len(self.columns):
            yield f"{WRITTEN}: {len(threads)} threads, {TEXT} has {len(self.columns)}"
        for place, column in enumerate(self.columns[: len(threads)]):
            counts = threads[str(place)]["histogram"]
            if {int(us): count for us, count in counts.items()} != column:
                yield f"{WRITTEN}: its thread {place} has another histogram than {TEXT}"


def wakeup_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, samples, U and outcome of each record again."""
    return judge_each(run, records, "wakeup_latency", DOCUMENT, _judge)


def _judge(record: Record, file: Path) -> Iterator[str]:
    facts: Json = json.loads(file.read_text("utf-8"))
    named = {Path(each["path"]).name for each in record["evidence"]}
    for name in (TEXT, WRITTEN, *([LOAD] if "load" in facts else [])):
        if name not in named:
            yield f"{name} is not among its evidence"
    yield from _subject(record, facts, file.parent)
    found = Text((file.parent / TEXT).read_text("utf-8"))
    yield from found.problems(facts)
    yield from found.other_document(json.loads((file.parent / WRITTEN).read_text("utf-8"))["thread"])
    cycles = facts["cycles"]
    above = int(cycles * TAIL) if record["statistic"] == "p9999" else 0
    values = [_from_above(column, above) * 1000 for column in found.columns]
    value = max(values)
    wanted = {"whole_us": 1000}
    if record["statistic"] == "p9999":
        fewer = _above_of_upper(cycles)
        uppers = [] if fewer is None else [_from_above(each, fewer) * 1000 for each in found.columns]
        wanted["order_statistic"] = max([value, *uppers]) - value
    for name, said, here in (
        ("value", record["value"], value),
        ("n", record["n"], cycles),
        ("parts of U", {each["name"]: each["value"] for each in record["uncertainty"]["parts"]}, wanted),
        ("kinds of its parts", {each["kind"] for each in record["uncertainty"]["parts"]}, {"bound"}),
    ):
        if said != here:
            yield f"{name}: {said}, {TEXT} says {here}"
    yield from number_discrepancies(record, _numbers(record, facts, found, above))
    outcome = outcome_of(record, value, cycles)
    is_bound = record["statistic"] != "p9999" or _above_of_upper(cycles) is not None
    if outcome in ("pass", "fail") and not is_bound:
        outcome = "inconclusive"
    if outcome == "fail" and _is_excused(record, facts, found, file.parent, above):
        outcome = "inconclusive"
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, {TEXT} comes to {outcome}"


def _numbers(record: Record, facts: Json, found: Text, above: int) -> dict[str, int]:
    """Return what the record's conditions say of the evidence, besides what `_subject` demands."""
    ticks = facts["ticks"]
    return {
        "cpus": len(found.columns),
        "stolen_ppm": round(1_000_000 * facts["stolen_ticks"] / ticks) if ticks else 0,
        "overflow": sum(found.said["Histogram Overflows"]),
        **({"above_value": above} if record["statistic"] == "p9999" else {}),
    }


def _subject(record: Record, facts: Json, folder: Path) -> Iterator[str]:
    """Say where target, load and conditions are not those of the evidence."""
    kind = facts["load"]["kind"] if "load" in facts else ""
    [axis] = record["subject"]["axes"]
    beside = f"{kind} load" if kind else "nothing"
    if record["subject"]["target"] != facts["target"] or (axis["axis"], axis["value"]) != ("beside", beside):
        yield f"{DOCUMENT} is of {facts['target']} beside {beside}"
    if record["conditions"]["load"] != (kind or "idle"):
        yield f"its load is {record['conditions']['load']}, {DOCUMENT} is of {kind or 'idle'}"
    if kind:
        load = json.loads((folder / LOAD).read_text("utf-8"))["load"]
        if any(load[key] != facts["load"][key] for key in ("kind", "node")):
            yield f"{LOAD} is of {load}"
    numbers = {each["name"]: each["value"] for each in record["conditions"]["numbers"]}
    wanted = {key: facts[key] for key in ("interval_us", "priority")}
    if wanted.items() - numbers.items():
        yield f"conditions are {numbers}, {DOCUMENT} says {wanted}"


def _from_above(column: Mapping[int, int], above: int) -> int:
    """Return the latency in µs that so many of a column lie above, counted from its end."""
    for us in sorted(column, reverse=True):
        above -= column[us]
        if above < 0:
            return us
    raise ValueError("fewer wake-ups than lie above the value")


def _above_of_upper(cycles: int) -> int | None:
    """Return how many lie above the upper end of the p99.99's interval; None: so few say nothing.

    That end has so many above it that at most GIVEN_AWAY of all experiments of so many cycles have no more
    of theirs beyond the true p99.99: terms of the binomial distribution, from none on.
    """
    log_p, log_q = math.log(TAIL), math.log1p(-float(TAIL))
    log_term, total, count = cycles * log_q, 0.0, 0
    while (total := total + math.exp(log_term)) <= GIVEN_AWAY:
        log_term += math.log((cycles - count) / (count + 1)) + log_p - log_q
        count += 1
    return count - 1 if count else None


def _is_excused(record: Record, facts: Json, found: Text, folder: Path, above: int) -> bool:
    """Say whether pauses of the machine leave no more wake-ups over limit + U than the statistic may have."""
    witness = read_result(folder / WITNESS)
    is_watched = witness is not None and (folder / EMULATION).exists()
    if facts["machine"] == "guest" and not is_watched:
        return True
    if witness is None or facts["machine"] == "own":
        return False
    if witness["windows_dropped"]:
        return True
    limit_ns = record["limit"]["upper"] + record["uncertainty"]["expanded"]
    run: Json = json.loads((folder / WRITTEN).read_text("utf-8"))
    for place, column in enumerate(found.columns):
        cpu = run["thread"][str(place)]["cpu"]
        if facts["machine"] == "guest":
            lines = map(json.loads, (folder / EMULATION).read_text("utf-8").splitlines())
            [said] = [line for line in lines if line["cpu"] == cpu]
            if _guest_needs(column, limit_ns, witness, said) > above:
                return False
            continue
        pauses = sorted(_pauses(_of_cpu(witness, cpu)), reverse=True)
        # The longest wake-ups that are late may be `above`; each shorter one needs a pause of its own.
        late = sorted((us * 1000 - limit_ns, count) for us, count in column.items() if us * 1000 > limit_ns)
        need = sum(count for _, count in late) - above
        if need > len(pauses):
            return False
        shortest = [over for over, count in late for _ in range(min(count, need))][: max(0, need)]
        if any(pause < over for pause, over in zip(pauses, reversed(shortest), strict=False)):
            return False
    return True


def _pauses(witness: Json) -> list[int]:
    """Return the length of each: what the target is said to have run counts as far as time was stolen."""
    period = int(witness.get("period_ns") or 0)
    if witness.get("target_ran_ns", ()) is None:
        return []
    stolen = {each["cpu"]: each["steal_ns"] or 0 for each in witness["cpus"]}
    ran = witness.get("target_ran_ns") or [0] * len(witness["windows"])
    return [
        end - begin + period - max(0, own - stolen.get(cpu, 0))
        for (begin, end, cpu), own in zip(witness["windows"], ran, strict=True)
    ]


def _guest_needs(column: Mapping[int, int], limit_ns: int, witness: Json, said: Json) -> int:
    """Return how many late wake-ups of a guest's CPU find no time of their own."""
    start, stop = said["due_tai_ns"]
    inside = [window[0] < stop and window[1] > start for window in witness["windows"]]
    pauses = less_target(_of_those(witness, inside), int(witness.get("period_ns") or 0))
    pauses += [(low, high) for low, high in said["pauses_tai_ns"] if low < stop and high > start]
    known = [cpu["utilisation"] for cpu in witness["cpus"] if cpu.get("utilisation") is not None]
    # Thousandths, rounded up, as the first judge has them.
    machine = Machine(pauses, math.ceil(1000 * max(known)) / 1000 if known else 0.0)
    taken: list[tuple[int, int]] = []
    need = 0
    for us, count in sorted(column.items()):
        length = us * 1000
        if length <= limit_ns:
            continue
        marks = {high for _, high in machine.pauses} | {low + length for low, _ in machine.pauses}
        offers = sorted((math.ceil(machine.took(mark - length, mark) - 1e-6), mark) for mark in marks)
        need += count
        for amount, mark in offers:
            is_free = all(mark <= low or mark - length >= high for low, high in taken)
            if count and amount >= length - limit_ns and is_free:
                taken.append((mark - length, mark))
                need, count = need - 1, count - 1
    return need


def _of_cpu(witness: Json, cpu: int) -> Json:
    return _of_those(witness, [window[2] == cpu for window in witness["windows"]])


BY_WINDOW = "windows", "target_ran_ns", "unclaimed_ns"
"""Of a witness's answer, what has an item for each of its windows."""


def _of_those(witness: Json, which: Sequence[bool]) -> Json:
    """Return a witness with some of its windows alone."""
    chosen = {
        key: [value for value, is_there in zip(witness[key], which, strict=True) if is_there]
        for key in BY_WINDOW
        if isinstance(witness.get(key), list)
    }
    return {**witness, **chosen}


AGAIN = Again(
    quantities={
        "wakeup_latency": Kind("ns", ("max", "p9999"), (DOCUMENT,)),
        "hardware_noise": Kind("ns", ("max",), (NOISE,)),
    },
    judges=(wakeup_discrepancies, noise_discrepancies, timerlat_discrepancies),
    schemas={
        DOCUMENT: "benchwright.rt_baseline/1",
        NOISE: "benchwright.hardware_noise/1",
        TIMERLAT: "benchwright.timerlat/1",
        LOAD: "benchwright.load/1",
    },
    loose=(DOCUMENT, NOISE),
)
