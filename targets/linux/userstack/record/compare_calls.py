# SPDX-License-Identifier: Apache-2.0
"""Hold two records of a program's calls against each other: `python compare_calls.py KERNEL USER`.

Each is a file that libbw-record.so has written of the same program, by the kernel's stack and by the
user-mode stack, or bw-accel --watch of two runs on Windows. For each socket, in the order in which they were
made, the calls have to be the same: which, with which values, result and errno. What time decides is left
out: how a stream is cut into pieces (its bytes are compared, and their sum where there is one), calls that
would have blocked, times and sleeping, and which of several sockets, or which way of a stream, a program
served first. Of poll, select and epoll count the events that were ever told of a socket, and the order in
which sockets were first ready. Ports that the system chose have a number of their own. A record that was
broken off, or lacks calls, is not compared.

Prints a line for each difference; exit code 1 if there is one, 2 for a file that is no record.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import linux_record
import windows_record
from record_lines import each_line, lines_of

Call = dict[str, Any]

TRANSFERS = ("send", "receive")
WOULD_BLOCK = ("EAGAIN", "EINTR", "WSAEWOULDBLOCK", "WSAEINTR")
EPHEMERAL_MIN = 32768
"""Ports from here on are the system's choice."""
SHOWN_MAX = 50


def main() -> int:
    """Compare and print; return the exit code."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        kernel, user = (read(Path(name)) for name in sys.argv[1:])
    except (OSError, ValueError) as error:
        print(f"compare_calls: {error}", file=sys.stderr)
        return 2
    count = 0
    for count, difference in enumerate(differences(kernel, user), 1):
        if count <= SHOWN_MAX:
            print(difference)
    if count > SHOWN_MAX:
        print(f"… and {count - SHOWN_MAX} more")
    return 1 if count else 0


def differences(kernel: Record, user: Record) -> Iterator[str]:
    """Yield where each socket first differs: what follows is out of step. Then what readiness differs in."""
    for socket in sorted({*kernel.calls, *user.calls}):
        pairs = zip_longest(kernel.calls.get(socket, []), user.calls.get(socket, []))
        for place, (one, other) in enumerate(pairs, 1):
            if one != other:
                yield f"socket {socket}, call {place}: kernel {_text(one)}; user {_text(other)}"
                break
        one, other = (record.events.get(socket, 0) for record in (kernel, user))
        if one != other:
            yield f"socket {socket}, events of readiness: kernel {one:#x}; user {other:#x}"
    if list(kernel.events) != list(user.events):
        yield f"order of readiness: kernel {list(kernel.events)}; user {list(user.events)}"


@dataclass
class Record:
    """What a program did, without what time decides.

    Attributes:
        calls: By socket.
        events: That were ever told of a socket, in the order in which each was first ready.
    """

    calls: dict[int, list[Call]] = field(default_factory=dict[int, list[Call]])
    events: dict[int, int] = field(default_factory=dict[int, int])


def read(path: Path) -> Record:
    """Read a record.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no record; names file and line.
    """
    lines = lines_of(path)
    if lines and windows_record.is_head(lines[0]):
        try:
            lines = list(windows_record.as_calls(lines))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: no whole record: {error!r}") from error
    record = Record()
    ports: dict[int, str] = {}

    def take(call: Call) -> None:
        if not linux_record.is_compared(call):
            return
        del call["thread"]
        _name_ports(call, ports)
        _add(record, call)

    each_line(path, enumerate(lines, 1), take)
    return record


def _add(record: Record, call: Call) -> None:
    if call["call"] == "wait":
        for socket, events in call.get("ready", []):
            record.events[socket] = record.events.get(socket, 0) | events
        return
    own = record.calls.setdefault(call.pop("socket"), [])
    if call.get("errno") in WOULD_BLOCK or call["call"] == "peek":
        return  # how much of a stream is there is a matter of time
    if call["call"] not in TRANSFERS or "total" not in call:
        own.append(call)
        return
    call["ended"] = call.pop("result") == 0
    last = None if call["ended"] else _open_transfer(own, call["call"])
    if last is not None:
        last.update({key: call[key] for key in ("total", "sum") if key in call})
        return
    own.append(call)
    if len(own) > 1 and own[-2]["call"] == "receive" and call["call"] == "send" and not own[-2]["ended"]:
        own[-2:] = reversed(own[-2:])  # both ways at once


def _open_transfer(own: list[Call], way: str) -> Call | None:
    """Return the transfer that a piece goes on with: the last of its way, with only transfers behind it."""
    for each in reversed(own):
        if "ended" not in each or each["ended"]:
            return None
        if each["call"] == way:
            return each
    return None


def _name_ports(call: Call, ports: dict[int, str]) -> None:
    for key in ("address", "peer"):
        if key in call and call[key][1] >= EPHEMERAL_MIN:
            name = ports.setdefault(call[key][1], f"port {len(ports) + 1}")
            call[key] = [call[key][0], name]


def _text(call: Mapping[str, Any] | None) -> str:
    return "nothing more" if call is None else json.dumps(call)


if __name__ == "__main__":
    sys.exit(main())
