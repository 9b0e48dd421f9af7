# SPDX-License-Identifier: Apache-2.0
"""A ring of programs, worked out again from their streams: docs/control-loops.md.

Places on the timeline are read off by straight lines, as those of legs are. What one counter has measured,
a node and the whole, has to agree within what readings of a clock leave of its frequency.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import judge_evidence
from reports.rejudge.event_stream import Stream
from reports.rejudge.placed_stream import NS_PER_S, read_placed
from reports.rejudge.quantiles import SHARES, SLACK_NS, quantile_problems
from reports.rejudge.rule import outcome_of, outcome_problems
from reports.rejudge.turns import Error, middle_ns, turn_error, turn_problems
from reports.rejudge.under_load import load_problems, split_beside

Json = Mapping[str, Any]
Ns = dict[int, int]
"""Time in ns by the number of the message."""

DOCUMENT = "ring.json"
RUN_UP = 10
HOLD_SHARE = 2
PROGRAM, WIRE = "loop_delay", "loop_wire_delay"


def ring_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, messages, parts of U and outcome of each stretch, and the checks of the bench."""
    judges = (
        (PROGRAM, _stretch),
        (WIRE, _stretch),
        ("loop_contradictions", _order),
        ("loop_whole_outside", _whole),
        ("loop_whole_beyond_u", _whole),
        ("loop_unaccounted", _account),
        ("loop_hold_error", _hold),
    )
    return judge_evidence(run, records, DOCUMENT, cache(_read), _facts, judges)


@dataclass
class Program:
    """What a program of the ring recorded; times in ns.

    Attributes:
        read, written: By the counter, from the first reading of the clock.
        read_tai, written_tai: On the timeline.
        came_tai, left_tai: The kernel's stamps.
        half: Half of the shortest round trip of its machine's exchanges; 0: its clock is the reference.
        lost: Events that had no room.
    """

    node: str
    answer: Json
    read: Ns
    written: Ns
    read_tai: Ns
    written_tai: Ns
    came_tai: Ns
    left_tai: Ns
    ticks: dict[str, Ns]
    ns_per_tick: float
    half: int
    lost: int


@dataclass
class Evidence:
    """All of a folder."""

    facts: Json
    programs: list[Program]
    folder: Path


def _read(file: Path) -> Evidence:
    facts: Json = json.loads(file.read_text("utf-8"))
    return Evidence(facts, [_program(facts, end, file.parent) for end in facts["ends"]], file.parent)


def _program(facts: Json, end: Json, folder: Path) -> Program:
    placed = read_placed(facts, end, folder)
    stream = placed.stream
    answer = read_result(folder / end["answer"])
    if answer is None:
        raise ValueError(f"{end['answer']}: no result")
    first = placed.readings[0][0]
    ticks = {name: dict(stream.events.get(f"ring.{name}", [])) for name in ("read", "write")}

    def own(points: Ns) -> Ns:
        return {tag: round((at - first) * placed.ns_per_tick) for tag, at in points.items() if tag >= RUN_UP}

    def tai(points: Ns) -> Ns:
        return {tag: placed.tai_ns(at) for tag, at in points.items() if tag >= RUN_UP}

    def stamped(point: str) -> Ns:
        stamps = _stamps(stream, f"ring.{point}", facts)
        return {tag: placed.shown_tai_ns(at) for tag, at in stamps.items() if tag >= RUN_UP}

    return Program(
        end["node"],
        answer,
        own(ticks["read"]),
        own(ticks["write"]),
        tai(ticks["read"]),
        tai(ticks["write"]),
        stamped("kernel_read"),
        stamped("kernel_written"),
        ticks,
        placed.ns_per_tick,
        placed.half_ns,
        stream.lost,
    )


def _stamps(stream: Stream, point: str, facts: Json) -> Ns:
    """Return a kernel's stamps in TAI as its machine's clock had it."""
    if point not in stream.points:
        return {}
    return {tag: ns + facts["tai_utc_s"] * NS_PER_S for tag, ns in stream.stamps(point)}


def _times(quantity: str, name: str, programs: Sequence[Program]) -> tuple[Ns, float, bool] | None:
    """Return what a stretch took by number, U that exchanges leave, whether one counter has measured it."""
    kind, _, text = name.partition(" ")
    last = len(programs) - 1
    place = int(text) if text.isdecimal() else 0
    if name == "whole":
        one, other = programs[0], programs[last]
        if quantity == PROGRAM:
            written, read = one.ticks["write"], other.ticks["read"]
            took = {
                tag: round((read[tag] - written[tag]) * one.ns_per_tick)
                for tag in written.keys() & read.keys()
                if tag >= RUN_UP
            }
            return took, 0.0, True
        return _between(one.left_tai, other.came_tai), one.half, False
    if kind == "hop" and 1 <= place <= last:
        one, other = programs[place - 1], programs[place]
        first, second = (
            (one.written_tai, other.read_tai) if quantity == PROGRAM else (one.left_tai, other.came_tai)
        )
        return _between(first, second), (one.half + other.half) / 2, False
    if kind == "node" and 1 <= place < last and quantity == PROGRAM:
        return _between(programs[place].read, programs[place].written), 0.0, True
    return None


def _between(first: Ns, second: Ns) -> Ns:
    return {tag: second[tag] - first[tag] for tag in sorted(first.keys() & second.keys())}


def _stretch(record: Record, found: Evidence) -> Iterator[str]:
    facts, programs = found.facts, found.programs
    if facts.get("hold"):
        yield f"in {DOCUMENT} a node held messages"
    [axis] = record["subject"]["axes"]
    name, _, _ = split_beside(axis["value"])
    way = _times(record["quantity"], name, programs) if axis["axis"] == "stretch" else None
    if way is None:
        yield f"its axis is {axis}"
        return
    took, u_ns, is_own = way
    times = [took[tag] for tag in sorted(took)]
    by_program = _times(PROGRAM, name, programs)
    came = len(by_program[0]) if by_program else 0
    lost = max(0, facts["count"] - RUN_UP) - came
    for name, said, here in (("n", record["n"], len(times)), ("lost", record["lost"], lost)):
        if said != here:
            yield f"{name} is {said}, the streams say {here}"
    if not times:
        if record["value"] is not None:
            yield f"value is {record['value']}, and no message counts"
        return
    if not (yield from quantile_problems(record, times, u_ns, is_own=is_own)):
        return
    outcome = outcome_of(record, record["value"], len(times))
    undecided = any(each.lost or not each.answer["complete"] for each in programs)
    part, of = SHARES[record["statistic"]]
    undecided = undecided or 2 * of * (came - len(times)) > min(part, of - part) * came
    if outcome in ("pass", "fail") and undecided:
        outcome = "inconclusive"
    backwards = not is_own and any(_early(facts, programs))
    if record["outcome"] != outcome and not (backwards and record["outcome"] == "inconclusive"):
        yield f"{record['outcome']}, its streams come to {outcome}"


def _early(facts: Json, programs: Sequence[Program], parts_of_half: float = 0) -> Iterator[bool]:
    """Say of each message on each hop whether it was read before it can have been there, by lines."""
    for least, (one, other) in zip(facts["least_ns"], pairwise(programs), strict=True):
        if one.node == other.node:
            continue
        floor = least - SLACK_NS - parts_of_half * (one.half + other.half)
        for took in _between(one.written_tai, other.read_tai).values():
            yield took < floor


def _order(record: Record, found: Evidence) -> Iterator[str]:
    """Hold the count of messages that came too early against those that did so beyond the bounds by far."""
    facts, programs = found.facts, found.programs
    n = sum(len(_between(one.written_tai, other.read_tai)) for one, other in pairwise(programs))
    if record["n"] != n:
        yield f"n is {record['n']}, the streams say {n}"
    early = sum(_early(facts, programs, 4))
    if not early <= (record["value"] or 0) <= n:
        yield f"value is {record['value']}, {early} messages or more were read before they were written"
    yield from outcome_problems(record, record["n"])


def _whole(record: Record, found: Evidence) -> Iterator[str]:
    """Hold the whole on the timeline against the counter: by lines it has to lie within half a round trip."""
    programs = found.programs
    by_counter = _times(PROGRAM, "whole", programs)
    assert by_counter is not None
    by_line = _between(programs[0].written_tai, programs[-1].read_tai)
    if record["n"] != len(by_line):
        yield f"n is {record['n']}, the streams say {len(by_line)}"
    off = [abs(took - by_counter[0][tag]) for tag, took in by_line.items()]
    # The clock of one machine at two places: half of its shortest round trip bounds each.
    far = 2 * programs[0].half + SLACK_NS
    if off and sorted(off)[len(off) // 2] > far and record["value"] == 0:
        yield f"value is 0, and half of the messages are {sorted(off)[len(off) // 2]} ns off the counter"
    yield from outcome_problems(record, record["n"])


def _account(record: Record, found: Evidence) -> Iterator[str]:
    """Count the messages whose way answers and events do not say alike."""
    programs = found.programs
    unaccounted = 0
    for each in programs:
        unaccounted += abs(len(each.ticks["read"]) - each.answer["read"] + each.answer["double"])
        unaccounted += abs(len(each.ticks["write"]) - each.answer["written"]) + each.answer["double"]
    for one, other in pairwise(programs):
        written, read = one.ticks["write"].keys(), other.ticks["read"].keys()
        unaccounted += len(read - written)
        unaccounted += abs(len(written - read) - other.answer["missing"] + one.answer["missing"])
    if record["value"] is not None and (record["value"] == 0) != (unaccounted == 0):
        yield f"value is {record['value']}, the streams say {unaccounted}"
    n = sum(each.answer["read"] for each in programs)
    if record["n"] != n:
        yield f"n is {record['n']}, the answers say {n}"
    yield from outcome_problems(record, record["n"])


def _hold(record: Record, found: Evidence) -> Iterator[str]:
    """Compare each turn in which the node held messages with those before and after it, on each stretch."""
    facts, programs = found.facts, found.programs
    hold: Json = facts["hold"]
    own = f"node {hold['node']}"
    [axis] = record["subject"]["axes"]
    if (axis["axis"], axis["value"]) != ("stretch", own):
        yield f"its axis is {axis}, {own} held messages"
    held_ns = middle_ns(programs[int(hold["node"])].answer["held"])
    if held_ns < hold["hold_us"] * 990:
        yield f"{hold['hold_us']} us were asked for, messages were held for {held_ns:.0f} ns"
    allowed = held_ns / HOLD_SHARE
    limit = record["limit"]
    if abs(limit["upper"] - allowed) > allowed / 100 or limit["lower"] != -limit["upper"]:
        yield f"its limits are {limit['lower']} and {limit['upper']}, half of the hold: {allowed:.0f}"
    last = len(programs) - 1
    names = ["whole", *(f"hop {at}" for at in range(1, last + 1)), *(f"node {at}" for at in range(1, last))]
    errors: list[Error] = []
    for name in names:
        way = _times(PROGRAM, name, programs)
        assert way is not None
        put_ns = held_ns if name in ("whole", own) else 0
        errors.append(turn_error(way[0], hold["turn"], facts["count"], put_ns))
    yield from turn_problems(record, errors, "stretch")
    yield from outcome_problems(record, record["n"])


def _facts(record: Record, found: Evidence) -> Iterator[str]:
    """Say where a record, its document and the answers do not go together."""
    facts, programs = found.facts, found.programs
    if record["subject"].get("target") != facts["target"]:
        yield f"target is {record['subject'].get('target')}, {DOCUMENT} is of {facts['target']}"
    named = {Path(each["path"]).name for each in record["evidence"]}
    for end in facts["ends"]:
        for name in (end["answer"], end["events"], end.get("exchanges")):
            if name and name not in named:
                yield f"{name} is not among its evidence"
    yield from load_problems(record, facts, found.folder)
    roles = [each.answer["role"] for each in programs]
    if roles != ["source", *["node"] * (len(programs) - 2), "sink"]:
        yield f"the programs are {', '.join(roles)}"
    if programs[0].node != programs[-1].node:
        yield "source and sink are on two nodes"
    for each in programs:
        if each.answer["complete"] and each.answer["of"] != facts["count"]:
            yield f"{each.node} tells of {each.answer['of']} messages, {DOCUMENT} has {facts['count']}"
