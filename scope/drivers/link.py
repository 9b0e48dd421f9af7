# SPDX-License-Identifier: Apache-2.0
"""The connection to an instrument, through PyVISA: commands, replies, binary blocks, deadlines.

What PyVISA's pure Python backend does, and what is done about it here:
- opening a port where nobody listens succeeds: the first exchange tells, and names it;
- on a raw socket a read that comes to its time-out throws away what it had: so reads are short slices which
  return what there is (`suppress_end_enabled` off), and the deadline is watched here;
- when the peer has closed, a read spins until its time-out: so the socket is asked after each empty slice;
- a command and the question for errors are two writes, the second of which would wait 40 ms for the first
  to be acknowledged; the attribute against that (`tcpip_nodelay`) cannot be set, so it is set at the socket;
- text ends with a newline (the termination character is on), blocks hold newlines (it is off).
"""

from __future__ import annotations

import contextlib
import socket
import time
from typing import Any

import pyvisa
from pyvisa import constants
from pyvisa.resources import MessageBasedResource

from scope.errors import InstrumentError

SLICE_S = 0.2
"""The longest single read on a raw socket: half of it is the longest rest between two looks at the line."""
CHUNK_BYTES = 1 << 18
QUIET_S = 0.1
"""A line that is silent for so long has nothing left over."""
SLOWEST_BYTES_PER_S = 20_000
LONGEST_REPLY_BYTES = 64 << 20
TERMCHAR_ENABLED = constants.ResourceAttribute.termchar_enabled
SUPPRESS_END_ENABLED = constants.ResourceAttribute.suppress_end_enabled


class SilentError(InstrumentError):
    """Say that no answer came at all: the instrument may have refused the question."""


class TransferError(InstrumentError):
    """Say that a reply broke off, or is not what it has to be.

    Attributes:
        received: Data of the broken block that had come until then.
    """

    def __init__(self, instrument: str, command: str, reason: str, received: bytes = b"") -> None:
        super().__init__(instrument, command, reason)
        self.received = received


class Link:
    """One connection; after a transport error it is broken until it is opened again."""

    def __init__(self, name: str, resource: str, library: str = "@py", timeout_s: float = 5.0) -> None:
        """Name the instrument; nothing is opened yet.

        Args:
            name: What the bench calls it.
            resource: VISA resource name: `TCPIP::HOST::PORT::SOCKET`, `TCPIP::HOST::inst0::INSTR` (VXI-11),
                `TCPIP::HOST::hislip0[,PORT]::INSTR`.
            library: VISA library; `@py` is pyvisa-py.
            timeout_s: Longest silence within and before a reply.
        """
        self.instrument = f"{name} ({resource})"
        self.timeout_s = timeout_s
        self._resource_name = resource
        self._library = library
        self._stream = resource.upper().endswith("::SOCKET")
        self._resource: MessageBasedResource | None = None
        self._buffer = bytearray()
        self._ended = False
        self._stray = False
        self._command = ""

    @property
    def broken(self) -> bool:
        """Tell whether the connection has to be opened (again)."""
        return self._resource is None

    def open(self) -> None:
        """Connect.

        Raises:
            InstrumentError: The address is wrong or cannot be reached.
        """
        self.close()
        try:
            resource = pyvisa.ResourceManager(self._library).open_resource(
                self._resource_name, open_timeout=round(self.timeout_s * 1000)
            )
        except Exception as error:  # pyvisa-py raises plain Exception, and what sockets do
            raise InstrumentError(self.instrument, "", f"cannot be opened: {error}") from error
        if not isinstance(resource, MessageBasedResource):
            resource.close()
            raise InstrumentError(self.instrument, "", "is not an instrument that takes messages")
        self._resource = resource
        self._ended = False
        self._buffer.clear()
        resource.write_termination = "\n"
        if self._stream:
            resource.read_termination = "\n"
            resource.set_visa_attribute(SUPPRESS_END_ENABLED, False)
            connection = self._socket()
            if connection is not None:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        resource.timeout = SLICE_S * 1000 if self._stream else self.timeout_s * 1000

    def close(self) -> None:
        """Disconnect; harmless when it is not connected."""
        resource, self._resource = self._resource, None
        if resource is not None:
            with contextlib.suppress(Exception):  # the peer may be gone in any way
                resource.close()

    def flush(self) -> None:
        """Throw away what has arrived unasked (a tenth of a second on a raw socket).

        Raises:
            InstrumentError: The peer has hung up, or sends without end.
        """
        self._buffer.clear()
        self._stray = False
        if not self._stream or self._resource is None:
            return
        end = time.monotonic() + self.timeout_s
        quiet_since = time.monotonic()
        while time.monotonic() < quiet_since + QUIET_S:
            self._receive(CHUNK_BYTES, slice_s=QUIET_S / 2)
            if self._buffer:
                quiet_since = time.monotonic()
                self._buffer.clear()
            if time.monotonic() >= end:
                raise self._fail(InstrumentError(self.instrument, "", "sends without end, and was not asked"))

    def write(self, command: str) -> None:
        """Send a command.

        Raises:
            InstrumentError: Nobody is there to take it.
        """
        if self._resource is None:
            raise InstrumentError(self.instrument, command, "not connected")
        if self._stray:
            self.flush()
        self._command = command
        self._buffer.clear()
        self._ended = False
        try:
            self._resource.write(command)
        except (pyvisa.Error, OSError, RuntimeError) as error:
            raise self._fail(InstrumentError(self.instrument, command, self._no_peer(error))) from error

    def query(self, command: str, timeout_s: float | None = None) -> str:
        """Send a question and return its answer without the line end.

        Raises:
            SilentError: No answer.
            TransferError: It broke off, or is no text.
        """
        self.write(command)
        reply = self._read_line(timeout_s or self.timeout_s)
        if self._stream and not reply.strip():
            # An empty answer, or a second line end behind the block before it: then the answer is on its way.
            self._receive(CHUNK_BYTES, line_wise=True)
            if self._buffer:
                reply = self._read_line(timeout_s or self.timeout_s)
        try:
            return reply.decode("ascii").strip()
        except UnicodeDecodeError as error:
            raise self._fail(
                TransferError(self.instrument, command, f"garbage in place of text: {reply[:40]!r}", reply)
            ) from error

    def read_block(self, sizes: tuple[int, ...] = ()) -> bytes:
        """Read one binary block of the answer to the last command.

        A header before the block (`:CURVE `) is skipped.

        Args:
            sizes: Sizes that the data may have, in bytes; the first is that of a block which does not say
                its size (`#0`). Empty: any.

        Raises:
            SilentError: No answer.
            TransferError: No block, a wrong length, or it broke off; with the data until then.
        """
        prefix = bytearray()
        while (byte := self._take(1)) != b"#":
            prefix += byte
            if len(prefix) > 64 or not (byte.isalnum() or byte in b":_ "):
                raise self.garbage(f"no block but {bytes(prefix)!r}")
        digit = self._take(1)
        if not digit.isdigit():
            raise self.garbage(f"block header #{digit!r}: no digit after #")
        if digit == b"0":
            if not sizes:
                raise self.garbage("a block that does not say its length")
            return self._take(sizes[0])
        digits = self._take(int(digit))
        if not digits.isdigit():
            raise self.garbage(f"block header: {digits!r} is no length")
        size = int(digits)
        if size > LONGEST_REPLY_BYTES and not sizes:
            raise self.garbage(f"block of {size} bytes, {LONGEST_REPLY_BYTES} are allowed")
        if sizes and size not in sizes:
            wanted = " or ".join(str(size) for size in sizes)
            raise self.garbage(f"block of {size} bytes, must have {wanted}")
        return self._take(size)

    def block_follows(self) -> bool:
        """Read what stands behind a block: True at a separator, False at the end of the answer.

        An end without a newline is accepted.
        """
        if not self._buffer and not self._ended:
            self._receive(1)
        if not self._buffer:
            self._stray = self._stream  # a newline may still come
            return False
        byte = self._take(1)
        if byte == b"\r":
            byte = self._take(1)
        if byte not in (b"\n", b";"):
            raise self.garbage(f"{byte!r} behind a block")
        return byte == b";"

    def garbage(self, reason: str) -> InstrumentError:
        """Return the error of an answer that cannot be; the link is closed, so that nothing is mixed up."""
        return self._fail(TransferError(self.instrument, self._command, f"garbage: {reason}"))

    def _fail(self, error: InstrumentError) -> InstrumentError:
        self.close()
        return error

    @staticmethod
    def _no_peer(error: BaseException) -> str:
        return f"no instrument there, or it hung up: {error}"

    def _read_line(self, timeout_s: float) -> bytes:
        """Return a line; it may be silent for so long, and has to come at more than a trickle."""
        line = bytearray()
        begin = time.monotonic()
        deadline = begin + timeout_s
        while not line.endswith(b"\n"):
            if not self._buffer and not self._ended:
                self._receive(CHUNK_BYTES, line_wise=True)
            line += self._buffer
            if self._buffer:
                slowest_s = len(line) / SLOWEST_BYTES_PER_S
                deadline = min(time.monotonic() + timeout_s, begin + timeout_s + slowest_s)
            self._buffer.clear()
            if self._ended:
                break
            if len(line) > LONGEST_REPLY_BYTES:
                raise self.garbage(f"a line of more than {LONGEST_REPLY_BYTES} bytes")
            if time.monotonic() >= deadline:
                self._stop_waiting(bytes(line), timeout_s)
        return bytes(line)

    def _take(self, count: int) -> bytes:
        """Return exactly so many bytes of a block, or raise at a silence."""
        silence = time.monotonic() + self.timeout_s
        end = time.monotonic() + self.timeout_s + count / SLOWEST_BYTES_PER_S
        while len(self._buffer) < count:
            before = len(self._buffer)
            if self._ended:
                self._stop_waiting(bytes(self._buffer), 0.0, count)
            self._receive(min(count - before, CHUNK_BYTES))
            now = time.monotonic()
            if len(self._buffer) > before:
                silence = now + self.timeout_s
            if now >= min(silence, end):
                self._stop_waiting(bytes(self._buffer), self.timeout_s, count)
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _stop_waiting(self, received: bytes, timeout_s: float, count: int | None = None) -> None:
        """Raise the error of a reply that did not come, or not to its end."""
        name, command = self.instrument, self._command
        if not received and count in (None, 1):
            raise self._fail(SilentError(name, command, f"no answer within {timeout_s:g} s"))
        wanted = "the end of the line" if count is None else f"{count} bytes"
        raise self._fail(
            TransferError(
                name,
                command,
                f"stopped answering after {len(received)} bytes, waited for {wanted}",
                received,
            )
        )

    def _receive(self, count: int, line_wise: bool = False, slice_s: float = SLICE_S) -> None:
        """Read once: on a stream at most so many bytes, perhaps none; else to the end of the message."""
        resource = self._resource
        if resource is None:
            raise InstrumentError(self.instrument, self._command, "not connected")
        count = count if self._stream else CHUNK_BYTES
        try:
            if self._stream:
                resource.set_visa_attribute(TERMCHAR_ENABLED, line_wise)
                resource.timeout = slice_s * 1000
            chunk = resource.read_bytes(count, chunk_size=count, break_on_termchar=True)
        except pyvisa.VisaIOError as error:
            if error.error_code != constants.StatusCode.error_timeout:
                raise self._lost(error) from error
            if not self._stream:
                self._stop_waiting(bytes(self._buffer), self.timeout_s)
            chunk = b""
        except (OSError, RuntimeError) as error:
            raise self._lost(error) from error
        self._buffer += chunk
        self._ended = not self._stream and len(chunk) < count
        if not chunk and self._stream and self._peer_closed():
            raise self._lost(None)

    def _lost(self, error: BaseException | None) -> InstrumentError:
        reason = f"the connection was lost after {len(self._buffer)} bytes of the answer"
        if error is not None:
            reason += f": {error}"
        return self._fail(TransferError(self.instrument, self._command, reason, bytes(self._buffer)))

    def _socket(self) -> socket.socket | None:
        """Return pyvisa-py's own socket; None: it is none, or another library."""
        library: Any = self._resource.visalib if self._resource is not None else None
        session: Any = getattr(library, "sessions", {}).get(getattr(self._resource, "session", None))
        connection: object = getattr(session, "interface", None)
        return connection if isinstance(connection, socket.socket) else None

    def _peer_closed(self) -> bool:
        """Ask pyvisa-py's socket; other libraries tell by themselves."""
        connection = self._socket()
        if connection is None:
            return False
        try:
            return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
