# SPDX-License-Identifier: Apache-2.0
"""A producer whose clock is seconds off and runs fast: latencies come out in its clock, within the bound."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from resources.daq_replay.plan_file import BASE_PORT
from tests.traffic_gen import wire
from tests.traffic_gen.lab import (
    CLOCK_PORT,
    CONSUMER,
    NONCE,
    Lab,
    Plan,
    Stream,
    pattern_text,
    producer_address,
    tai_ns,
)

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

UDP = Stream(12, "udp", 100, 10_000)
OFFSET_NS = 5_000_000_000
RATE_PPB = 100_000


@dataclass(frozen=True)
class ForeignClock:
    """A clock of its own: 5 s ahead at its origin, and 100 ppm fast."""

    origin_ns: int

    def of(self, local_ns: int) -> int:
        """Return what it shows at a moment of the local clock."""
        return local_ns + OFFSET_NS + (local_ns - self.origin_ns) * RATE_PPB // 10**9

    def now(self) -> int:
        """Return what it shows now."""
        return self.of(tai_ns())


def _serve(sock: socket.socket, clock: ForeignClock, stop: threading.Event) -> None:
    sock.settimeout(0.1)  # then it looks whether it is to end
    while not stop.is_set():
        try:
            request, peer = sock.recvfrom(100)
        except TimeoutError:
            continue
        t2_ns = clock.now()
        sock.sendto(wire.reply(request, t2_ns, clock.now()), peer)


def _produce(sock: socket.socket, clock: ForeignClock, start_ns: int, slots: int) -> None:
    """Send slots in the foreign clock's own time."""
    for k in range(slots):
        scheduled_ns = start_ns + round(k * UDP.period_us * 1000 * (1 + RATE_PPB * 1e-9))
        while clock.now() < scheduled_ns:
            time.sleep(max(0.0, (scheduled_ns - clock.now()) / 2e9))
        message = wire.message(NONCE, UDP.id, k, clock.now() - scheduled_ns, UDP.size_bytes)
        sock.sendto(message, (CONSUMER, BASE_PORT + UDP.id))


def test_latency_of_a_producer_with_a_clock_of_its_own(lab: Lab, tmp_path: Path) -> None:
    clock = ForeignClock(tai_ns())
    start_ns = clock.of(tai_ns() + 2 * 10**9)
    plan = Plan(
        pattern_text(UDP), warmup_ms=1000, duration_ms=3000, correction="two-way", start_tai_ns=start_ns,
        rate_ppb=RATE_PPB,
    )  # fmt: skip
    stop = threading.Event()
    with lab.sockets() as sockets:
        responder = sockets.open(socket.SOCK_DGRAM, producer_address(1), CLOCK_PORT)
        server = threading.Thread(target=_serve, args=(responder, clock, stop))
        server.start()
        try:
            recv = lab.recv(plan.write(tmp_path / "plan.toml"))
            recv.wait_ready()
            _produce(sockets.open(socket.SOCK_DGRAM, producer_address(1)), clock, start_ns, 400)
            result = recv.result()
        finally:
            stop.set()
            server.join()
    stream, measured = result["streams"][0], result["clocks"][0]
    uncertainty_ns = measured["bound_ns"] + measured["residual_ns"]
    assert stream["received"] == stream["expected"] == 300
    # Five seconds of offset, and 100 us of drift a second, would both stand out against the bound.
    assert uncertainty_ns < 10_000_000
    assert -uncertainty_ns <= stream["received_minus_sent"]["min_ns"]
    assert stream["received_minus_sent"]["p50_ns"] < uncertainty_ns + 10_000_000
    assert measured["offset_ns"] == pytest.approx(
        clock.of(result["end_tai_ns"]) - result["end_tai_ns"], abs=uncertainty_ns
    )
    assert result["clock_steps"] == []
