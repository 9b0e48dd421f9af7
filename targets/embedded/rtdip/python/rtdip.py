# SPDX-License-Identifier: Apache-2.0
"""Ports of RTDiP by librtdip; the service of the interface, `bw-rtdip serve`, gives them.

    from rtdip import Address, Handle, Priority

    with Handle() as handle:
        own_port = handle.bind()
        handle.send(Address("02:00:00:00:00:01", 7000), b"hello", from_port=own_port, priority=Priority.LOW)
        print(handle.receive(timeout_s=1.0))

`RTDIP_LIBRARY` names the library where it is neither beside this file nor where the system looks.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from ipaddress import IPv4Address
from pathlib import Path
from types import TracebackType

__all__ = ["Address", "Counts", "Handle", "Message", "Priority", "RtdipError", "TimedOutError", "resolve"]

DATA_MAX_BYTES = 8988
_MAC_BYTES = 6
_BYPASS_QDISC = 1
_NS_PER_S = 1_000_000_000
_SLICE_NS = 200_000_000
"""Longest wait in the library: a signal that comes right before it would else be seen at its end."""


class Priority(IntEnum):
    """Of a frame; lower numbers come first."""

    HIGH = 0
    MEDIUM = 1
    LOW = 2


class RtdipError(OSError):
    """A call was refused: `errno` says why, and so does `name`, such as "EADDRINUSE"."""

    def __init__(self, code: int, call: str) -> None:
        self.name = errno.errorcode.get(code, str(code))
        super().__init__(code, f"{call}: {self.name}: {os.strerror(code)}")


class TimedOutError(RtdipError, TimeoutError):
    """Nothing came in time."""


@dataclass(frozen=True)
class Address:
    """Where frames go: an Ethernet address, "02:00:00:00:00:01", and a port, 1..65535 (0: none answers)."""

    mac: str
    port: int


@dataclass(frozen=True)
class Message:
    """A frame that has come.

    Attributes:
        data: At most 8988 bytes.
        source: Who sent it.
        to_port: Port of the handle that it was for.
        priority: Of the frame.
        sequence: Counted by the source's port for each place that it sends to, modulo 2^32.
        received_monotonic_ns: When the XDP program saw it, CLOCK_MONOTONIC.
    """

    data: bytes
    source: Address
    to_port: int
    priority: Priority
    sequence: int
    received_monotonic_ns: int


@dataclass(frozen=True)
class Counts:
    """Frames of a handle.

    Attributes:
        received: Given to the program.
        sent: Given to the card.
        unheard: Dropped in the handle: more of one priority had come than a port's ring holds, or its port
            was given back.
        missing: Sequence numbers of senders that did not come, or were unheard.
    """

    received: int
    sent: int
    unheard: int
    missing: int


class _Address(ctypes.Structure):
    _fields_ = (("mac", ctypes.c_uint8 * _MAC_BYTES), ("port", ctypes.c_uint16))


class _Message(ctypes.Structure):
    _fields_ = (
        ("source", _Address),
        ("to_port", ctypes.c_uint16),
        ("priority", ctypes.c_uint),
        ("sequence", ctypes.c_uint32),
        ("received_monotonic_ns", ctypes.c_int64),
        ("size_bytes", ctypes.c_size_t),
    )


class _Counts(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("received", "sent", "unheard", "missing"))


@cache
def _load() -> ctypes.CDLL:
    beside = Path(__file__).with_name("librtdip.so")
    library = ctypes.CDLL(
        os.environ.get("RTDIP_LIBRARY") or (str(beside) if beside.exists() else beside.name)
    )
    handle, out = ctypes.c_void_p, ctypes.POINTER
    library.rtdip_open.argtypes = [ctypes.c_char_p, ctypes.c_uint, out(handle)]
    library.rtdip_close.argtypes = [handle]
    library.rtdip_close.restype = None
    library.rtdip_bind.argtypes = [handle, ctypes.c_uint16, ctypes.c_uint32]
    library.rtdip_unbind.argtypes = [handle, ctypes.c_uint16]
    address, size = out(_Address), ctypes.c_size_t
    library.rtdip_send.argtypes = [handle, address, ctypes.c_uint16, ctypes.c_uint, ctypes.c_char_p, size]
    library.rtdip_send.restype = ctypes.c_int64
    library.rtdip_receive.argtypes = [handle, out(_Message), ctypes.c_char_p, size, ctypes.c_int64]
    library.rtdip_descriptor.argtypes = [handle]
    library.rtdip_resolve.argtypes = [ctypes.c_uint32, ctypes.c_uint8 * _MAC_BYTES]
    library.rtdip_counts.argtypes = [handle, out(_Counts)]
    library.rtdip_counts.restype = None
    return library


def _mac_bytes(mac: str) -> bytes:
    try:
        parts = bytes(int(part, 16) for part in mac.split(":"))
    except ValueError:
        parts = b""
    if len(parts) != _MAC_BYTES:
        raise ValueError(f'mac: "{mac}"; needed: 6 bytes as 02:00:00:00:00:01')
    return parts


def _within(name: str, value: int, maximum: int) -> int:
    if not 0 <= value <= maximum:
        raise ValueError(f"{name}: {value}; allowed: 0..{maximum}")
    return value


def _check(call: str, result: int) -> int:
    if result == -errno.ETIMEDOUT:
        raise TimedOutError(-result, call)
    if result < 0:
        raise RtdipError(-result, call)
    return result


def resolve(ipv4: str) -> str:
    """Return the Ethernet address of a neighbour by the kernel's table.

    Raises:
        RtdipError: EAGAIN: not known yet; the kernel asks for it now. Or another.
    """
    mac = (ctypes.c_uint8 * _MAC_BYTES)()
    _check("rtdip_resolve", _load().rtdip_resolve(int(IPv4Address(ipv4)), mac))
    return bytes(mac).hex(":")


class Handle:
    """A handle of librtdip, one thread's; close it, or use it as a context manager.

    One that is dropped is closed.
    """

    def __init__(
        self, socket_path: str | os.PathLike[str] | None = None, *, bypass_qdisc: bool = False
    ) -> None:
        """Open it.

        Args:
            socket_path: Of the service; None: its usual place.
            bypass_qdisc: Frames go past the queueing discipline.

        Raises:
            RtdipError: ENOENT or ECONNREFUSED: no service; EACCES.
        """
        self._handle = ctypes.c_void_p()
        self._descriptor = -1
        self._room = ctypes.create_string_buffer(DATA_MAX_BYTES)
        path = None if socket_path is None else os.fsencode(socket_path)
        flags = _BYPASS_QDISC if bypass_qdisc else 0
        _check("rtdip_open", _load().rtdip_open(path, flags, ctypes.byref(self._handle)))

    def __enter__(self) -> Handle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle; its ports are free. Again is harmless."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if handle:
            _load().rtdip_close(handle)

    def bind(self, port: int = 0, ring_bytes: int = 0) -> int:
        """Take a port and return it.

        Args:
            port: 1..65535; 0: any that is free.
            ring_bytes: A power of two, 4096..64 Mi; 0: 256 Ki.

        Raises:
            RtdipError: EADDRINUSE, EACCES (up to 1023: root's), EINVAL, EBUSY (read what has come first), …
        """
        port, ring_bytes = _within("port", port, 0xFFFF), _within("ring_bytes", ring_bytes, 0xFFFFFFFF)
        return _check("rtdip_bind", _load().rtdip_bind(self._open(), port, ring_bytes))

    def unbind(self, port: int) -> None:
        """Give a port back; raises RtdipError."""
        _check("rtdip_unbind", _load().rtdip_unbind(self._open(), _within("port", port, 0xFFFF)))

    def send(
        self, to: Address, data: bytes, *, from_port: int = 0, priority: Priority = Priority.HIGH
    ) -> None:
        """Send one frame.

        Args:
            to: Who gets it.
            data: As many bytes as the MTU has room for, at most 8988.
            from_port: A port of the handle, by which may be answered; 0: none.
            priority: Of the frame.

        Raises:
            RtdipError: EMSGSIZE, EINVAL (not the handle's port), EAGAIN (the card's queue is full), …
        """
        mac = (ctypes.c_uint8 * _MAC_BYTES)(*_mac_bytes(to.mac))
        address = _Address(mac, _within("to.port", to.port, 0xFFFF))
        from_port = _within("from_port", from_port, 0xFFFF)
        result = _load().rtdip_send(
            self._open(), ctypes.byref(address), from_port, Priority(priority), bytes(data), len(data)
        )
        _check("rtdip_send", result)

    def receive(self, timeout_s: float | None = None) -> Message:
        """Return the frame that comes first: of the highest priority, then the oldest.

        Args:
            timeout_s: 0: do not wait; None: without end.

        Raises:
            TimedOutError: Nothing came in time.
            RtdipError: EPIPE: the service has ended; who does not wait hears of it within a millisecond.
        """
        message = _Message()
        deadline_ns = None if timeout_s is None else time.monotonic_ns() + round(timeout_s * _NS_PER_S)
        while True:
            left_ns = _SLICE_NS if deadline_ns is None else max(0, deadline_ns - time.monotonic_ns())
            result = _load().rtdip_receive(
                self._open(), ctypes.byref(message), self._room, DATA_MAX_BYTES, min(left_ns, _SLICE_NS)
            )
            # A signal's handler runs between two slices: it raises, or the wait goes on.
            if result not in {-errno.EINTR, -errno.ETIMEDOUT}:
                break
            if deadline_ns is not None and time.monotonic_ns() >= deadline_ns:
                result = -errno.ETIMEDOUT
                break
        _check("rtdip_receive", result)
        source = Address(bytes(message.source.mac).hex(":"), message.source.port)
        return Message(
            self._room.raw[: message.size_bytes],
            source,
            message.to_port,
            Priority(message.priority),
            message.sequence,
            message.received_monotonic_ns,
        )

    def fileno(self) -> int:
        """Return a descriptor that is readable while frames may be there: for select, poll, asyncio.

        Once it is, read until nothing is there, `receive(timeout_s=0)`: what the handle has sorted by
        priority shows in no descriptor. It stays readable when the service has ended: watch it no more
        after EPIPE. It is the handle's own: do not close it.
        """
        if self._descriptor < 0:
            self._descriptor = _check("rtdip_descriptor", _load().rtdip_descriptor(self._open()))
        return self._descriptor

    def counts(self) -> Counts:
        """Return what the handle has counted."""
        raw = _Counts()
        _load().rtdip_counts(self._open(), ctypes.byref(raw))
        return Counts(raw.received, raw.sent, raw.unheard, raw.missing)

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ValueError("the handle is closed")
        return self._handle
