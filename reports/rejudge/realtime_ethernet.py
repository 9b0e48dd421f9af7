# SPDX-License-Identifier: Apache-2.0
"""Single messages through a network stack, worked out again from the answers of bw-rtdip: docs/rtdip.md."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import judge_each, judge_files
from reports.rejudge.rule import outcome_of
from reports.rejudge.version import WITH_ROUND_PAIRS, version_of

Json = Mapping[str, Any]

DOCUMENT = "messages.json"
RTDIP, UDP = "rtdip", "udp"
SHARES = {"median": (1, 2), "p99": (99, 100)}
STOLEN_PERCENT = 5
ROUNDS, EARLIER_ROUNDS = 14, 6
"""That have to count, since `WITH_ROUND_PAIRS` and before."""
BULK_PERCENT = 80
BUCKET = 1e-3
"""A bucket is no wider than that share of its value."""
RISES = "bulk_rise", "receive_rise"
UNITS = {"message_latency": "ns", **dict.fromkeys(RISES, "%"), "message_throughput": "bytes/s"}


def message_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Work out value, U, losses and outcome; see `judge_each`."""
    problems = judge_files(run, records, DOCUMENT, _trial_discrepancies)
    if not any(record["quantity"] in UNITS for record in records):
        return problems, 0
    in_pairs = version_of(run, json.loads((run / "run.json").read_text("utf-8"))) >= WITH_ROUND_PAIRS
    count = 0
    for quantity in UNITS:
        found, judged = judge_each(run, records, quantity, DOCUMENT, partial(_judge, in_pairs=in_pairs))
        problems += found
        count += judged
    return problems, count


def _judge(record: Record, file: Path, *, in_pairs: bool) -> Iterator[str]:
    facts: Json = json.loads(file.read_text("utf-8"))
    for name in ("target", "stack"):
        if record["subject"].get(name) != facts[name]:
            yield f"{name} is {record['subject'].get(name)}, {DOCUMENT} is of {facts[name]}"
    rows = [
        {**row, "answer": _answer(file.parent, row["file"]), "bulk": _answer(file.parent, row["bulk_file"])}
        for row in facts["trials"]
        if row["kind"] in _kinds(record, facts, row["size_bytes"])
    ]
    named = {Path(each["path"]).name for each in record["evidence"]}
    for row in rows:
        for name in (row["file"], row["bulk_file"]):
            if name and name not in named:
                yield f"{name} is not among its evidence"
        if row["answer"]["size_bytes"] != row["size_bytes"]:
            yield f"{row['file']} is of {row['answer']['size_bytes']} bytes, not of {row['size_bytes']}"
    judge = {"message_latency": _latency, **dict.fromkeys(RISES, _rise), "message_throughput": _throughput}
    yield from judge[record["quantity"]](record, facts, rows, in_pairs)


def _trial_discrepancies(file: Path) -> Iterator[str]:
    """Say where trials share an answer, or an answer's counts or way are not those of its trial."""
    facts: Json = json.loads(file.read_text("utf-8"))
    wanted = RTDIP if facts["stack"] == RTDIP else UDP
    if facts["over"] != wanted:
        yield f"{DOCUMENT} says over {facts['over']}, the stack {facts['stack']} goes over {wanted}"
    yield from _round_discrepancies(facts["trials"])
    names = [row[key] for row in facts["trials"] for key in ("file", "bulk_file") if row[key]]
    texts: dict[bytes, str] = {}
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{name} is the answer of {count} trials"
        text = (file.parent / name).read_bytes()
        if text in texts:
            yield f"{name} is word for word {texts[text]}"
        texts[text] = name
        answer = _answer(file.parent, name)
        if "round_trip" in answer:
            came = answer["round_trip"]["n"]
            if came + answer["lost"] != answer["sent"] or answer["late"] > answer["lost"]:
                yield (
                    f"{name}: {answer['sent']} sent, {came} came, {answer['lost']} lost,"
                    f" {answer['late']} of them late"
                )
        elif answer["windows"] * answer["window"] > answer["messages"]:
            yield f"{name}: {answer['windows']} windows of {answer['window']}, {answer['messages']} messages"


def _round_discrepancies(trials: Sequence[Json]) -> Iterator[str]:
    """Say where rounds do not follow each other, or one has a trial twice; the last may have broken off."""
    rounds = [row["round"] for row in trials]
    if rounds != sorted(rounds):
        yield f"{DOCUMENT}: its rounds do not follow each other"
    for (number, kind, size_bytes), count in Counter(
        (row["round"], row["kind"], row["size_bytes"]) for row in trials
    ).items():
        if count > 1:
            yield f"{DOCUMENT}: round {number} has {count} trials {kind} of {size_bytes} bytes"


def _kinds(record: Record, facts: Json, size_bytes: int) -> tuple[str, ...]:
    """Return the kinds of trials of a size that a record is of."""
    if record["quantity"] in RISES:
        return "alone", "beside", *(["throughput"] if size_bytes == facts["bulk_bytes"] else [])
    [axis] = record["subject"]["axes"]
    if axis["axis"] != "size" or axis["value"] != f"{size_bytes} B":
        return ()
    return ("latency",) if record["quantity"] == "message_latency" else ("throughput",)


def _answer(folder: Path, name: str) -> Json:
    if not name:
        return {}
    answer = read_result(folder / name)
    if answer is None:
        raise ValueError(f"{name}: no result")
    return answer


def _counts(row: Json) -> bool:
    return row["stolen_ticks"] * 100 <= STOLEN_PERCENT * row["ticks"]


def _latency(record: Record, facts: Json, rows: Sequence[Json], in_pairs: bool) -> Iterator[str]:
    good = [row["answer"] for row in rows if _counts(row)]
    share = SHARES[record["statistic"]]
    yield from _differences(
        record,
        lambda some: _quantile_ns(some, share) / 2,
        good,
        buckets=lambda value: math.ceil(value * BUCKET),
        slack=lambda value: value * BUCKET + 1,
        n=sum(each["round_trip"]["n"] for each in good),
        lost=sum(each["lost"] for each in good),
        doubts=_doubts(facts, len(good), good, in_pairs),
        in_pairs=in_pairs,
    )


def _throughput(record: Record, facts: Json, rows: Sequence[Json], in_pairs: bool) -> Iterator[str]:
    good = [row["answer"] for row in rows if _counts(row)]
    yield from _differences(
        record,
        _rate,
        good,
        buckets=None,
        slack=lambda _value: 1,
        n=sum(each["windows"] for each in good),
        lost=0,
        doubts=_doubts(facts, len(good), good, in_pairs),
        in_pairs=in_pairs,
    )


def _rise(record: Record, facts: Json, rows: Sequence[Json], in_pairs: bool) -> Iterator[str]:
    probes = [row for row in rows if row["kind"] != "throughput"]
    bad = {row["round"] for row in probes if not _counts(row)}
    sides = {
        kind: {row["round"]: row for row in probes if row["kind"] == kind and row["round"] not in bad}
        for kind in ("alone", "beside")
    }
    if sides["alone"].keys() != sides["beside"].keys():
        yield "rounds have a probe without a bulk receiver, or with it, and not both"
        return
    pairs = [(row["answer"], sides["beside"][number]["answer"]) for number, row in sides["alone"].items()]
    share = SHARES[record["statistic"]]
    is_whole = record["quantity"] == "bulk_rise"
    of = "round_trip" if is_whole else "receiving"
    if not all(of in answer for pair in pairs for answer in pair):
        pairs = []

    def quantiles(some: Sequence[tuple[Json, Json]]) -> tuple[float, float, float]:
        before, after = (_quantile_ns([pair[end] for pair in some], share, of) for end in (0, 1))
        latency = before if is_whole else _quantile_ns([pair[0] for pair in some], share) / 2
        return latency, before, after

    def rise(some: Sequence[tuple[Json, Json]]) -> float:
        latency, before, after = quantiles(some)
        return 100 * (after - before) / latency

    def buckets(value: float) -> float:
        if is_whole:
            return 2 * BUCKET * (100 + value)
        latency, before, after = quantiles(pairs)
        return 200 * BUCKET * (after + before) / latency

    bulk = [row["bulk"] for row in sides["beside"].values()]
    own = [answer for pair in pairs for answer in pair]
    doubts = _doubts(facts, len(pairs), [*own, *bulk], in_pairs)
    alone = _rate([row["answer"] for row in rows if row["kind"] == "throughput"])
    if not alone or not bulk or _rate(bulk) / alone * 100 < BULK_PERCENT:
        doubts.append("the bulk receiver yields")
    yield from _differences(
        record,
        rise,
        pairs,
        buckets=lambda value: buckets(value) * (1 if is_whole else 1 - BUCKET),
        slack=lambda value: buckets(value) + (0 if is_whole else 2 * BUCKET * abs(value)),
        n=min(sum(pair[end][of]["n"] for pair in pairs) for end in (0, 1)),
        lost=sum(each["lost"] for each in own),
        doubts=doubts,
        in_pairs=in_pairs,
    )


def _differences(
    record: Record,
    value_of: Callable[[Sequence[Any]], float],
    rounds: Sequence[Any],
    *,
    buckets: Callable[[float], float] | None,
    slack: Callable[[float], float],
    n: int,
    lost: int,
    doubts: Sequence[str],
    in_pairs: bool,
) -> Iterator[str]:
    """Say where a record differs from what its rounds say.

    Args:
        record: The record.
        value_of: Of some rounds together.
        rounds: All that count.
        buckets: The part of U for histograms, of the record's value; None: it has none.
        slack: How far a value may be off by the place in a bucket, and by rounding.
        n: Samples.
        lost: Likewise.
        doubts: Why there is no verdict; empty: there is one.
        in_pairs: U is from rounds two by two, of an odd number the last three together; else from each alone.
    """
    unit = UNITS[record["quantity"]]
    for name, said, found in (
        ("n", record["n"], n),
        ("lost", record["lost"], lost),
        ("unit", record["unit"], unit),
    ):
        if said != found:
            yield f"{name} is {said}, the trials say {found}"
    value = value_of(rounds) if rounds and n else None
    said = record["value"]
    if value is None or said is None or abs(said - value) > slack(value):
        if value is not None or said is not None:
            yield f"value is {said}, the trials say {value}"
    else:
        alone = [[each] for each in rounds]
        own = [value_of(each) for each in (_paired(alone) if in_pairs else alone)]
        apart = max(abs(each - value) for each in own)
        parts = {part["name"]: part["value"] for part in record["uncertainty"]["parts"]}
        wanted = {"rounds"} | ({"buckets"} if buckets else set[str]())
        if parts.keys() != wanted or any(p["kind"] != "bound" for p in record["uncertainty"]["parts"]):
            yield f"parts of U are {sorted(parts)}, must be bounds: {', '.join(sorted(wanted))}"
            return
        if abs(parts["rounds"] - apart) > slack(value) + max(map(slack, own)):
            yield f"part rounds of U is {parts['rounds']}, the trials say {apart:.6g}"
        if buckets and parts["buckets"] < buckets(said) * (1 - 1e-9):
            yield f"part buckets of U is {parts['buckets']}, must be {buckets(said):.6g}"
    outcome = outcome_of(record, said, n)
    if doubts and outcome in ("pass", "fail"):
        outcome = "inconclusive"
    if record["outcome"] != outcome:
        why = f"; {'; '.join(doubts)}" if doubts else ""
        yield f"{record['outcome']}, its trials come to {outcome}{why}"


def _paired(alone: Sequence[list[Any]]) -> list[list[Any]]:
    paired = [first + second for first, second in zip(alone[::2], alone[1::2], strict=False)]
    if len(alone) % 2:
        paired[-1:] = [[*(paired[-1] if paired else []), *alone[-1]]]
    return paired


def _doubts(facts: Json, rounds: int, answers: Sequence[Json], in_pairs: bool) -> list[str]:
    found = [f"{rounds} rounds count"] if rounds < (ROUNDS if in_pairs else EARLIER_ROUNDS) else []
    if any(each["over"] != facts["over"] for each in answers):
        found.append(f"not all messages went over {facts['over']}")
    return found


def _quantile_ns(answers: Sequence[Json], share: tuple[int, int], of: str = "round_trip") -> float:
    """Return the middle of the bucket that holds the quantile of all round trips, or of receiving."""
    counts: Counter[tuple[int, int]] = Counter()
    for each in answers:
        for low, width, count in each[of]["buckets"]:
            counts[low, width] += count
    total = counts.total() + sum(each[of]["overflow"] for each in answers)
    rank, seen = -(-total * share[0] // share[1]), 0
    for (low, width), count in sorted(counts.items()):
        seen += count
        if seen >= rank:
            return low + width / 2
    return float(max(each[of]["max_ns"] for each in answers))


def _rate(answers: Sequence[Json]) -> float:
    """Return the data of whole windows over the time, in bytes/s."""
    duration_ns = sum(each["duration_ns"] for each in answers)
    whole = sum(each["windows"] * each["window"] * each["size_bytes"] for each in answers)
    return whole / duration_ns * 1e9 if duration_ns else 0.0
