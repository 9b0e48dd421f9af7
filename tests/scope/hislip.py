# SPDX-License-Identifier: Apache-2.0
"""As little of HiSLIP (IVI-6.1) as a client needs to talk to a transcript: one session, synchronised mode."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

from tests.scope.transcript import read_transcript

HEADER = struct.Struct("!2sBBIQ")
INITIALIZE, INITIALIZE_RESPONSE, DATA, DATA_END = 0, 1, 6, 7
MAX_SIZE, MAX_SIZE_RESPONSE, ASYNC_INITIALIZE, ASYNC_INITIALIZE_RESPONSE = 15, 16, 17, 18
VERSION_AND_SESSION = 0x0100_0001
PIECE_BYTES = 10
"""Replies are sent in messages of so many bytes, so that blocks and lines lie across them."""


class HislipServer:
    """An instrument that says what a transcript says, as messages with an end."""

    def __init__(self, text: str) -> None:
        self.entries = read_transcript(text)
        self.unexpected: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._clients: list[socket.socket] = []

    @property
    def resource(self) -> str:
        """The VISA name of the server."""
        return f"TCPIP::127.0.0.1::hislip0,{self._listener.getsockname()[1]}::INSTR"

    def __enter__(self) -> HislipServer:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in self._clients:
            with contextlib.suppress(OSError):  # it may have gone
                client.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        stream = client.makefile("rb")
        request = b""
        with contextlib.suppress(OSError), client:
            while header := stream.read(HEADER.size):
                _, kind, _, parameter, size = HEADER.unpack(header)
                payload = stream.read(size)
                if kind == INITIALIZE:
                    self._send(client, INITIALIZE_RESPONSE, VERSION_AND_SESSION)
                elif kind == ASYNC_INITIALIZE:
                    self._send(client, ASYNC_INITIALIZE_RESPONSE, 0)
                elif kind == MAX_SIZE:
                    self._send(client, MAX_SIZE_RESPONSE, 0, struct.pack("!Q", 1 << 20))
                elif kind in (DATA, DATA_END):
                    request += payload
                    if kind == DATA_END:
                        self._answer(client, request.decode().rstrip("\n"), parameter)
                        request = b""

    def _answer(self, client: socket.socket, request: str, message: int) -> None:
        entry = self.entries.get(request)
        if entry is None:
            self.unexpected.append(request)
            return
        reply = entry.next()
        if reply is None or not reply.data:
            return
        pieces = [reply.data[at : at + PIECE_BYTES] for at in range(0, len(reply.data), PIECE_BYTES)]
        for number, piece in enumerate(pieces, start=1):
            self._send(client, DATA_END if number == len(pieces) else DATA, message, piece)

    @staticmethod
    def _send(client: socket.socket, kind: int, parameter: int, payload: bytes = b"") -> None:
        client.sendall(HEADER.pack(b"HS", kind, 0, parameter, len(payload)) + payload)
