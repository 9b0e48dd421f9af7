# SPDX-License-Identifier: Apache-2.0
"""A responder of two-way time transfer with a clock of known error, and packets by hand."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from tests.traffic_gen.lab import tai_ns

PACKET = struct.Struct(">4sHHIIQqqq")
REQUEST, REPLY = 1, 2


@dataclass(frozen=True)
class Packet:
    """A request or a reply, times in nanoseconds."""

    kind: int
    sequence: int
    cookie: int
    t1_ns: int
    t2_ns: int = 0
    t3_ns: int = 0

    def pack(self) -> bytes:
        """Return the 48 bytes of the wire."""
        return PACKET.pack(
            b"BWO1", 1, self.kind, self.sequence, 0, self.cookie, self.t1_ns, self.t2_ns, self.t3_ns
        )

    @classmethod
    def unpack(cls, wire: bytes) -> Self:
        """Read the wire."""
        magic, version, kind, sequence, reserved, cookie, t1_ns, t2_ns, t3_ns = PACKET.unpack(wire)
        assert (magic, version, reserved) == (b"BWO1", 1, 0)
        return cls(kind, sequence, cookie, t1_ns, t2_ns, t3_ns)


@dataclass(frozen=True)
class Error:
    """What is wrong with a clock, as a function of local time."""

    offset_ns: int = 0
    rate_ppb: int = 0
    step_ns: int = 0
    step_after_s: float = float("inf")
    start_ns: int = field(default_factory=tai_ns)

    def offset_at_ns(self, local_ns: int) -> int:
        """Return peer - local."""
        age_ns = local_ns - self.start_ns
        step_ns = self.step_ns if age_ns > self.step_after_s * 1e9 else 0
        return self.offset_ns + age_ns * self.rate_ppb // 10**9 + step_ns

    def now_ns(self) -> int:
        """Read the clock."""
        local_ns = tai_ns()
        return local_ns + self.offset_at_ns(local_ns)


class Responder:
    """Answers requests at 127.0.0.1 from a thread. A context manager."""

    def __init__(
        self,
        error: Error,
        there_s: float = 0,
        back_s: float = 0,
        forge: Callable[[Packet], list[bytes]] | None = None,
    ) -> None:
        """Delay requests and replies; `forge` makes the datagrams of an answer that is to be wrong."""
        self.error = error
        self._there_s = there_s
        self._back_s = back_s
        self._forge = forge
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _answers(self, request: Packet) -> list[bytes]:
        if self._forge:
            return self._forge(request)
        time.sleep(self._there_s)
        t2_ns = self.error.now_ns()
        t3_ns = self.error.now_ns()
        time.sleep(self._back_s)
        return [Packet(REPLY, request.sequence, request.cookie, request.t1_ns, t2_ns, t3_ns).pack()]

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                wire, source = self._socket.recvfrom(2048)
            except TimeoutError:
                continue
            for answer in self._answers(Packet.unpack(wire)):
                self._socket.sendto(answer, source)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._socket.close()
