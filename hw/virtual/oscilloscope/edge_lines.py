# SPDX-License-Identifier: Apache-2.0
"""Edges as NDJSON lines, from a file or from a socket. The format: docs/virtual-oscilloscope.md."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from hw.errors import ConfigError
from hw.virtual.oscilloscope.edges import PS_PER_NS, Edge, LiveEdges, Progress

CHANNELS_MAX = 8
TIME_NS_MAX = 2**63 - 1
LINE_BYTES_MAX = 1000
SENDERS_MAX = 16

_EDGE_FIELDS = {"channel", "time_ns", "fraction_ps", "rising"}
_PROGRESS_FIELDS = {"until_ns"}


def parse_line(line: str, where: str) -> Edge | Progress:
    """Return the event of one line.

    Args:
        line: `{"channel":1,"time_ns":10,"fraction_ps":5,"rising":true}`, or `{"until_ns":20}`: no edge
            before that comes any more.
        where: File and line, for the error.

    Raises:
        ConfigError: The line is not of that form.
    """
    try:
        found: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON: {line[:80]!r}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: not an object: {line[:80]!r}")
    fields = cast("dict[str, object]", found)
    if set(fields) == _PROGRESS_FIELDS:
        return Progress(_integer(fields, "until_ns", 0, TIME_NS_MAX, where) * PS_PER_NS)
    if set(fields) != _EDGE_FIELDS:
        raise ConfigError(
            f"{where}: fields {sorted(fields)}; allowed: {sorted(_EDGE_FIELDS)} or {sorted(_PROGRESS_FIELDS)}"
        )
    time_ns = _integer(fields, "time_ns", 0, TIME_NS_MAX, where)
    fraction_ps = _integer(fields, "fraction_ps", 0, PS_PER_NS - 1, where)
    channel = _integer(fields, "channel", 1, CHANNELS_MAX, where)
    if not isinstance(fields["rising"], bool):
        raise ConfigError(f"{where}: rising: {fields['rising']!r}; allowed: true, false")
    return Edge(time_ns * PS_PER_NS + fraction_ps, channel, fields["rising"])


def _integer(fields: dict[str, object], name: str, low: int, high: int, where: str) -> int:
    value = fields[name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"{where}: {name}: {str(value)[:40]}; allowed: an integer, {low} to {high}")
    return value


def read_file(path: Path) -> Iterator[Edge | Progress]:
    """Return the events of a file, one by one; blank lines count for nothing.

    Raises:
        ConfigError: The file cannot be read, or a line is wrong.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            yield from _parse_lines(iter(lambda: lines.readline(LINE_BYTES_MAX + 1), ""), str(path))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error


def _parse_lines(lines: Iterable[str], where: str) -> Iterator[Edge | Progress]:
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_BYTES_MAX:
            raise ConfigError(f"{where}:{number}: longer than {LINE_BYTES_MAX} characters")
        if line.strip():
            yield parse_line(line, f"{where}:{number}")


class EdgePort:
    """A TCP port to which edges are sent while they happen; every line goes to the instrument at once.

    SENDERS_MAX may be connected. A wrong line ends its sender's connection and is counted in `refused`.
    """

    def __init__(self, address: str, port: int, edges: LiveEdges) -> None:
        """Open the port.

        Raises:
            ConfigError: It is not to be had.
        """
        self._edges = edges
        self._senders = threading.BoundedSemaphore(SENDERS_MAX)
        try:
            self._listener = socket.create_server((address, port))
        except OSError as error:
            raise ConfigError(f"edge port: address {address} port {port}: {error.strerror}") from error
        self.port: int = self._listener.getsockname()[1]
        self.refused = 0
        threading.Thread(target=self._accept, name="edge-port", daemon=True).start()

    def close(self) -> None:
        """Accept no more senders."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                sender, _ = self._listener.accept()
            except OSError:
                return
            if self._senders.acquire(blocking=False):
                threading.Thread(target=self._receive, args=(sender,), name="edges", daemon=True).start()
            else:
                sender.close()

    def _receive(self, sender: socket.socket) -> None:
        with sender, sender.makefile("r", encoding="utf-8", errors="replace") as lines:
            try:
                for event in _parse_lines(iter(lambda: lines.readline(LINE_BYTES_MAX + 1), ""), "edge port"):
                    self._edges.put(event)
            except (ConfigError, OSError):
                self.refused += 1
            finally:
                self._senders.release()
