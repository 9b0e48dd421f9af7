# SPDX-License-Identifier: Apache-2.0
"""A program's calls with their times, from records of bw-accel --watch and libbw-record.so alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import windows_record
from record_lines import each_line, lines_of

Socket = tuple[int, int]
"""Process, and the how manieth socket of it."""

STREAM, DATAGRAM = 1, 2
TYPE_MASK = 0xF
"""Of a socket's type on Linux, without SOCK_NONBLOCK and SOCK_CLOEXEC."""
TCP_LEVEL, TCP_NODELAY = 6, 1
"""The same numbers on both systems."""
WAIT_TIMEOUT = 258
"""What Windows' waits for objects return when their time is over."""
TIMED_OUT = "WAIT_TIMEOUT"
"""The same as the error of a wait at a completion port."""
WOULD_BLOCK = ("EAGAIN", "EINTR", "WSAEWOULDBLOCK", "WSAEINTR", windows_record.PENDING)


@dataclass(frozen=True)
class Timed:
    """A call, or what was begun with an OVERLAPPED, from its begin to the end that the program was told.

    Attributes:
        line: Of the record, from 1.
        begin_ns: By the machine's monotonic clock.
        end_ns: By the same.
        call: As the recorders name it.
        asked_bytes: Room, or what was to be sent; -1: not told.
        result: Of transfers bytes; -1: failed.
        errno: Name of the error, empty: none.
        timeout_ns: What was asked for; -1: none.
        ready: Sockets that a wait has reported.
        overlapped: It ended elsewhere than where it began; no thread's time.
        own_ns: Time outside of all calls that its thread has had before it.
    """

    line: int
    process: int
    thread: int
    begin_ns: int
    end_ns: int
    call: str
    socket: Socket | None
    asked_bytes: int
    result: int
    errno: str
    timeout_ns: int
    ready: tuple[Socket, ...]
    name: str
    overlapped: bool = False
    own_ns: int = 0

    @property
    def duration_ns(self) -> int:
        """Time in the call."""
        return self.end_ns - self.begin_ns

    @property
    def is_transfer(self) -> bool:
        """Whether it has moved bytes."""
        return self.call in ("send", "receive") and self.result > 0

    @property
    def is_timed_out(self) -> bool:
        """Whether it is a wait that ended because its time was over."""
        if self.call == "block":
            return self.result == WAIT_TIMEOUT
        if self.call != "wait" or self.timeout_ns <= 0 or self.ready:
            return False
        return self.result == 0 or self.errno == TIMED_OUT


@dataclass
class SocketFacts:
    """What the record says of a socket.

    Attributes:
        kind: STREAM or DATAGRAM; 0: the record has not seen it made.
        peer: Address and port, empty: not told.
        no_delay: When TCP_NODELAY was set and how, in order.
    """

    kind: int = 0
    peer: str = ""
    no_delay: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])

    def has_no_delay(self, at_ns: int) -> bool:
        """Say whether TCP_NODELAY was set at an instant of the record's clock."""
        states = [on for since_ns, on in self.no_delay if since_ns <= at_ns]
        return bool(states) and states[-1]


@dataclass(frozen=True)
class Trace:
    """A whole record.

    Attributes:
        machine: What the program ran on.
        calls: In the order of their begins; of a thread none lies within another.
        sockets: By process and number.
        notes: What the record says that it has not seen.
    """

    machine: str
    calls: Sequence[Timed]
    sockets: Mapping[Socket, SocketFacts]
    notes: Sequence[str]

    @property
    def first_ns(self) -> int:
        """Begin of the first transfer; 0: there is none."""
        return min((call.begin_ns for call in self.calls if call.is_transfer), default=0)

    @property
    def span_ns(self) -> int:
        """Time from the begin of the first transfer to the end of the last."""
        return max((call.end_ns for call in self.calls if call.is_transfer), default=0) - self.first_ns

    def of_sockets(self) -> dict[Socket, list[Timed]]:
        """Return sends and receives by socket, also those that failed, in the order of their ends."""
        found: dict[Socket, list[Timed]] = defaultdict(list)
        for call in sorted(self.calls, key=lambda call: call.end_ns):
            if call.socket and call.call in ("send", "receive"):
                found[call.socket].append(call)
        return found

    def of_threads(self) -> dict[tuple[int, int], list[Timed]]:
        """Return what took a thread's time, by process and thread, in order."""
        found: dict[tuple[int, int], list[Timed]] = defaultdict(list)
        for call in self.calls:
            if not call.overlapped:
                found[call.process, call.thread].append(call)
        return found


def read(path: Path) -> Trace:
    """Read a record.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no whole record with times; names file and line.
    """
    lines = lines_of(path)
    if not lines:
        raise ValueError(f"{path}: no call is in it")
    first, machine = 1, "Linux"
    if windows_record.is_head(lines[0]):
        try:
            windows_record.check_head(lines[0], len(lines) - 1)
            machine = str(lines[0]["machine"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: no whole record: {error!r}") from error
        lines, first = lines[1:], 2
    sockets: dict[Socket, SocketFacts] = defaultdict(SocketFacts)

    def take(numbered: tuple[int, Mapping[str, Any]]) -> Timed:
        call = _timed(*numbered)
        _learn(sockets, call, numbered[1])
        return call

    calls = [(place, line) for place, line in enumerate(lines, first) if "note" not in line]
    timed = each_line(path, ((place, (place, line)) for place, line in calls), take)
    operations = each_line(path, calls, _operation)
    joined = _joined(timed, operations)
    notes = Counter(str(line["note"]) for line in lines if "note" in line)
    return Trace(machine, list(_with_own_time(joined)), sockets, list(notes))


def _timed(place: int, line: Mapping[str, Any]) -> Timed:
    if "begin_monotonic_ns" not in line:
        raise ValueError("no begin_monotonic_ns; an older recorder has written it")
    process, begin_ns = int(line["process"]), int(line["begin_monotonic_ns"])
    duration_ns = int(line["duration_ns"])
    if begin_ns < 0 or duration_ns < 0:
        raise ValueError(f"begin_monotonic_ns {begin_ns}, duration_ns {duration_ns}; allowed: 0 and more")
    return Timed(
        line=place,
        process=process,
        thread=int(line["thread"]),
        begin_ns=begin_ns,
        end_ns=begin_ns + duration_ns,
        call=str(line["call"]),
        socket=(process, int(line["socket"])) if "socket" in line else None,
        asked_bytes=int(line.get("asked", -1)),
        result=int(line["result"]) if "errno" not in line else -1,
        errno=str(line.get("errno", "")),
        timeout_ns=int(line.get("timeout_ns", -1)),
        ready=tuple((process, int(socket)) for socket, _ in line.get("ready", [])),
        name=str(line.get("name", "")),
    )


def _learn(sockets: dict[Socket, SocketFacts], call: Timed, line: Mapping[str, Any]) -> None:
    """Note what a call says of its socket."""
    if call.socket is None:
        return
    own = sockets[call.socket]
    if call.call == "socket" and "type" in line:
        own.kind = int(line["type"]) & TYPE_MASK
    elif call.call == "connect" and "address" in line:
        own.peer = _address(line["address"])
    elif call.call == "accept" and "accepted" in line:
        peer = _address(line["peer"]) if "peer" in line else ""
        sockets[call.process, int(line["accepted"])] = SocketFacts(STREAM, peer, list(own.no_delay))
    elif call.call == "setsockopt" and call.result == 0:
        if (line["level"], line["option"]) == (TCP_LEVEL, TCP_NODELAY):
            own.no_delay.append((call.end_ns, bool(line.get("value", 1))))
    elif call.call == "tune" and call.name == "no_delay" and call.result == 1:
        own.no_delay.append((call.end_ns, True))
    elif call.call == "send" and own.kind == DATAGRAM and not own.peer and "address" in line:
        own.peer = _address(line["address"])


def _address(pair: Sequence[Any]) -> str:
    host, port = pair
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def _operation(line: Mapping[str, Any]) -> tuple[int, bool]:
    """Return the operation's number, 0: none, and whether the line is its end."""
    return int(line.get("operation", 0)), line.get("function") == "completion"


def _joined(timed: Sequence[Timed], operations: Sequence[tuple[int, bool]]) -> Iterator[Timed]:
    """Yield calls, with the ends of operations put to their begins."""
    begun: dict[tuple[int, int], Timed] = {}
    for call, (number, is_end) in zip(timed, operations, strict=True):
        key = (call.process, number)
        if not number or (not is_end and call.errno != windows_record.PENDING):
            yield call
        elif not is_end:
            begun[key] = call
            yield call  # the thread's time in it
        elif key in begun:
            post = begun.pop(key)
            begin_ns, asked_bytes = post.begin_ns, post.asked_bytes
            yield replace(call, begin_ns=begin_ns, asked_bytes=asked_bytes, overlapped=True)


def _with_own_time(calls: Iterator[Timed]) -> Iterator[Timed]:
    """Yield calls in the order of their begins without those that another of their thread has made within."""
    last: dict[tuple[int, int], Timed] = {}
    for call in sorted(calls, key=lambda call: (call.begin_ns, -call.end_ns, call.line)):
        if call.overlapped:
            yield call
            continue
        before = last.get((call.process, call.thread))
        if before and call.begin_ns < before.end_ns and call.end_ns <= before.end_ns:
            continue
        own = replace(call, own_ns=max(0, call.begin_ns - before.end_ns) if before else 0)
        last[call.process, call.thread] = own
        yield own
