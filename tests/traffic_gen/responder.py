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
    start_ns: int = field(default_factory=tai_ns)

    def offset_at_ns(self, local_ns: int) -> int:
        """Return peer - local."""
        age_ns = local_ns - self.start_ns
        return self.offset_ns + age_ns * self.rate_ppb // 10**9

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
        step: tuple[int, int] = (0, 0),
    ) -> None:
        """Delay requests and replies.

        Args:
            error: What is wrong with its clock.
            there_s: Delay of requests.
            back_s: Delay of replies.
            forge: Makes the datagrams of an answer that is to be wrong.
            step: After so many answers its clock is stepped by so many nanoseconds.
        """
        self.error = error
        self.answered = 0
        self._step = step
        self._there_s = there_s
        self._back_s = back_s
        self._forge = forge
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.1)  # then it looks whether it is to end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _answers(self, request: Packet) -> list[bytes]:
        if self._forge:
            return self._forge(request)
        time.sleep(self._there_s)
        step_after, step_ns = self._step
        step_ns = step_ns if self.answered >= step_after else 0
        t2_ns = self.error.now_ns() + step_ns
        t3_ns = self.error.now_ns() + step_ns
        self.answered += 1
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
