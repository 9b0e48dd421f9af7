# SPDX-License-Identifier: Apache-2.0
"""Late wake-ups by the timerlat tracer, split once more, event by event, and rtla's histogram."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.each import judge_files
from reports.rejudge.kernel_ring import KernelRing
from reports.rejudge.traced import Meanwhile

Json = Mapping[str, Any]
TIMERLAT, HISTOGRAM, RING = "timerlat.json", "timerlat.hist", "ring.gz"
LATE = 1_000_000
LATEST = 20
EVENTS = (
    ("irq", "osnoise/nmi_noise"), ("irq", "osnoise/irq_noise"), ("softirq", "osnoise/softirq_noise"),
    ("thread", "osnoise/thread_noise"),
)  # fmt: skip
PARTS = "late_ns", "irq_ns", "softirq_ns", "thread_ns", "outside_ns", "taken_ns", "away_ns"


def timerlat_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out again who made wake-ups late, of each recording that records name."""
    return judge_files(run, records, TIMERLAT, _judge), 0


def _judge(file: Path) -> Iterator[str]:
    facts: Json = json.loads(file.read_text("utf-8"))
    ring = KernelRing(file.parent / RING)
    if ring.dropped or not ring.is_whole:
        yield f"{RING}: events are missing"
    samples = {
        cpu: [
            (time, ring.number(fields, "context"), ring.number(fields, "timer_latency"))
            for time, fields in ring.events("ftrace/timerlat", cpu)
        ]
        for cpu in ring.cpus
    }
    text = (file.parent / HISTOGRAM).read_text("utf-8")
    columns = _columns(text)
    yield from _whole(text, columns)
    for (cpu, context), (counts, count) in columns.items():
        own = [latency // 1000 for _, place, latency in samples.get(cpu, ()) if place == context]
        if not _is_in_a_row(own, counts, count, facts["entries"]):
            yield f"{HISTOGRAM}: no {count} samples in a row of CPU {cpu} have its counts"
    meanwhile = Meanwhile(file.parent, facts["machine"])
    # Runs of before do not take off what a guest's emulator did not run.
    away = {
        cpu: meanwhile.emulator_pauses(cpu) if any("away_ns" in each for each in facts["sums"]) else None
        for cpu in ring.cpus
    }
    found = [each for cpu in ring.cpus for each in _late(ring, cpu, samples[cpu], meanwhile, away[cpu])]
    threads = sum(place == 1 for each in samples.values() for _, place, _ in each)
    if (facts["samples"], facts["late"]) != (threads, len(found)):
        yield f"{facts['late']} late of {facts['samples']}, {RING} has {len(found)} of {threads}"
    for said in facts["sums"]:
        own = [each for each in found if each["cpu"] == said["cpu"]]
        for part in PARTS:
            values = [each[part] for each in own]
            here = None if None in values else sum(values)
            if said.get(part) != here:
                yield f"{part} of CPU {said['cpu']}: {said.get(part)}, {RING} says {here}"
    if {each["cpu"] for each in facts["sums"]} != {each["cpu"] for each in found}:
        yield "its sums are of other CPUs"
    latest = sorted(found, key=lambda each: (-each["late_ns"], each["end_ns"]))[:LATEST]
    if len(latest) != len(facts["latest"]):
        yield f"the latest are {len(facts['latest'])}, not {len(latest)}"
    for said, own in zip(facts["latest"], latest, strict=False):
        if any(said.get(key) != value for key, value in own.items()):
            yield f"one of the latest is {said}, {RING} says {own}"


def _columns(text: str) -> dict[tuple[int, int], tuple[Counter[int], int]]:
    """Return by CPU and context what rtla's histogram counts, and how many samples with those over it."""
    heads: list[tuple[int, int]] = []
    counts: list[Counter[int]] = []
    found: dict[tuple[int, int], tuple[Counter[int], int]] = {}
    for line in text.splitlines():
        words = line.split()
        if line.startswith("Index"):
            names = [word.split("-") for word in words[1:]]
            heads = [(int(cpu), 0 if kind == "IRQ" else 1) for kind, cpu in names]
            counts = [Counter[int]() for _ in heads]
        elif line.startswith("over:"):
            for head, column, over in zip(heads, counts, words[1:], strict=True):
                found[head] = column, sum(column.values()) + int(over)
            break
        elif words and all(word.isdigit() for word in words):
            for column, count in zip(counts, words[1:], strict=True):
                column[int(words[0])] = int(count)
    return found


def _whole(text: str, columns: Mapping[tuple[int, int], tuple[Counter[int], int]]) -> Iterator[str]:
    """Say where rtla's histogram lacks an end, or has another sum than it says there."""
    lines = [line.split() for line in text.splitlines()]
    heads = next((words[1:] for words in lines if words[:1] == ["Index"]), list[str]())
    said = next((list(map(int, words[1:])) for words in lines if words[:1] == ["count:"]), None)
    if not heads:
        yield f"{HISTOGRAM}: has no columns"
    elif not columns or said is None:
        yield f"{HISTOGRAM}: ends before it says how many samples it has"
    elif len(columns) < len(heads):
        yield f"{HISTOGRAM}: has a column twice"
    else:
        inside = [counts.total() for counts, _ in columns.values()]
        # By its version rtla counts what is over, too, or not.
        if said not in (inside, [count for _, count in columns.values()]):
            yield f"{HISTOGRAM}: says {said}, its rows sum up to {inside}"


def _is_in_a_row(latencies: list[int], counts: Counter[int], count: int, entries: int) -> bool:
    """Say whether some samples in a row, as many as the histogram's, have its counts; those over it, too."""
    wanted = Counter({us: number for us, number in counts.items() if number and us < entries})
    wanted[entries] = count - wanted.total()
    here: Counter[int] = Counter()
    wrong = sum(1 for number in wanted.values() if number)
    for place, latency in enumerate(latencies):
        changes = [(latency, 1), *([(latencies[place - count], -1)] if place >= count else [])]
        for us, step in changes:
            us = min(us, entries)
            wrong -= here[us] != wanted[us]
            here[us] += step
            wrong += here[us] != wanted[us]
        if place + 1 >= count and not wrong:
            return True
    return not count


def _late(
    ring: KernelRing,
    cpu: int,
    samples: list[tuple[int, int, int]],
    meanwhile: Meanwhile,
    away: list[tuple[int, int]] | None,
) -> Iterator[dict[str, Any]]:
    busy: list[tuple[int, str, int, str]] = []
    for kind, event in EVENTS:
        for time, fields in ring.events(event, cpu):
            if "pid" in fields and not ring.number(fields, "pid"):
                continue
            name = fields.get("comm", b"").partition(b"\0")[0].decode(errors="replace")
            busy.append((time, kind, ring.number(fields, "duration"), name))
    busy.sort(key=lambda each: each[0])
    times = [each[0] for each in busy]
    machine = meanwhile.of_cpu(cpu) if meanwhile.is_watched else None
    for end, context, late in samples:
        if context != 1 or late <= LATE:
            continue
        begin = end - late
        own = busy[bisect_right(times, begin) : bisect_right(times, end)]
        parts, off, by = _split(own, begin, away or [])
        outside = max(0, late - sum(parts.values()))
        each: dict[str, Any] = {"cpu": cpu, "late_ns": late, "outside_ns": outside, "end_ns": end, "by": by}
        each |= {f"{kind}_ns": ns for kind, ns in parts.items()}
        each["away_ns"] = None if away is None else off
        each["taken_ns"] = None
        if machine is not None:
            low, high = meanwhile.by_witness(begin, end)
            each["taken_ns"] = min(outside, _common(machine.pauses, low, high))
        yield each


def _common(pauses: Sequence[tuple[int, int]], low: int, high: int) -> int:
    return sum(max(0, min(high, stop) - max(low, start)) for start, stop in pauses)


def _split(
    busy: list[tuple[int, str, int, str]], begin: int, away: list[tuple[int, int]]
) -> tuple[dict[str, int], int, str]:
    """Return what each kind had from an instant on, what is taken off them, and who had most as a thread.

    Each has at most what lies between the end of the one of its kind before it and its own, without what
    breaks into it; off goes what of `away` lies where it, and those that broke in, ended up.
    """
    parts = {"irq": 0, "softirq": 0, "thread": 0}
    had: list[tuple[int, int, int]] = []
    threads: Counter[str] = Counter()
    for kind in parts:
        since, new = begin, list[tuple[int, int, int]]()
        for end, of, length, name in busy:
            if of != kind:
                continue
            inner = [(ns, off) for at, ns, off in had if since < at <= end]
            broke_in = sum(ns for ns, _ in inner)
            amount = max(0, min(length, end - since - broke_in))
            off = _common(away, end - amount - broke_in, end) - sum(off for _, off in inner)
            off = max(0, min(amount, off))
            new.append((end, amount, off))
            parts[kind] += amount - off
            if name:
                threads[name] += amount - off
            since = end
        had += new
    most = max(threads.items(), key=lambda each: (each[1], each[0]), default=("", 0))
    return parts, sum(off for _, _, off in had), most[0] if most[1] else ""
