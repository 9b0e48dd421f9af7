# SPDX-License-Identifier: Apache-2.0
"""BBR's model of the path, between two stacks in virtual time. Repairs as by the window: test_recovery.py."""

from __future__ import annotations

from collections import deque

import pytest

from tests.targets.userstack.conftest import StackMaker
from tests.targets.userstack.simulation import LINE_BYTES_PER_S, MODEL, WINDOW, carry, simulate
from tests.targets.userstack.stack import SEND_BYTES, TCP, StackError

LONG_US = 20_000
"""Each way."""
QUANTA_BYTES = 3 * 65536
"""What at least is in flight at the rate of the line: three times what may go out at once."""


@pytest.mark.parametrize("loss", [0, 0.001, 0.01, 0.05])
def test_loss_costs_what_is_lost(loss: float) -> None:
    result = carry(model=MODEL, loss=loss, loss_back=loss)
    assert 0.97 * (1 - loss) * LINE_BYTES_PER_S < result["goodput_bytes_per_s"] < LINE_BYTES_PER_S
    assert (
        result["sender"]["retransmitted_segments"]
        <= result["lost_packets"][0] + result["full_packets"][0] + 5
    )


@pytest.mark.parametrize(("loss", "least_bytes_per_s"), [(0.01, 30e6), (0.05, 20e6)])
def test_loss_on_a_long_path(loss: float, least_bytes_per_s: float) -> None:
    """What bounds it is the window of 4 MB behind a missing segment; the queue does not fill up."""
    result = carry(model=MODEL, bytes=60_000_000, delay_us=LONG_US, loss=loss, loss_back=loss)
    assert result["goodput_bytes_per_s"] > least_bytes_per_s
    assert result["full_packets"][0] < 0.01 * result["sender"]["sent_segments"]


def test_a_path_that_becomes_longer() -> None:
    """The least round trip is forgotten after ten seconds: until then too little is in flight."""
    path = {
        "model": MODEL,
        "rate_bit_per_s": 20e6,
        "delay_us": 2000,
        "slower_at_us": 1_000_000,
        "slower_us": 60_000,
    }
    half_s, whole_s = (carry(bytes=size, **path)["seconds"] for size in (20_000_000, 40_000_000))
    assert half_s > 11
    assert 20_000_000 / (whole_s - half_s) > 0.9 * LINE_BYTES_PER_S / 50


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_rate_lasts_for_round_trips_as_they_are(seed: int) -> None:
    """Each is longer than two cycles of gains, which go by the least one, 0.15 ms."""
    longer_at_us, sent_bytes = 20_000, 5_400_000
    path = {"slower_at_us": longer_at_us, "slower_us": LONG_US // 2}
    result = carry(model=MODEL, bytes=sent_bytes, seed=seed, **path)
    left_bytes = sent_bytes - LINE_BYTES_PER_S * longer_at_us * 1e-6
    round_trips = (result["seconds"] - longer_at_us * 1e-6) / (LONG_US * 1e-6)
    assert left_bytes > 10 * QUANTA_BYTES
    assert round_trips < left_bytes / QUANTA_BYTES


@pytest.mark.parametrize("delay_us", [50, 500])
def test_messages_do_not_pay_for_a_probe_of_the_round_trip(delay_us: int) -> None:
    """Between two of them the path is empty, which tells it as well; 12 s are more than it may be old."""
    result = simulate(model=MODEL, messages=1200, message_bytes=640_000, delay_us=delay_us)
    assert (result["received_bytes"], result["wrong_bytes"]) == (1200 * 640_000, 0)
    late_us = result["latencies_us"][10:]
    assert max(late_us) < 1.05 * result["median_us"]


def test_a_queue_that_is_short() -> None:
    """What goes at the pace of the path does not need a queue as long as the path."""
    options = {"queue_packets": 20, "delay_us": 5000}
    result = carry(model=MODEL, **options)
    assert result["goodput_bytes_per_s"] > 4 * carry(model=WINDOW, **options)["goodput_bytes_per_s"]


def test_a_peer_without_sack_has_the_window() -> None:
    options = {"without_sack": 1, "loss": 0.01, "loss_back": 0.01, "bytes": 2_000_000}
    assert simulate(model=MODEL, **options) == simulate(model=WINDOW, **options)


BUFFER_BYTES = 1 << 20
"""Of a socket where nothing is said."""


def most_held_bytes(stack_of: StackMaker, control: int, set_bytes: int = 0) -> int:
    """Send as much as is taken over 20 ms each way, for 0.6 s; return the most that the buffer had."""
    ends = [stack_of(f"10.0.0.{number}", seed=number) for number in (1, 2)]
    ends[0].call("stack_set_congestion", control)
    listener = ends[1].open(TCP).bind("10.0.0.2", 5000).listen()
    sender = ends[0].open(TCP).connect("10.0.0.2", 5000)
    if set_bytes:
        sender.set(SEND_BYTES, set_bytes)
    receiver, most, data = None, 0, bytes(65536)
    none: list[bytes] = []
    ways = [deque([none] * (LONG_US // 1000)) for _ in ends]
    for _ in range(600):
        for end, way in zip(ends, ways, strict=True):
            way.append(end.take())
        for end, way in zip(ends, reversed(ways), strict=True):
            for packet in way.popleft():
                end.input(packet)
            end.advance_ms(1)
        try:
            receiver = receiver or listener.accept()[0]
            receiver.receive(1 << 18)
        except StackError:
            pass
        try:
            while sender.send(data) == len(data):
                pass
        except StackError:
            pass
        info = sender.info
        most = max(most, info.unsent_bytes + info.unacknowledged_bytes)
    return most


def test_the_buffer_holds_what_a_long_path_does(stack_of: StackMaker) -> None:
    """A program that blocks in send() could not keep it full with the default; what it has set counts."""
    assert most_held_bytes(stack_of, WINDOW) <= BUFFER_BYTES
    assert most_held_bytes(stack_of, MODEL) > 2 * BUFFER_BYTES
    assert most_held_bytes(stack_of, MODEL, BUFFER_BYTES // 2) <= BUFFER_BYTES // 2
