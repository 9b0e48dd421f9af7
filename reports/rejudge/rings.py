# SPDX-License-Identifier: Apache-2.0
"""A ring of programs, worked out again from their streams: docs/control-loops.md.

Places on the timeline are read off by straight lines, as those of legs are. What one counter has measured,
a node and the whole, has to agree within what readings of a clock leave of its frequency.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import judge_each
from reports.rejudge.event_stream import REALTIME, Stream, on_line
from reports.rejudge.legs import middle_ns
from reports.rejudge.rule import outcome_of

Json = Mapping[str, Any]
Ns = dict[int, int]
"""Time in ns by the number of the message."""

DOCUMENT = "ring.json"
RUN_UP = 10
SHARES = {"median": (1, 2), "p99": (99, 100)}
SLACK_NS = 1000
"""Of a line between readings a second apart."""
PPM = 300
NS_PER_S = 1_000_000_000
HOLD_SHARE = 2
PROGRAM, WIRE = "loop_delay", "loop_wire_delay"


def ring_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, messages, parts of U and outcome of each stretch, and the checks of the bench."""
    problems: list[str] = []
    count = 0
    for quantity, judged in (
        (PROGRAM, _stretch),
        (WIRE, _stretch),
        ("loop_contradictions", _order),
        ("loop_whole_outside", _whole),
        ("loop_whole_beyond_u", _whole),
        ("loop_unaccounted", _account),
        ("loop_hold_error", _hold),
    ):
        found, worked_out = judge_each(run, records, quantity, DOCUMENT, judged)
        problems, count = problems + found, count + worked_out
    return problems, count


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


def _programs(facts: Json, folder: Path) -> list[Program]:
    return [_program(facts, end, folder) for end in facts["ends"]]


def _program(facts: Json, end: Json, folder: Path) -> Program:
    stream = Stream((folder / end["events"]).read_bytes())
    readings = [(ticks, ns + facts["tai_utc_s"] * NS_PER_S) for ticks, ns in stream.readings(REALTIME)]
    exchanges: list[tuple[int, int]] = []
    half = 0
    if "exchanges" in end:
        answer = read_result(folder / end["exchanges"])
        if answer is None:
            raise ValueError(f"{end['exchanges']}: no result")
        halves = sorted(each for _, _, each in answer["series"])
        half = halves[0]
        short = halves[len(halves) // 4]
        exchanges = [(at + offset, at) for at, offset, each in answer["series"] if each <= short]
    answer = read_result(folder / end["answer"])
    if answer is None:
        raise ValueError(f"{end['answer']}: no result")
    (first, first_ns), (last, last_ns) = readings[0], readings[-1]
    ns_per_tick = (last_ns - first_ns) / (last - first)
    ticks = {name: dict(stream.events.get(f"ring.{name}", [])) for name in ("read", "write")}

    def on_axis(shown: int) -> int:
        return on_line(exchanges, shown) if exchanges else shown

    def tai(points: Ns) -> Ns:
        return {tag: on_axis(on_line(readings, at)) for tag, at in points.items() if tag >= RUN_UP}

    def placed(point: str) -> Ns:
        return {
            tag: on_axis(at) for tag, at in _stamps(stream, f"ring.{point}", facts).items() if tag >= RUN_UP
        }

    def own(points: Ns) -> Ns:
        return {tag: round((at - first) * ns_per_tick) for tag, at in points.items() if tag >= RUN_UP}

    return Program(
        end["node"],
        answer,
        own(ticks["read"]),
        own(ticks["write"]),
        tai(ticks["read"]),
        tai(ticks["write"]),
        placed("kernel_read"),
        placed("kernel_written"),
        ticks,
        ns_per_tick,
        half,
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


def _stretch(record: Record, file: Path) -> Iterator[str]:
    facts: Json = json.loads(file.read_text("utf-8"))
    programs = _programs(facts, file.parent)
    yield from _facts(record, facts, programs)
    if facts.get("hold"):
        yield f"in {DOCUMENT} a node held messages"
    [axis] = record["subject"]["axes"]
    found = _times(record["quantity"], axis["value"], programs) if axis["axis"] == "stretch" else None
    if found is None:
        yield f"its axis is {axis}"
        return
    took, u_ns, is_own = found
    times = [took[tag] for tag in sorted(took)]
    wanted = max(0, facts["count"] - RUN_UP)
    for name, said, here in (("n", record["n"], len(times)), ("lost", record["lost"], wanted - len(times))):
        if said != here:
            yield f"{name} is {said}, the streams say {here}"
    if not times:
        if record["value"] is not None:
            yield f"value is {record['value']}, and no message counts"
        return
    share = SHARES[record["statistic"]]
    value = _quantile(times, share)
    parts = {part["name"]: part for part in record["uncertainty"]["parts"]}
    wanted_parts = (
        {"counter": "bound", "quarters": "bound"} if is_own else {"timeline": "standard", "quarters": "bound"}
    )
    if {name: part["kind"] for name, part in parts.items()} != wanted_parts:
        yield f"parts of U are {sorted(parts)}, must be {sorted(wanted_parts)}"
        return
    slack = SLACK_NS + (abs(value) * PPM // 10**6 if is_own else 2 * parts["timeline"]["value"])
    if abs(record["value"] - value) > slack:
        yield f"value is {record['value']}, the streams say {value} within {slack}"
    if is_own and parts["counter"]["value"] < abs(record["value"]) * PPM / 10**6:
        yield f"part counter of U is {parts['counter']['value']}, {PPM} ppm of the value are more"
    if not is_own and u_ns > 4 * parts["timeline"]["value"] + SLACK_NS:
        yield f"part timeline of U is {parts['timeline']['value']}, exchanges alone leave {u_ns:.0f}"
    # Of two quantiles by simple lines, each of which may lie otherwise by half of the exchanges' round trips.
    off = max(abs(_quantile(each, share) - value) for each in _quarters(times))
    if abs(parts["quarters"]["value"] - off) > slack + 2 * u_ns:
        yield f"part quarters of U is {parts['quarters']['value']}, the streams say {off}"
    outcome = outcome_of(record, record["value"], len(times))
    undecided = any(each.lost or not each.answer["complete"] for each in programs)
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


def _order(record: Record, file: Path) -> Iterator[str]:
    """Hold the count of messages that came too early against those that did so beyond the bounds by far."""
    facts: Json = json.loads(file.read_text("utf-8"))
    programs = _programs(facts, file.parent)
    yield from _facts(record, facts, programs)
    n = sum(len(_between(one.written_tai, other.read_tai)) for one, other in pairwise(programs))
    if record["n"] != n:
        yield f"n is {record['n']}, the streams say {n}"
    early = sum(_early(facts, programs, 4))
    if not early <= (record["value"] or 0) <= n:
        yield f"value is {record['value']}, {early} messages or more were read before they were written"
    yield from _outcome(record)


def _whole(record: Record, file: Path) -> Iterator[str]:
    """Hold the whole on the timeline against the counter: by lines it has to lie within half a round trip."""
    facts: Json = json.loads(file.read_text("utf-8"))
    programs = _programs(facts, file.parent)
    yield from _facts(record, facts, programs)
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
    yield from _outcome(record)


def _account(record: Record, file: Path) -> Iterator[str]:
    """Count the messages whose way answers and events do not say alike."""
    facts: Json = json.loads(file.read_text("utf-8"))
    programs = _programs(facts, file.parent)
    yield from _facts(record, facts, programs)
    found = 0
    for each in programs:
        found += abs(len(each.ticks["read"]) - each.answer["read"] + each.answer["double"])
        found += abs(len(each.ticks["write"]) - each.answer["written"]) + each.answer["double"]
    for one, other in pairwise(programs):
        written, read = one.ticks["write"].keys(), other.ticks["read"].keys()
        found += len(read - written)
        found += abs(len(written - read) - other.answer["missing"] + one.answer["missing"])
    if record["value"] is not None and (record["value"] == 0) != (found == 0):
        yield f"value is {record['value']}, the streams say {found}"
    n = sum(each.answer["read"] for each in programs)
    if record["n"] != n:
        yield f"n is {record['n']}, the answers say {n}"
    yield from _outcome(record)


def _hold(record: Record, file: Path) -> Iterator[str]:
    """Compare each turn in which the node held messages with those before and after it, on each stretch."""
    facts: Json = json.loads(file.read_text("utf-8"))
    programs = _programs(facts, file.parent)
    yield from _facts(record, facts, programs)
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
    [part] = record["uncertainty"]["parts"]
    u = 2 * part["value"] + SLACK_NS
    last = len(programs) - 1
    names = ["whole", *(f"hop {at}" for at in range(1, last + 1)), *(f"node {at}" for at in range(1, last))]
    errors: list[tuple[float, float, int]] = []
    for name in names:
        found = _times(PROGRAM, name, programs)
        assert found is not None
        later = _later(found[0], hold["turn"], facts["count"])
        middle = median(later)
        spread = 1.4826 * median([abs(each - middle) for each in later])
        put = held_ns if name in ("whole", own) else 0
        errors.append((middle - put, 1.25 * math.sqrt(2 / len(later)) * spread, len(later)))
    near = [
        turns
        for error, standard, turns in errors
        if abs(record["value"] - error) <= u + 2 * standard and part["value"] >= standard / 3 - SLACK_NS
    ]
    if part["name"] != "turns" or part["kind"] != "standard" or record["n"] not in near:
        yield f"value is {record['value']} of {record['n']} turns, the streams say {errors}"
    for error, standard, _ in errors:
        if abs(error) > abs(record["value"]) + u + 2 * standard:
            yield f"value is {record['value']}, a stretch is {error:.0f} off"
    yield from _outcome(record)


def _later(took: Ns, turn: int, count: int) -> list[float]:
    turns: dict[int, list[int]] = {}
    for tag, ns in took.items():
        turns.setdefault(tag // turn, []).append(ns)
    return [
        median(turns[at]) - (median(turns[at - 1]) + median(turns[at + 1])) / 2
        for at in range(1, count // turn - 1, 2)
        if turns.keys() >= {at - 1, at, at + 1}
    ]


def _outcome(record: Record) -> Iterator[str]:
    outcome = outcome_of(record, record["value"], record["n"])
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, its value comes to {outcome}"


def _facts(record: Record, facts: Json, programs: Sequence[Program]) -> Iterator[str]:
    """Say where a record, its document and the answers do not go together."""
    if record["subject"].get("target") != facts["target"]:
        yield f"target is {record['subject'].get('target')}, {DOCUMENT} is of {facts['target']}"
    named = {Path(each["path"]).name for each in record["evidence"]}
    for end in facts["ends"]:
        for name in (end["answer"], end["events"], end.get("exchanges")):
            if name and name not in named:
                yield f"{name} is not among its evidence"
    roles = [each.answer["role"] for each in programs]
    if roles != ["source", *["node"] * (len(programs) - 2), "sink"]:
        yield f"the programs are {', '.join(roles)}"
    if programs[0].node != programs[-1].node:
        yield "source and sink are on two nodes"
    for each in programs:
        if each.answer["complete"] and each.answer["of"] != facts["count"]:
            yield f"{each.node} tells of {each.answer['of']} messages, {DOCUMENT} has {facts['count']}"


def _quarters(times: Sequence[int]) -> Iterator[Sequence[int]]:
    size, low = len(times), 0
    for number in range(4):
        high = low + size // 4 + (number < size % 4)
        if high > low:
            yield times[low:high]
        low = high


def _quantile(times: Sequence[int], share: tuple[int, int]) -> int:
    """Return the first time that so large a share of all is not above."""
    return sorted(times)[max(1, -(-len(times) * share[0] // share[1])) - 1]
