# SPDX-License-Identifier: Apache-2.0
"""The user-mode stack's core by its C interface, in virtual time: packets in, packets out, no kernel.

Each `Stack` loads its own copy of the library, so that one process has as many as it needs.
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import shutil
from collections.abc import Callable
from ctypes import (
    POINTER,
    c_char_p,
    c_int,
    c_int64,
    c_size_t,
    c_uint,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

TCP, UDP = 0, 1
READABLE, WRITABLE, ERROR, PEER_CLOSED, HUNG_UP = 1, 2, 4, 8, 16
MORE, PEEK, TRUNCATE = 1, 2, 4
NO_DELAY, REUSE_ADDRESS, ONLY_IPV6, KEEP_ALIVE, KEEP_IDLE_S, KEEP_INTERVAL_S, KEEP_COUNT = range(7)
LINGER_S, SEND_BYTES, RECEIVE_BYTES, USER_TIMEOUT_MS, SEGMENT_BYTES = range(7, 12)
NEVER_US = 2**64 - 1

Family = int
"""4 or 6."""
Endpoint = tuple[str, int]
_copies = count()


class _Address(ctypes.Structure):
    _fields_ = (("family", c_int), ("ip", c_uint8 * 16), ("port", c_uint16))


class _Arrival(ctypes.Structure):
    _fields_ = (("to", _Address), ("realtime_ns", c_uint64))


class Info(ctypes.Structure):
    """`struct stack_info`."""

    _fields_ = (
        ("state", c_int),
        ("send_unacknowledged", c_uint32),
        ("send_next", c_uint32),
        ("receive_next", c_uint32),
        ("congestion_window_bytes", c_uint64),
        ("send_window_bytes", c_uint64),
        ("receive_window_bytes", c_uint64),
        ("unsent_bytes", c_uint64),
        ("unacknowledged_bytes", c_uint64),
        ("in_flight_bytes", c_uint64),
        ("smoothed_rtt_us", c_uint64),
        ("retransmission_timeout_us", c_uint64),
        ("sent_segments", c_uint64),
        ("retransmitted", c_uint64),
        ("retransmitted_by_rack", c_uint64),
        ("retransmitted_by_probe", c_uint64),
        ("retransmitted_by_timeout", c_uint64),
        ("duplicates", c_uint64),
        ("segment_bytes", c_uint32),
    )


COUNTS = (
    *("packets_in", "packets_out", "ip_malformed", "ip_checksum"),
    *("tcp_in", "tcp_out", "tcp_malformed", "tcp_checksum", "tcp_no_memory"),
    *("udp_in", "udp_out", "udp_malformed", "udp_checksum", "udp_no_port", "udp_full"),
    *("retransmitted", "retransmitted_by_rack", "retransmitted_by_probe", "retransmitted_by_timeout"),
    "duplicates",
)


class _Counts(ctypes.Structure):
    _fields_ = tuple((name, c_uint64) for name in COUNTS)


_Output = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
_Changed = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
_Random = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)


class _Host(ctypes.Structure):
    _fields_ = (("output", _Output), ("changed", _Changed), ("random", _Random))


def _address(where: Endpoint) -> _Address:
    ip = ipaddress.ip_address(where[0])
    packed = ip.packed.ljust(16, b"\0")
    return _Address(ip.version, (c_uint8 * 16)(*packed), where[1])


def _endpoint(address: _Address) -> Endpoint:
    length = 4 if address.family == 4 else 16
    return str(ipaddress.ip_address(bytes(address.ip[:length]))), int(address.port)


class StackError(OSError):
    """A call of the stack that failed; `errno` says why."""


class Stack:
    """One stack with an interface, in time that only the test moves.

    Attributes:
        sent: IP packets that the stack has sent and nobody has taken yet.
        now_us: The time.
    """

    def __init__(
        self, library: Path, folder: Path, *addresses: str, seed: int = 1, start_us: int = 0
    ) -> None:
        """Load the library and begin.

        Args:
            library: `libbw-stack.so`.
            folder: For this stack's own copy of it.
            addresses: Of the interface, at most one of IPv4.
            seed: Of what nobody should be able to guess.
            start_us: The first instant.
        """
        own = folder / f"stack-{next(_copies)}.so"
        shutil.copyfile(library, own)
        self.library = ctypes.CDLL(str(own))
        self.sent: list[bytes] = []
        self.now_us = start_us
        self.changed: list[int] = []
        self.on_output: Callable[[bytes], None] | None = None
        self._random = Random(seed)
        self._host = _Host(_Output(self._output), _Changed(self._changed), _Random(self._fill))
        for name, returned, arguments in (
            ("stack_init", c_int, (c_void_p, c_void_p, c_uint64)),
            ("stack_next_us", c_uint64, ()),
            ("stack_advance_us", None, (c_uint64,)),
            ("stack_input", None, (c_char_p, c_size_t)),
            ("stack_set_arrival", None, (c_uint64,)),
            ("stack_arrival", None, (c_void_p, POINTER(_Arrival))),
            ("stack_open", c_void_p, (c_int, c_int, POINTER(c_int))),
            ("stack_accept", c_void_p, (c_void_p, POINTER(_Address), POINTER(c_int))),
            ("stack_send", c_int64, (c_void_p, c_char_p, c_size_t, c_uint, POINTER(_Address))),
            (
                "stack_send_from",
                c_int64,
                (c_void_p, c_char_p, c_size_t, POINTER(_Address), POINTER(_Address)),
            ),
            ("stack_receive", c_int64, (c_void_p, c_char_p, c_size_t, c_uint, POINTER(_Address))),
            ("stack_ready", c_uint, (c_void_p,)),
            ("stack_set", c_int, (c_void_p, c_int, c_int)),
            ("stack_get", c_int, (c_void_p, c_int, POINTER(c_int))),
            ("stack_close", c_int, (c_void_p,)),
            ("stack_bind", c_int, (c_void_p, POINTER(_Address))),
            ("stack_connect", c_int, (c_void_p, POINTER(_Address))),
            ("stack_listen", c_int, (c_void_p, c_int)),
            ("stack_shutdown", c_int, (c_void_p, c_int)),
            ("stack_take_error", c_int, (c_void_p,)),
            ("stack_take_soft_error", c_int, (c_void_p,)),
            ("stack_unreachable", None, (c_char_p, c_size_t, c_int)),
            ("stack_local", c_int, (c_void_p, POINTER(_Address))),
            ("stack_peer", c_int, (c_void_p, POINTER(_Address))),
            ("stack_info", c_int, (c_void_p, POINTER(Info))),
            ("stack_add_address", c_int, (POINTER(_Address),)),
            ("stack_remove_address", c_int, (POINTER(_Address),)),
            ("stack_set_mtu", c_int, (c_size_t,)),
            ("stack_set_congestion", None, (c_int,)),
            ("stack_set_source", None, (c_void_p, POINTER(_Address))),
            ("stack_counts", None, (POINTER(_Counts),)),
        ):
            call = getattr(self.library, name)
            call.restype, call.argtypes = returned, arguments
        self.call("stack_init", ctypes.byref(self._host), None, start_us)
        for each in addresses:
            self.call("stack_add_address", _address((each, 0)))

    def call(self, name: str, *arguments: object) -> int:
        """Call a function of the library; raises StackError where it returns less than 0."""
        result = getattr(self.library, name)(*arguments)
        if result is not None and result < 0:
            raise StackError(-result, f"{name}: {errno.errorcode.get(-result, result)}")
        return int(result or 0)

    def _output(self, _argument: object, packet: int, size: int) -> None:
        data = ctypes.string_at(packet, size)
        if self.on_output is not None:
            self.on_output(data)
        else:
            self.sent.append(data)

    def _changed(self, _argument: object, sock: int) -> None:
        self.changed.append(sock)

    def _fill(self, _argument: object, data: int, size: int) -> None:
        ctypes.memmove(data, self._random.randbytes(size), size)

    def input(self, packet: bytes) -> None:
        """Hand in an IP packet."""
        self.library.stack_input(packet, len(packet))

    def set_arrival(self, realtime_ns: int) -> None:
        """Say when what is handed in next has arrived."""
        self.library.stack_set_arrival(realtime_ns)

    def take(self) -> list[bytes]:
        """Return the packets that were sent since the last time."""
        taken, self.sent = self.sent, []
        return taken

    @property
    def next_us(self) -> int:
        """Return when a timer is due, NEVER_US if none is."""
        return int(self.library.stack_next_us())

    def advance_to_us(self, now_us: int) -> None:
        """Move the time on, timer by timer, so that none is late."""
        while self.now_us < now_us:
            due_us = max(self.next_us, self.now_us + 1)
            self.now_us = min(due_us, now_us)
            self.library.stack_advance_us(self.now_us)

    def advance_ms(self, ms: float) -> None:
        """Move the time on by that much."""
        self.advance_to_us(self.now_us + round(ms * 1000))

    def add_address(self, ip: str) -> None:
        """Give the interface an address."""
        self.call("stack_add_address", _address((ip, 0)))

    def remove_address(self, ip: str) -> None:
        """Take an address of the interface away."""
        self.call("stack_remove_address", _address((ip, 0)))

    def set_mtu(self, mtu_bytes: int) -> None:
        """Set the interface's largest packet."""
        self.call("stack_set_mtu", mtu_bytes)

    def set_source(self, sock: Socket, ip: str) -> None:
        """Say from which address a socket that is bound to all sends."""
        self.call("stack_set_source", sock.handle, _address((ip, 0)))

    def counts(self) -> dict[str, int]:
        """Return what the stack has counted."""
        counts = _Counts()
        self.library.stack_counts(counts)
        return {name: int(getattr(counts, name)) for name in COUNTS}

    def open(self, type_: int, family: Family = 4) -> Socket:
        """Open a socket."""
        err = c_int()
        handle = self.library.stack_open(family, type_, err)
        if not handle:
            raise StackError(-err.value, "stack_open")
        return Socket(self, handle)


@dataclass(eq=False)
class Socket:
    """A socket of a stack; methods raise StackError."""

    stack: Stack
    handle: int

    def bind(self, ip: str, port: int) -> Socket:
        """Bind and return itself."""
        self.stack.call("stack_bind", self.handle, _address((ip, port)))
        return self

    def listen(self, backlog: int = 16) -> Socket:
        """Listen and return itself."""
        self.stack.call("stack_listen", self.handle, backlog)
        return self

    def connect(self, ip: str, port: int) -> Socket:
        """Begin to connect; a connection under way is no error."""
        try:
            self.stack.call("stack_connect", self.handle, _address((ip, port)))
        except StackError as error:
            if error.errno != errno.EINPROGRESS:
                raise
        return self

    def accept(self) -> tuple[Socket, Endpoint]:
        """Accept a connection."""
        err, peer = c_int(), _Address()
        handle = self.stack.library.stack_accept(self.handle, peer, err)
        if not handle:
            raise StackError(-err.value, "stack_accept")
        return Socket(self.stack, handle), _endpoint(peer)

    def send(self, data: bytes, to: Endpoint | None = None, flags: int = 0) -> int:
        """Send and return how many bytes were taken."""
        peer = _address(to) if to else None
        return self.stack.call("stack_send", self.handle, data, len(data), flags, peer)

    def send_from(self, data: bytes, ip: str, to: Endpoint) -> int:
        """Send a datagram from an address of the interface."""
        source = _address((ip, 0))
        return self.stack.call("stack_send_from", self.handle, data, len(data), source, _address(to))

    @property
    def arrival(self) -> tuple[Endpoint, int]:
        """Return where to and when what was read last has come; no address: it says none."""
        arrival = _Arrival()
        self.stack.library.stack_arrival(self.handle, arrival)
        return _endpoint(arrival.to) if arrival.to.family else ("", 0), arrival.realtime_ns

    def receive(self, size: int = 65536, flags: int = 0) -> bytes:
        """Receive; empty is the end of the stream (or an empty datagram)."""
        return self.receive_from(size, flags)[0]

    def receive_from(self, size: int = 65536, flags: int = 0) -> tuple[bytes, Endpoint]:
        """Receive and say from whom."""
        data, sender = ctypes.create_string_buffer(size), _Address()
        length = self.stack.call("stack_receive", self.handle, data, size, flags, sender)
        where = _endpoint(sender) if sender.family else ("", 0)
        return data.raw[: min(length, size)], where

    def shutdown(self, how: int) -> None:
        """Shut one way or both."""
        self.stack.call("stack_shutdown", self.handle, how)

    def close(self) -> None:
        """Close it: the object is not to be used again."""
        self.stack.call("stack_close", self.handle)

    @property
    def ready(self) -> int:
        """Say what it can do now (READABLE and others)."""
        return self.stack.call("stack_ready", self.handle)

    def take_error(self) -> int:
        """Take the pending error, 0 if there is none."""
        return self.stack.call("stack_take_error", self.handle)

    def take_soft_error(self) -> int:
        """Take what was said of packets that did not arrive, 0 if nothing was."""
        return self.stack.call("stack_take_soft_error", self.handle)

    def set(self, option: int, value: int) -> None:
        """Set an option."""
        self.stack.call("stack_set", self.handle, option, value)

    def get(self, option: int) -> int:
        """Read an option."""
        value = c_int()
        self.stack.call("stack_get", self.handle, option, value)
        return value.value

    @property
    def local(self) -> Endpoint:
        """Return its own end."""
        address = _Address()
        self.stack.call("stack_local", self.handle, address)
        return _endpoint(address)

    @property
    def peer(self) -> Endpoint:
        """Return the other end."""
        address = _Address()
        self.stack.call("stack_peer", self.handle, address)
        return _endpoint(address)

    @property
    def info(self) -> Info:
        """Say what the connection is doing."""
        info = Info()
        self.stack.call("stack_info", self.handle, info)
        return info


class Wire:
    """Two stacks and a wire between them, with a delay and with what a test does to packets on their way."""

    def __init__(self, one: Stack, other: Stack, delay_us: int = 50) -> None:
        """Join two stacks whose time is the same."""
        self.ends = (one, other)
        self.delay_us = delay_us
        self.drop: Callable[[int, bytes], bool] = lambda _end, _packet: False
        self._under_way: list[tuple[int, int, int, bytes]] = []
        self._order = count()
        for place, end in enumerate(self.ends):
            end.on_output = lambda packet, place=place: self._put(place, packet)

    def _put(self, sender: int, packet: bytes) -> None:
        if not self.drop(sender, packet):
            due_us = self.ends[sender].now_us + self.delay_us
            self._under_way.append((due_us, next(self._order), 1 - sender, packet))

    def run_ms(self, ms: float, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; return whether `until` became true (then no more passes)."""
        end_us = self.ends[0].now_us + round(ms * 1000)
        while True:
            if until is not None and until():
                return True
            times = [end.next_us for end in self.ends] + [each[0] for each in self._under_way]
            now_us = min(end_us, max(min(times), self.ends[0].now_us))
            for end in self.ends:
                end.advance_to_us(now_us)
            due = sorted(each for each in self._under_way if each[0] <= now_us)
            self._under_way = [each for each in self._under_way if each[0] > now_us]
            for _, _, receiver, packet in due:
                self.ends[receiver].input(packet)
            if now_us == end_us and not due:
                return until is not None and until()
