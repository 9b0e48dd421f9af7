# SPDX-License-Identifier: Apache-2.0
"""Legs of stimulus and response, worked out again from both programs' streams: docs/timeline.md.

Places on the timeline are read off by straight lines. The value has to agree within the part of U that the
record has for the timeline.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import judge_each
from reports.rejudge.event_stream import on_line
from reports.rejudge.placed_stream import read_placed
from reports.rejudge.quantiles import SLACK_NS, quantile_problems
from reports.rejudge.rule import outcome_of, outcome_problems
from reports.rejudge.turns import middle_ns, turn_error, turn_problems

Json = Mapping[str, Any]

DOCUMENT = "legs.json"
RUN_UP = 10
LEGS = {
    "to the target": ("server", "stimulus.sent", "client", "stimulus.received"),
    "from the target": ("client", "response.sent", "server", "response.received"),
}


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
    took, u_ns, lost_events = every[axis["value"]]
    times = list(took.values())
    wanted = max(0, facts["count"] - RUN_UP)
    for name, said, found in (("n", record["n"], len(times)), ("lost", record["lost"], wanted - len(times))):
        if said != found:
            yield f"{name} is {said}, the streams say {found}"
    if not times:
        if record["value"] is not None:
            yield f"value is {record['value']}, and no message counts"
        return
    if not (yield from quantile_problems(record, times, u_ns, is_own=False)):
        return
    outcome = outcome_of(record, record["value"], len(times))
    parts = {part["name"]: part["value"] for part in record["uncertainty"]["parts"]}
    least_ns = facts["least_ns"] - 2 * parts["timeline"] - SLACK_NS
    backwards = any(each and min(each.values()) < least_ns for each, _, _ in every.values())
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
        early += sum(each < facts["least_ns"] - 4 * u_ns - SLACK_NS for each in times.values())
    if record["n"] != messages:
        yield f"n is {record['n']}, the streams say {messages}"
    if not early <= (record["value"] or 0) <= messages:
        yield f"value is {record['value']}, {early} messages or more came before they were sent"
    yield from outcome_problems(record, messages, "its streams come to")


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
    errors = [
        turn_error(
            _times(facts, file.parent, leg)[0],
            delay["turn"],
            facts["count"],
            put if leg == delay["leg"] else 0,
        )
        for leg in LEGS
    ]
    yield from turn_problems(record, errors, "leg")
    yield from outcome_problems(record, record["n"], "its streams come to")


def _places(record: Record, file: Path) -> Iterator[str]:
    """Hold the target's events against its card: the middle one lies within half a round trip of exchanges.

    How many lie beyond U is noted: places by simple lines have none.
    """
    facts: Json = json.loads(file.read_text("utf-8"))
    yield from _facts(record, facts, file.parent)
    end, folder = facts["client"], file.parent
    card = read_result(folder / facts["card"]["answer"])
    if card is None or "exchanges" not in end:
        yield "the card's answer or the exchanges have no result"
        return
    placed = read_placed(facts, end, folder)
    rows = card["series"]["rows"]
    middle = card["series"]["interval_ns"] // 2
    by_card = [(at + middle + round(mean), at + middle) for at, _, mean, _, _ in rows]
    own = [on_line(placed.readings, ticks) for events in placed.stream.events.values() for _, ticks in events]
    known = [each for each in own if by_card[0][0] <= each <= by_card[-1][0]]
    if abs(record["n"] - len(known)) > len(known) / 100:
        yield f"n is {record['n']}, the card saw {len(known)} events"
    errors = sorted(abs(placed.shown_tai_ns(each) - on_line(by_card, each)) for each in known)
    if record["value"] is None or not 0 <= record["value"] <= (100 if record["unit"] else record["n"]):
        yield f"value is {record['value']}, of {record['n']} events"
        return
    if errors and errors[len(errors) // 2] > placed.longest_half_ns + SLACK_NS and record["value"] == 0:
        yield f"value is 0, and half of the events are {errors[len(errors) // 2]} ns off by the card"
    if record["quantity"] == "places_outside" and record["value"] != int(record["value"]):
        yield f"value is {record['value']}: a count"
    yield from outcome_problems(record, record["n"])


def _complete(facts: Json, folder: Path) -> bool:
    answers = [read_result(folder / facts[end]["answer"]) for end in ("server", "client")]
    return all(each is not None and each["complete"] for each in answers)


def _times(facts: Json, folder: Path, leg: str) -> tuple[dict[int, int], float, int]:
    """Return what each message took in ns, by its number, U that exchanges leave, and events lost."""
    sender, sent, receiver, received = LEGS[leg]
    out, back = (read_placed(facts, facts[end], folder) for end in (sender, receiver))
    first, last = (
        {tag: placed.tai_ns(ticks) for tag, ticks in placed.stream.events[point] if tag >= RUN_UP}
        for placed, point in ((out, sent), (back, received))
    )
    took = {tag: last[tag] - first[tag] for tag in sorted(first.keys() & last.keys())}
    return took, (out.half_ns + back.half_ns) / 2, out.stream.lost + back.stream.lost
