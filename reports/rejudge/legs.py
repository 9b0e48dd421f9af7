# SPDX-License-Identifier: Apache-2.0
"""Legs of stimulus and response, worked out again from both programs' streams: docs/timeline.md.

A place on the timeline is read off in the simplest way here: a line between the two readings of the counter
around an event, and one between the two exchanges around that. The value has to agree within the part of U
that the record has for the timeline.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import judge_each
from reports.rejudge.event_stream import REALTIME, Stream, on_line
from reports.rejudge.rule import outcome_of

Json = Mapping[str, Any]

DOCUMENT = "legs.json"
RUN_UP = 10
SHARES = {"median": (1, 2), "p99": (99, 100)}
LEGS = {
    "to the target": ("server", "stimulus.sent", "client", "stimulus.received"),
    "from the target": ("client", "response.sent", "server", "response.received"),
}
SLACK_NS = 1000
"""Of a line between readings a second apart."""
NS_PER_S = 1_000_000_000


def leg_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, messages, parts of U and outcome, and how much came before it was sent."""
    legs, judged_legs = judge_each(run, records, "leg_time", DOCUMENT, _leg)
    checks, judged_checks = judge_each(run, records, "timeline_contradictions", DOCUMENT, _contradictions)
    delays, judged_delays = judge_each(run, records, "leg_delay_error", DOCUMENT, _delay)
    problems, count = legs + checks + delays, judged_legs + judged_checks + judged_delays
    for quantity in ("places_outside", "places_beyond_u"):
        found, judged = judge_each(run, records, quantity, DOCUMENT, _places)
        problems, count = problems + found, count + judged
    return problems, count


def _leg(record: Record, file: Path) -> Iterator[str]:
    facts: Json = json.loads(file.read_text("utf-8"))
    yield from _facts(record, facts, file.parent)
    if facts.get("delay"):
        yield f"{DOCUMENT} has a known delay"
    [axis] = record["subject"]["axes"]
    if axis["axis"] != "leg" or axis["value"] not in LEGS:
        yield f"its axis is {axis}"
        return
    every = {leg: _times(facts, file.parent, leg) for leg in LEGS}
    times, u_ns, lost_events = every[axis["value"]]
    wanted = max(0, facts["count"] - RUN_UP)
    for name, said, found in (("n", record["n"], len(times)), ("lost", record["lost"], wanted - len(times))):
        if said != found:
            yield f"{name} is {said}, the streams say {found}"
    if not times:
        if record["value"] is not None:
            yield f"value is {record['value']}, and no message counts"
        return
    share = SHARES[record["statistic"]]
    value = _quantile(times, share)
    parts = {part["name"]: part for part in record["uncertainty"]["parts"]}
    if {name: part["kind"] for name, part in parts.items()} != {"timeline": "standard", "quarters": "bound"}:
        yield f"parts of U are {sorted(parts)}, must be timeline, a standard one, and quarters, a bound"
        return
    timeline_ns = 2 * parts["timeline"]["value"]
    if abs(record["value"] - value) > timeline_ns + SLACK_NS:
        yield f"value is {record['value']}, the streams say {value} within {timeline_ns + SLACK_NS}"
    if u_ns > 2 * timeline_ns + SLACK_NS:
        yield f"part timeline of U is {parts['timeline']['value']}, exchanges alone leave {u_ns:.0f}"
    size = len(times)
    cuts = [0]
    for number in range(4):
        cuts.append(cuts[-1] + size // 4 + (number < size % 4))
    quarters = [times[low:high] for low, high in pairwise(cuts) if high > low]
    # Of two quantiles by simple lines, each of which may lie otherwise by half of the exchanges' round trips.
    off = max(abs(_quantile(each, share) - value) for each in quarters)
    if abs(parts["quarters"]["value"] - off) > timeline_ns + SLACK_NS + 2 * u_ns:
        yield f"part quarters of U is {parts['quarters']['value']}, the streams say {off}"
    outcome = outcome_of(record, record["value"], len(times))
    least_ns = facts["least_ns"] - timeline_ns - SLACK_NS
    backwards = any(each and min(each) < least_ns for each, _, _ in every.values())
    if outcome in ("pass", "fail") and (lost_events or not _complete(facts, file.parent)):
        outcome = "inconclusive"
    if record["outcome"] != outcome and not (backwards and record["outcome"] == "inconclusive"):
        yield f"{record['outcome']}, its streams come to {outcome}"


def _contradictions(record: Record, file: Path) -> Iterator[str]:
    """Hold the count of messages that came too early against those that did so beyond U by far."""
    facts: Json = json.loads(file.read_text("utf-8"))
    yield from _facts(record, facts, file.parent)
    messages = early = 0
    for leg in LEGS:
        times, u_ns, _ = _times(facts, file.parent, leg)
        messages += len(times)
        early += sum(each < facts["least_ns"] - 4 * u_ns - SLACK_NS for each in times)
    if record["n"] != messages:
        yield f"n is {record['n']}, the streams say {messages}"
    if not early <= (record["value"] or 0) <= messages:
        yield f"value is {record['value']}, {early} messages or more came before they were sent"
    outcome = outcome_of(record, record["value"], messages)
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, its streams come to {outcome}"


def _facts(record: Record, facts: Json, folder: Path) -> Iterator[str]:
    """Say where a record, its document and both answers do not go together."""
    if record["subject"].get("target") != facts["target"]:
        yield f"target is {record['subject'].get('target')}, {DOCUMENT} is of {facts['target']}"
    named = {Path(each["path"]).name for each in record["evidence"]}
    for end in (facts["server"], facts["client"]):
        for name in (end["answer"], end["events"], end.get("exchanges")):
            if name and name not in named:
                yield f"{name} is not among its evidence"
    if facts.get("card") and facts["card"]["answer"] not in named:
        yield f"{facts['card']['answer']} is not among its evidence"
    for end in ("server", "client"):
        answer = read_result(folder / facts[end]["answer"])
        if answer is None:
            yield f"{facts[end]['answer']}: no result"
        elif (answer["count"], answer["size_bytes"]) != (facts["count"], facts["size_bytes"]):
            yield f"{facts[end]['answer']} is of {answer['count']} messages of {answer['size_bytes']} bytes"
        elif answer["delay_receive_us"] or answer["delay_send_us"] != _asked_us(facts, end):
            yield f"{facts[end]['answer']} had a known delay of {answer['delay_send_us']} us"
    if not facts.get("delay") and any(
        (read_result(folder / facts[end]["answer"]) or {}).get("delay_send_us")
        for end in ("server", "client")
    ):
        yield f"a program had a known delay, and {DOCUMENT} says none"


def _asked_us(facts: Json, end: str) -> int:
    """Return the delay that an end was to put into the leg that it sends."""
    delay = facts.get("delay")
    return delay["delay_us"] if delay and LEGS[delay["leg"]][0] == end else 0


def _delay(record: Record, file: Path) -> Iterator[str]:
    """Compare each delayed turn with those before and after it, in the leg that the record is worse in."""
    facts: Json = json.loads(file.read_text("utf-8"))
    yield from _facts(record, facts, file.parent)
    delay = facts["delay"]
    answer = read_result(file.parent / facts[LEGS[delay["leg"]][0]]["answer"]) or {}
    put = middle_ns(answer["sending_delayed"]) - middle_ns(answer["sending"])
    if abs(put - delay["delay_us"] * 1000) > delay["delay_us"] * 500:
        yield f"{delay['delay_us']} us were asked for, {put:.0f} ns were put in"
    [axis] = record["subject"]["axes"]
    if (axis["axis"], axis["value"]) != ("leg", delay["leg"]):
        yield f"its axis is {axis}, the delay was {delay['leg']}"
    limit = record["limit"]
    if abs(limit["upper"] - put / 2) > SLACK_NS or limit["lower"] != -limit["upper"]:
        yield f"its limits are {limit['lower']} and {limit['upper']}, half of what was put in: {put / 2:.0f}"
    errors: list[tuple[float, float, int]] = []
    for leg in LEGS:
        later = _later(facts, file.parent, leg, delay["turn"])
        middle = median(later)
        spread = 1.4826 * median([abs(each - middle) for each in later])
        standard = 1.25 * math.sqrt(2 / len(later)) * spread
        errors.append((middle - (put if leg == delay["leg"] else 0), standard, len(later)))
    [part] = record["uncertainty"]["parts"]
    # Places by simple lines scatter more than the timeline's: each way's own scatter is allowed for.
    u = 2 * part["value"] + SLACK_NS
    near = [
        turns
        for error, standard, turns in errors
        if abs(record["value"] - error) <= u + 2 * standard and part["value"] >= standard / 3 - SLACK_NS
    ]
    if part["name"] != "turns" or part["kind"] != "standard" or record["n"] not in near:
        yield f"value is {record['value']} of {record['n']} turns, the streams say {errors}"
    for error, standard, _ in errors:
        if abs(error) > abs(record["value"]) + u + 2 * standard:
            yield f"value is {record['value']}, a leg is {error:.0f} off"
    outcome = outcome_of(record, record["value"], record["n"])
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, its streams come to {outcome}"


def _places(record: Record, file: Path) -> Iterator[str]:
    """Hold the target's events against its card: the middle one lies within half a round trip of exchanges.

    How many lie beyond U is noted: places by simple lines have none.
    """
    facts: Json = json.loads(file.read_text("utf-8"))
    yield from _facts(record, facts, file.parent)
    end, folder = facts["client"], file.parent
    card = read_result(folder / facts["card"]["answer"])
    answer = read_result(folder / end["exchanges"])
    if card is None or answer is None:
        yield "the card's answer or the exchanges have no result"
        return
    stream = Stream((folder / end["events"]).read_bytes())
    readings = _readings(stream, facts)
    rows = card["series"]["rows"]
    middle = card["series"]["interval_ns"] // 2
    by_card = [(at + middle + round(mean), at + middle) for at, _, mean, _, _ in rows]
    exchanges, half = _short_exchanges(answer)
    own = [on_line(readings, ticks) for events in stream.events.values() for _, ticks in events]
    known = [each for each in own if by_card[0][0] <= each <= by_card[-1][0]]
    if abs(record["n"] - len(known)) > len(known) / 100:
        yield f"n is {record['n']}, the card saw {len(known)} events"
    errors = sorted(abs(on_line(exchanges, each) - on_line(by_card, each)) for each in known)
    if record["value"] is None or not 0 <= record["value"] <= (100 if record["unit"] else record["n"]):
        yield f"value is {record['value']}, of {record['n']} events"
        return
    if errors and errors[len(errors) // 2] > half + SLACK_NS and record["value"] == 0:
        yield f"value is 0, and half of the events are {errors[len(errors) // 2]} ns off by the card"
    if record["quantity"] == "places_outside" and record["value"] != int(record["value"]):
        yield f"value is {record['value']}: a count"
    outcome = outcome_of(record, record["value"], record["n"])
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, its value comes to {outcome}"


def _readings(stream: Stream, facts: Json) -> list[tuple[int, int]]:
    """Return ticks and TAI in ns of each reading of the system's clock."""
    return [
        (ticks, clock_ns + facts["tai_utc_s"] * NS_PER_S) for ticks, clock_ns in stream.readings(REALTIME)
    ]


def _short_exchanges(answer: Json) -> tuple[list[tuple[int, int]], int]:
    """Return what the clock showed at the quickest quarter of exchanges, with TAI then; and half of a trip.

    Those that were held up say little.
    """
    halves = sorted(half for _, _, half in answer["series"])
    short = halves[len(halves) // 4]
    return [(at + offset, at) for at, offset, half in answer["series"] if half <= short], short


def _later(facts: Json, folder: Path, leg: str, turn: int) -> list[float]:
    """Return by how much each delayed turn's median is above the mean of its neighbours'."""
    turns: dict[int, list[int]] = {}
    for number, time in zip(*_numbered(facts, folder, leg), strict=True):
        turns.setdefault(number // turn, []).append(time)
    last = facts["count"] // turn - 1
    return [
        median(turns[at]) - (median(turns[at - 1]) + median(turns[at + 1])) / 2
        for at in range(1, last, 2)
        if turns.keys() >= {at - 1, at, at + 1}
    ]


def middle_ns(summary: Json) -> float:
    """Return the middle of the bucket that holds the median."""
    rank, seen = -(-summary["n"] // 2), 0
    for low, width, count in summary["buckets"]:
        seen += count
        if seen >= rank:
            return low + (width - 1) / 2
    raise ValueError("an empty histogram")


def _complete(facts: Json, folder: Path) -> bool:
    answers = [read_result(folder / facts[end]["answer"]) for end in ("server", "client")]
    return all(each is not None and each["complete"] for each in answers)


def _times(facts: Json, folder: Path, leg: str) -> tuple[list[int], float, int]:
    """Return what each message took in ns, in their order, U that exchanges leave, and events lost."""
    (first, last), u_ns, lost = _ends(facts, folder, leg)
    return [last[tag] - first[tag] for tag in sorted(first.keys() & last.keys())], u_ns, lost


def _numbered(facts: Json, folder: Path, leg: str) -> tuple[list[int], list[int]]:
    """Return the numbers of messages, and what each took."""
    first, last = _ends(facts, folder, leg)[0]
    numbers = sorted(first.keys() & last.keys())
    return numbers, [last[tag] - first[tag] for tag in numbers]


def _ends(facts: Json, folder: Path, leg: str) -> tuple[tuple[dict[int, int], dict[int, int]], float, int]:
    """Return when each message was sent and received, by its number; U that exchanges leave; events lost."""
    sender, sent, receiver, received = LEGS[leg]
    u_ns = 0.0
    lost = 0
    ends: list[dict[int, int]] = []
    for end, point in ((sender, sent), (receiver, received)):
        stream = Stream((folder / facts[end]["events"]).read_bytes())
        lost += stream.lost
        readings = _readings(stream, facts)
        exchanges: list[tuple[int, int]] = []
        if "exchanges" in facts[end]:
            answer = read_result(folder / facts[end]["exchanges"])
            if answer is None:
                raise ValueError(f"{facts[end]['exchanges']}: no result")
            exchanges, _ = _short_exchanges(answer)
            u_ns += min(half for _, _, half in answer["series"]) / 2
        ends.append(
            {
                tag: on_line(exchanges, on_line(readings, ticks)) if exchanges else on_line(readings, ticks)
                for tag, ticks in stream.events[point]
                if tag >= RUN_UP
            }
        )
    return (ends[0], ends[1]), u_ns, lost


def _quantile(times: Sequence[int], share: tuple[int, int]) -> int:
    """Return the first time that so large a share of all is not above."""
    return sorted(times)[max(1, -(-len(times) * share[0] // share[1])) - 1]
