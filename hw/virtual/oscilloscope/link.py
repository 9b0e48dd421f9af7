# SPDX-License-Identifier: Apache-2.0
"""One connection: messages in, replies out, and what happens when the other side does not keep the order."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from enum import Enum

MESSAGE_BYTES_MAX = 65_536
WAITING_BYTES_MAX = 1 << 20
"""What is taken in while the instrument works. Behind more no hanging up is seen: it is given up."""
CHUNK_BYTES = 65_536
OUTPUT_BYTES = 1 << 18
"""What the network takes of a reply that nobody reads: an instrument's output buffer is not endless."""

POLL_S = 0.05


class ReplyFate(Enum):
    """What became of a reply."""

    WHOLE = "whole"
    INTERRUPTED = "interrupted"
    LOST = "lost"


class Link:
    """A connection to a controller. Messages end in a line feed; so do replies.

    A reply is dropped when another message arrives before the network has taken it: the rule of IEEE 488.2
    (6.3.2.3, query INTERRUPTED), as far as a raw socket can know it.
    """

    def __init__(self, connection: socket.socket, ended: Callable[[], bool]) -> None:
        """Take over a connection.

        Args:
            connection: Connected socket.
            ended: Tells that the instrument is being switched off.
        """
        self._connection = connection
        self._ended = ended
        self._received = bytearray()
        self._no_more = False
        self.oversized = False
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, OUTPUT_BYTES)

    def read_message(self) -> bytes | None:
        """Return the next message without its end, or None when there is none any more.

        A message longer than MESSAGE_BYTES_MAX comes back cut, and `oversized` is set; its rest is skipped.
        """
        self.oversized = False
        cut: bytes | None = None
        while not self._ended():
            place = self._received.find(b"\n")
            if place >= 0:
                message = bytes(self._received[:place])
                del self._received[: place + 1]
                if cut is None and place > MESSAGE_BYTES_MAX:
                    cut, self.oversized = message[:80], True
                return message if cut is None else cut
            if len(self._received) > MESSAGE_BYTES_MAX:
                cut, self.oversized = cut or bytes(self._received[:80]), True
                self._received.clear()
            if self._no_more:
                return None
            self._receive(POLL_S)
        return None

    def message_waits(self) -> bool:
        """Tell whether a further message is complete already."""
        self._receive(0)
        return b"\n" in self._received

    def gone(self) -> bool:
        """Tell whether the other side has gone, or the instrument ends; for use while nothing is sent."""
        self._receive(0, WAITING_BYTES_MAX)
        return self._no_more or self._ended() or len(self._received) > WAITING_BYTES_MAX

    def send(self, reply: bytes, stall_after: int | None = None) -> tuple[ReplyFate, int]:
        """Send a reply; return what became of it and how many bytes the network took.

        Args:
            reply: All of it, its line feed included.
            stall_after: Send this many bytes, then nothing until the other side hangs up.
        """
        sent = 0
        end = len(reply) if stall_after is None else min(stall_after, len(reply))
        view = memoryview(reply)
        while sent < end:
            if self._ended():
                return ReplyFate.LOST, sent
            if self.message_waits():
                return ReplyFate.INTERRUPTED, sent
            if not select.select([], [self._connection], [], POLL_S)[1]:
                continue
            try:
                sent += self._connection.send(view[sent : min(end, sent + CHUNK_BYTES)])
            except BlockingIOError:
                continue
            except OSError:
                return ReplyFate.LOST, sent
        while end < len(reply) and not self.gone():
            select.select([self._connection], [], [], POLL_S)
            self._received.clear()
        return (ReplyFate.WHOLE if end == len(reply) else ReplyFate.LOST), sent

    def _receive(self, timeout_s: float, bytes_max: int = MESSAGE_BYTES_MAX) -> None:
        """Take in what has arrived, as long as the longest message, or so much, has room."""
        if self._no_more or len(self._received) > bytes_max:
            return
        if not select.select([self._connection], [], [], timeout_s)[0]:
            return
        try:
            data = self._connection.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._no_more = not data
        self._received += data
