# SPDX-License-Identifier: Apache-2.0
"""Transcripts of instruments, and a server on a loopback socket that speaks them.

A transcript is a text file of requests and replies; in replies Python's escapes stand for bytes.

    # comment                 also the licence line
    include FILE              another transcript of the same folder, first
    > REQUEST                 a message without its newline; a later entry of it replaces the earlier one
    < REPLY                   its reply, newline added; several replies are given in turn, the last one again
    <raw REPLY                the same without newline
    <close REPLY              sends this and hangs up
    <silent                   sends nothing

Requests without a reply are commands. What is not in the transcript is recorded as unexpected.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"


@dataclass(frozen=True)
class Reply:
    """What to send, and whether to hang up then."""

    data: bytes
    close: bool = False


@dataclass
class Entry:
    """The replies to one request."""

    replies: list[Reply] = field(default_factory=list[Reply])
    used: int = 0

    def next(self) -> Reply | None:
        """Return the reply whose turn it is; None: a command."""
        if not self.replies:
            return None
        reply = self.replies[min(self.used, len(self.replies) - 1)]
        self.used += 1
        return reply


def read_transcript(text: str) -> dict[str, Entry]:
    """Read a transcript: request → replies."""
    entries: dict[str, Entry] = {}
    request = ""
    for line in text.splitlines():
        if line.startswith("include "):
            entries |= read_transcript((FOLDER / line.removeprefix("include ").strip()).read_text())
        elif line.startswith(">"):
            request = line[1:].strip()
            entries[request] = Entry()
        elif line.startswith("<"):
            kind, _, said = line.partition(" ")
            data = re.sub(
                rb"\\x([0-9a-f]{2})|\\n",
                lambda m: bytes.fromhex(m[1].decode()) if m[1] else b"\n",
                said.encode(),
            )
            if kind == "<":
                data += b"\n"
            entries[request].replies.append(Reply(data, kind == "<close"))
        elif line.strip() and not line.startswith("#"):
            raise ValueError(f"transcript: {line!r}")
    return entries


class TranscriptServer:
    """An instrument that says what a transcript says, to one client after the other."""

    def __init__(self, text: str) -> None:
        self.entries = read_transcript(text)
        self.requests: list[str] = []
        self.unexpected: list[str] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopping = False
        self._client: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def resource(self) -> str:
        """The VISA name of the server."""
        return f"TCPIP::127.0.0.1::{self._listener.getsockname()[1]}::SOCKET"

    def __enter__(self) -> TranscriptServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        if self._client is not None:
            with contextlib.suppress(OSError):  # it may have gone
                self._client.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    def _serve(self) -> None:
        while not self._stopping:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._client = client
            try:
                self._talk(client)
            except OSError:
                continue
            finally:
                client.close()

    def _talk(self, client: socket.socket) -> None:
        with client.makefile("rb") as lines:
            for line in lines:
                request = line.decode().rstrip("\n")
                self.requests.append(request)
                entry = self.entries.get(request)
                if entry is None:
                    self.unexpected.append(request)
                    continue
                reply = entry.next()
                if reply is None:
                    continue
                client.sendall(reply.data)
                if reply.close:
                    client.shutdown(socket.SHUT_RDWR)
                    return
