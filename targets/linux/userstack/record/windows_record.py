# SPDX-License-Identifier: Apache-2.0
"""Read what `bw-accel --watch` has written of a program on Windows, as calls of the Linux recorder.

What began and ended at two places (completion ports, events, routines) becomes one call, where it has
ended. Sockets of several processes are numbered as they come. Left out: what a program
sleeps in, what bw-accel has set, and notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Call = dict[str, Any]

VERSION = 1
PENDING = "WSA_IO_PENDING"
NO_SOCKET = 0
"""Number of calls that are of no socket: names that were looked up, sockets that were refused."""
KEPT = (
    *("call", "domain", "type", "address", "peer", "level", "option", "value"),
    *("number", "command", "name"),
)
KEPT_ENDS = ("result", "errno")
LEFT_OUT = ("sleep", "block", "network_events", "tune")
WAYS = ("send", "receive")


def is_head(line: Mapping[str, Any]) -> bool:
    """Say whether a line is the first of such a record."""
    return "record" in line


def as_calls(lines: Sequence[Mapping[str, Any]]) -> Iterator[Call]:
    """Yield the calls of a whole record.

    Args:
        lines: Of the file, decoded; the first says how the record has ended.

    Raises:
        ValueError: The record is of another version, was broken off, or calls are missing.
        KeyError: A line lacks a field.
    """
    check_head(lines[0], len(lines) - 1)
    calls = [line for line in lines[1:] if "note" not in line and line["call"] not in LEFT_OUT]
    at_once = {_operation(call) for call in calls if call["function"] != "completion" and "result" in call}
    sockets: dict[tuple[int, int], int] = {}
    totals: dict[tuple[int, str], int] = {}
    for call in calls:
        if call["function"] == "completion":
            if _operation(call) in at_once:
                continue  # it had ended when it was begun
        elif call.get("errno") == PENDING:
            _number(call, "socket", sockets)
            continue
        yield _translated(call, sockets, totals)


def check_head(head: Mapping[str, Any], count: int) -> None:
    """Refuse a record that is not whole.

    Args:
        head: Its first line.
        count: Of the lines that follow.

    Raises:
        ValueError: The record is of another version, was broken off, or calls are missing.
        KeyError: The line lacks a field.
    """
    if head["version"] != VERSION:
        raise ValueError(f"version {head['version']!r} of a record; allowed: {VERSION}")
    if head["state"] != "complete":
        raise ValueError(f"the record has not ended in order: {head['state']!r}, {head['lost']} calls lost")
    if head["lost"]:
        raise ValueError(f"{head['lost']} calls are not in the record")
    if head["calls"] != count:
        raise ValueError(f"the record has {count} calls and says that it has {head['calls']}")


def _operation(call: Mapping[str, Any]) -> tuple[int, int] | None:
    return (call["process"], call["operation"]) if "operation" in call else None


def _number(call: Mapping[str, Any], key: str, sockets: dict[tuple[int, int], int]) -> int:
    if key not in call:
        return NO_SOCKET
    return sockets.setdefault((call["process"], call[key]), len(sockets) + 1)


def _translated(
    call: Mapping[str, Any], sockets: dict[tuple[int, int], int], totals: dict[tuple[int, str], int]
) -> Call:
    own: Call = {"socket": _number(call, "socket", sockets), "thread": call["thread"]}
    own.update({key: call[key] for key in KEPT if key in call})
    if "accepted" in call:
        own["accepted"] = _number(call, "accepted", sockets)
    if "ready" in call:
        process = call["process"]
        own["ready"] = [
            [sockets.setdefault((process, socket), len(sockets) + 1), events]
            for socket, events in call["ready"]
        ]
    if call["call"] in WAYS:
        own.pop("address", None)  # as the Linux recorder has it
    if call["call"] in WAYS and "result" in call:
        way = (own["socket"], call["call"])
        totals[way] = totals.get(way, 0) + call["result"]
        own["total"] = totals[way]
    own.update({key: call[key] for key in KEPT_ENDS if key in call})
    return own
