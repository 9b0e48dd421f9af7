# SPDX-License-Identifier: Apache-2.0
"""A bare controller on a socket, edges of known times, and a finder of crossings: nothing of the drivers."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from hw.virtual.oscilloscope.edges import Edge
from hw.virtual.oscilloscope.front_end import Hardware, InputSignal
from hw.virtual.oscilloscope.link import Link
from tests.patience import HANG_S, STALL_S

PERIOD_PS = 1_000_000_000
DELAY_PS = 37_500
MIDDLE_V = 1.65


def pulses(delay_ps: int = DELAY_PS, period_ps: int = PERIOD_PS, jitter_ps: float = 0.0) -> Iterator[Edge]:
    """Yield a pulse a period on inputs 1 and 2, the second later by the delay and, each time, by a jitter."""
    generator = np.random.default_rng(5)
    for number in itertools.count(1):
        begin_ps = number * period_ps
        late_ps = begin_ps + delay_ps + round(float(generator.normal()) * jitter_ps)
        for rising, offset_ps in ((True, 0), (False, period_ps // 2)):
            pair = [Edge(begin_ps + offset_ps, 1, rising), Edge(late_ps + offset_ps, 2, rising)]
            yield from sorted(pair)


def hardware(
    *,
    channels: int = 2,
    noise_v: float = 0.0,
    skew_ps: float = 0.0,
    adc_bits: int = 12,
    timebase_error_ppm: float = 0.0,
    trigger_jitter_ps: float = 0.0,
    memory_samples: int = 2_000_000,
) -> Hardware:
    """Return an instrument whose second input is late by the skew."""
    return Hardware(
        signals=tuple(
            InputSignal(rise_time_s=1e-9, noise_v=noise_v, skew_ps=skew_ps if number == 1 else 0.0)
            for number in range(channels)
        ),
        adc_bits=adc_bits,
        timebase_error_ppm=timebase_error_ppm,
        trigger_jitter_ps=trigger_jitter_ps,
        memory_samples=memory_samples,
    )


class Controller:
    """A connection to an instrument, by lines and blocks."""

    def __init__(self, port: int, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(HANG_S)
        self.socket.connect(("127.0.0.1", port))
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.socket.close()

    def write(self, *messages: str) -> None:
        """Send messages."""
        for message in messages:
            self.socket.sendall(message.encode() + b"\n")

    def query(self, message: str) -> str:
        """Send a message and return the line that answers it."""
        self.write(message)
        line = self._file.readline()
        assert line.endswith(b"\n"), f"{message}: {line!r}"
        return line[:-1].decode()

    def line(self) -> bytes:
        """Return what comes up to the next line feed; nothing: the instrument has hung up."""
        return self._file.readline()

    def read(self, count: int) -> bytes:
        """Return so many bytes."""
        return self._file.read(count)

    def expect_fewer(self, count: int) -> None:
        """Say that so many bytes do not come any more; nothing can be read after that."""
        self.socket.settimeout(STALL_S)
        with pytest.raises(TimeoutError):
            self.read(count)

    def blocks(self, message: str) -> list[bytes]:
        """Send a query and return its definite blocks, which semicolons separate and a line feed ends."""
        self.write(message)
        found: list[bytes] = []
        while True:
            assert self.read(1) == b"#"
            found.append(self.read(int(self.read(int(self.read(1))))))
            end = self.read(1)
            if end == b"\n":
                return found
            assert end == b";"


def crossing_s(volts: NDArray[np.float64], first_s: float, interval_s: float) -> float:
    """Return when a waveform first comes from below to MIDDLE_V, by a line between two samples."""
    after = int(np.flatnonzero((volts[:-1] < MIDDLE_V) & (volts[1:] >= MIDDLE_V))[0])
    share = (MIDDLE_V - volts[after]) / (volts[after + 1] - volts[after])
    return first_s + (after + float(share)) * interval_s


class ImpatientLink(Link):
    """A controller that gives up at every third look."""

    looks = 0

    def gone(self) -> bool:
        """Tell whether it gives up."""
        self.looks += 1
        return self.looks % 3 == 0
