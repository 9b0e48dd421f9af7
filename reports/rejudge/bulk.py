# SPDX-License-Identifier: Apache-2.0
"""Bulk data by user and kernel, counted again from points and rings: docs/timeline.md."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.rejudge.again import Record
from reports.rejudge.answers import read_result
from reports.rejudge.each import judge_each
from reports.rejudge.event_stream import MONOTONIC, Stream, on_line
from reports.rejudge.kernel_ring import KernelRing
from reports.rejudge.rule import outcome_of, part_discrepancies

Json = Mapping[str, Any]
DOCUMENT = "bulk.json"
DIFFERENCE, UNMATCHED = "bulk_payload_difference", "bulk_unmatched"
UNITS = {DIFFERENCE: "bytes", UNMATCHED: "segments"}
POINTS = {"sender": "bulk.written", "receiver": "bulk.read"}
LENGTH_FIELD_BYTES = 1 << 16
"""The kernel gives a segment's payload modulo that."""
UNSURE_NS = 20_000
"""A line between readings of a clock a second apart, and the width of each."""


def bulk_discrepancies(run: Path, records: Sequence[Record]) -> tuple[list[str], int]:
    """Count the user's and the kernel's bytes and their segments, and work out the outcome."""
    differences, judged_differences = judge_each(run, records, DIFFERENCE, DOCUMENT, _bulk)
    unmatched, judged_unmatched = judge_each(run, records, UNMATCHED, DOCUMENT, _bulk)
    return differences + unmatched, judged_differences + judged_unmatched


def _bulk(record: Record, file: Path) -> Iterator[str]:
    facts: Json = json.loads(file.read_text("utf-8"))
    yield from _facts(record, facts)
    if record["unit"] != UNITS[record["quantity"]]:
        yield f"unit is {record['unit']}, must be {UNITS[record['quantity']]}"
    yield from part_discrepancies(record, {}, "whole numbers have none:")
    pieces, is_sound = _pieces(facts, file.parent)
    read_bytes = sum(size for _, size, _ in pieces)
    segments: list[tuple[int, int]] = []
    again = 0
    if facts["refused"]:
        is_sound = True  # there is nothing to be sound
    else:
        receiver = KernelRing(file.parent / facts["receiver"]["kernel"])
        sender = KernelRing(file.parent / facts["sender"]["kernel"])
        segments = list(_segments(receiver, facts))
        again = sum(1 for _ in _retransmissions(sender, facts))
        is_sound &= receiver.is_whole and sender.is_whole and not receiver.dropped and not sender.dropped
    if record["n"] != len(segments):
        yield f"n is {record['n']}, the ring says {len(segments)}"
    more = sum(size for _, size in segments) - read_bytes
    value = record["value"]
    if not segments:
        if value is not None:
            yield f"value is {value}, and no segment was recorded"
            return
    elif record["quantity"] == DIFFERENCE:
        if value != abs(more):
            yield f"value is {value}, points and ring say {abs(more)}"
    else:
        least, most = (_unmatched(segments, pieces, slack) for slack in (UNSURE_NS, -UNSURE_NS))
        if not least <= value <= most:
            yield f"value is {value}, points and ring say {least} to {most}"
    outcome = outcome_of(record, value, len(segments))
    is_merged = more < 0 and more % LENGTH_FIELD_BYTES == 0
    is_explained = outcome == "fail" and (is_merged or (again > 0 and more >= 0))
    if outcome in ("pass", "fail") and (not is_sound or is_explained):
        outcome = "inconclusive"
    if record["outcome"] != outcome:
        yield f"{record['outcome']}, points and ring come to {outcome}"


def _facts(record: Record, facts: Json) -> Iterator[str]:
    """Say where a record and its document do not go together."""
    if record["subject"].get("target") != facts["target"]:
        yield f"target is {record['subject'].get('target')}, {DOCUMENT} is of {facts['target']}"
    named = {Path(each["path"]).name for each in record["evidence"]}
    for end in POINTS:
        for key in ("answer", "events", "kernel"):
            name = facts[end].get(key)
            if name and name not in named:
                yield f"{name} is not among its evidence"
    if facts["refused"] and record["value"] is not None:
        yield f"a kernel was not recorded ({facts['refused']}), and there is a value"


def _pieces(facts: Json, folder: Path) -> tuple[list[tuple[int, int, int]], bool]:
    """Return begin, bytes and time of each piece that was read, and whether both ends tell one story."""
    found: dict[str, list[tuple[int, int, int]]] = {}
    is_sound = True
    answers: dict[str, Json] = {}
    for end, point in POINTS.items():
        stream = Stream((folder / facts[end]["events"]).read_bytes())
        clock = stream.readings(MONOTONIC)
        found[end] = sorted((tag, size, on_line(clock, ticks)) for tag, ticks, size in stream.numbers(point))
        behind = 0
        for tag, size, _ in found[end]:
            is_sound &= tag == behind
            behind += size
        answer = read_result(folder / facts[end]["answer"])
        if answer is None or answer["role"] != end:
            raise ValueError(f"{facts[end]['answer']}: no result of the {end}")
        answers[end] = answer
        said = answer["bytes"], answer["calls"]
        is_sound &= answer["complete"] and said == (behind, len(found[end]))
        is_sound &= stream.is_whole and not stream.lost and len(stream.events[point]) == len(found[end])
    same = [(each["bytes"], each["checksum"]) for each in answers.values()]
    return found["receiver"], is_sound and same[0] == same[1]


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed


def _segments(ring: KernelRing, facts: Json) -> Iterator[tuple[int, int]]:
    """Yield time and payload of each segment that came over the connection."""
    wanted = _packed(facts["receiver"]["address"]), _packed(facts["sender"]["address"])
    at = 4 if len(wanted[0]) == 4 else 8
    for time_ns, fields in ring.events("tcp/tcp_probe"):
        found = tuple(fields[name][at : at + len(wanted[0])] for name in ("saddr", "daddr"))
        size = ring.number(fields, "data_len")
        if found == wanted and ring.number(fields, "sport") == facts["port"] and size:
            yield time_ns, size


def _retransmissions(ring: KernelRing, facts: Json) -> Iterator[int]:
    """Yield when a segment of the connection was sent again."""
    wanted = _packed(facts["receiver"]["address"])
    name = "daddr" if len(wanted) == 4 else "daddr_v6"
    for time_ns, fields in ring.events("tcp/tcp_retransmit_skb"):
        if fields[name] == wanted and ring.number(fields, "dport") == facts["port"]:
            yield time_ns


def _unmatched(
    segments: Sequence[tuple[int, int]], pieces: Sequence[tuple[int, int, int]], slack_ns: int
) -> int:
    """Return how many segments came more than that after the call that read their last byte, or have none."""
    count = end = at = 0
    for came_ns, size in segments:
        end += size
        while at < len(pieces) and pieces[at][0] + pieces[at][1] < end:
            at += 1
        count += at == len(pieces) or came_ns > pieces[at][2] + slack_ns
    return count
