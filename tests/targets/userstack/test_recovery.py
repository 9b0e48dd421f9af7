# SPDX-License-Identifier: Apache-2.0
"""Loss recovery of the user-mode stack, between two of them in virtual time."""

from __future__ import annotations

import pytest

from tests.targets.userstack import simulation
from tests.targets.userstack.simulation import BULK_BYTES, LINE_BYTES_PER_S, MODEL, WINDOW, carry, simulate

SEGMENT_BYTES = 1460
SEGMENT_BYTES_IPV6 = 1440
ADDED_MAX_US = 5000
FEW_BYTES = 5_000_000


@pytest.fixture(params=[WINDOW, MODEL], ids=["window", "model"], autouse=True)
def _by_both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses are found and repaired alike, whatever controls how much is sent."""
    monkeypatch.setattr(simulation, "control", request.param)


def added_us(message_bytes: int, offset: int, times: int = 1, *, messages: int = 20, **options: float) -> int:
    """Lose the segment with this byte of the tenth message of a stream, and return how much later it is."""
    drop = f"{10 * message_bytes + offset}x{times}"
    result = simulate(drop, messages=messages, message_bytes=message_bytes, **options)
    assert (result["received_bytes"], result["wrong_bytes"]) == (messages * message_bytes, 0)
    assert result["lost_packets"][0] == times
    late_us = result["latencies_us"]
    # What comes after is as prompt as what came before, but for the window: a time-out closes it.
    after_us = late_us[12:] if result["sender"]["by_timeout"] else late_us[11:]
    assert max(after_us) < min(late_us[:10]) + 100
    assert late_us[11] < min(late_us[:10]) + 300
    return late_us[10] - result["median_us"]


@pytest.mark.parametrize("segments", [1, 2, 3, 10])
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_one_lost_segment_of_a_stream(segments: int, place: float) -> None:
    size = segments * SEGMENT_BYTES
    assert added_us(size, int((size - 1) * place)) <= ADDED_MAX_US


@pytest.mark.parametrize("segments", [1, 10])
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_one_lost_segment_of_a_stream_over_ipv6(segments: int, place: float) -> None:
    size = segments * SEGMENT_BYTES_IPV6
    assert added_us(size, int((size - 1) * place), ipv6=1) <= ADDED_MAX_US


def test_a_small_message() -> None:
    assert added_us(80, 0) <= ADDED_MAX_US


def test_a_peer_that_acknowledges_at_once_is_probed_soon() -> None:
    """Eight acknowledgements of single segments tell how long the peer waits with them."""
    assert added_us(500, 0) < 400
    assert added_us(500, 0, ack_delay_us=300) < 1000
    assert added_us(500, 0, times=2) < 800


def test_a_peer_that_becomes_slow_is_not_sent_everything_twice() -> None:
    """The delay that was learned is of the last acknowledgements."""
    result = simulate(messages=200, message_bytes=500, slower_at_us=505_000, slower_us=500)
    assert result["sender"]["retransmitted_segments"] < 5
    assert max(result["latencies_us"]) < 700


@pytest.mark.parametrize("segment", [0, 5, 9])
def test_a_lost_retransmission_within_a_message(segment: int) -> None:
    assert added_us(10 * SEGMENT_BYTES, segment * SEGMENT_BYTES, times=2) <= ADDED_MAX_US


@pytest.mark.parametrize("lost", [3, 10])
def test_a_lost_end_of_a_message(lost: int) -> None:
    size = 10 * SEGMENT_BYTES
    drops = [f"{11 * size - (i + 1) * SEGMENT_BYTES}x1" for i in range(lost)]
    result = simulate(*drops, messages=20, message_bytes=size)
    assert (result["lost_packets"][0], result["wrong_bytes"]) == (lost, 0)
    assert result["max_us"] - result["median_us"] <= ADDED_MAX_US
    assert result["sender"]["by_timeout"] == 0


def test_the_end_of_a_message_fits_into_a_queue_with_room() -> None:
    """The simulated queue is as long for its small last segment as for those before it."""
    result = simulate(messages=100, message_bytes=640_000)
    assert max(result["latencies_us"][10:]) < result["median_us"] + 500


def test_random_loss_of_a_stream() -> None:
    result = simulate(messages=2000, message_bytes=1000, loss=0.001, loss_back=0.001)
    assert (result["received_bytes"], result["wrong_bytes"]) == (2_000_000, 0)
    assert result["p999_us"] - result["median_us"] <= ADDED_MAX_US


@pytest.mark.parametrize(
    ("loss", "least_bytes_per_s"), [(0, 110e6), (0.001, 110e6), (0.01, 105e6), (0.05, 58e6)]
)
def test_goodput_by_loss(loss: float, least_bytes_per_s: float) -> None:
    result = carry(loss=loss, loss_back=loss)
    goodput_bytes_per_s = result["goodput_bytes_per_s"]
    print(f"loss {loss:.1%}: {goodput_bytes_per_s / 1e6:.1f} MB/s")
    assert least_bytes_per_s < goodput_bytes_per_s < LINE_BYTES_PER_S
    # What was not lost is not sent again.
    lost = result["lost_packets"][0] + result["full_packets"][0]
    assert result["sender"]["retransmitted_segments"] <= lost * 1.03 + 2


def test_goodput_over_ipv6() -> None:
    result = carry(bytes=FEW_BYTES, loss=0.01, loss_back=0.01, ipv6=1)
    assert 100e6 < result["goodput_bytes_per_s"] < LINE_BYTES_PER_S * SEGMENT_BYTES_IPV6 / SEGMENT_BYTES


def test_lost_acknowledgements() -> None:
    result = carry(loss_back=0.1)
    assert result["goodput_bytes_per_s"] > 110e6
    assert result["sender"]["retransmitted_segments"] <= result["full_packets"][0] + 2


def test_reordering_is_learned() -> None:
    options = {"reorder": 0.1, "reorder_us": 60, "queue_packets": 1000}
    short = carry(**options)["sender"]["retransmitted_segments"]
    result = simulate(bytes=3 * BULK_BYTES, **options)
    assert (result["received_bytes"], result["wrong_bytes"]) == (3 * BULK_BYTES, 0)
    assert short < 50
    assert result["sender"]["retransmitted_segments"] <= short + 10
    assert result["goodput_bytes_per_s"] > 110e6


def test_duplicates_do_no_harm() -> None:
    result = carry(duplicate=0.05, reorder_us=60, queue_packets=5000)
    assert result["sender"]["retransmitted_segments"] < 20
    assert result["receiver"]["duplicate_segments"] > 500
    assert result["goodput_bytes_per_s"] > 110e6


@pytest.mark.parametrize("bytes_before", [1, 1460, 2_000_000])
def test_sequence_numbers_wrap(bytes_before: int) -> None:
    result = carry(
        bytes=FEW_BYTES, initial_sequence=2**32 - bytes_before, loss=0.01, loss_back=0.01, reorder=0.01
    )
    assert result["goodput_bytes_per_s"] > 100e6


def test_a_long_path() -> None:
    assert carry(delay_us=5000, queue_packets=1000, loss=0.0001)["goodput_bytes_per_s"] > 20e6


def test_large_frames() -> None:
    result = carry(mtu_bytes=9000, rate_bit_per_s=10e9, delay_us=20, loss=0.001, loss_back=0.001)
    assert result["goodput_bytes_per_s"] > 500e6


@pytest.mark.parametrize(("seed", "ipv6"), [(1, 0), (2, 0), (3, 0), (4, 1)])
def test_all_at_once(seed: int, ipv6: int) -> None:
    faults = {"loss": 0.05, "loss_back": 0.05, "duplicate": 0.05, "reorder": 0.1, "reorder_us": 200}
    carry(bytes=FEW_BYTES, seed=seed, ipv6=ipv6, **faults)


@pytest.mark.parametrize("loss", [0.2, 0.3])
@pytest.mark.parametrize("seed", range(1, 5))
def test_much_loss_from_the_first_segment_on(loss: float, seed: int) -> None:
    result = simulate(bytes=100_000, seed=seed, loss=loss, loss_back=loss, close=1)
    assert (result["received_bytes"], result["wrong_bytes"], result["error"]) == (100_000, 0, 0)


@pytest.mark.parametrize("times", [1, 2])
def test_a_lost_end_of_the_stream(times: int) -> None:
    result = simulate(f"1000x{times}", bytes=1000, close=1)
    assert result["lost_packets"][0] == times
    assert result["seconds"] < times * ADDED_MAX_US * 1e-6 + 0.001


@pytest.mark.parametrize(("loss", "least_bytes_per_s"), [(0.001, 100e6), (0.01, 80e6), (0.05, 2.5e6)])
def test_a_peer_without_sack(loss: float, least_bytes_per_s: float) -> None:
    result = carry(bytes=FEW_BYTES, without_sack=1, loss=loss, loss_back=loss)
    assert result["goodput_bytes_per_s"] > least_bytes_per_s


def test_a_peer_that_acknowledges_late() -> None:
    result = simulate("15000x1", messages=60, message_bytes=500, ack_delay_us=40_000)
    assert result["lost_packets"][0] == 1
    assert result["max_us"] - result["median_us"] <= ADDED_MAX_US


def test_an_outage() -> None:
    result = carry(outage_at_us=50_000, outage_us=300_000)
    # What stops is repaired by one backed-off timer at most, and little is sent in vain.
    assert result["seconds"] < BULK_BYTES / 110e6 + 2 * 0.3
    assert result["lost_packets"][0] < 100
    assert result["receiver"]["duplicate_segments"] < 20


def test_an_outage_without_end() -> None:
    result = simulate(outage_at_us=50_000, outage_us=10**9)
    assert result["error"] != 0
    assert 120 <= result["seconds"] < 250


def test_a_peer_that_is_gone_with_its_window_closed() -> None:
    result = simulate(hold_at_us=20_000, hold_us=10**9, outage_at_us=200_000, outage_us=10**9)
    assert result["error"] != 0
    assert 120 <= result["seconds"] < 250


def test_a_window_that_stays_closed_is_no_error() -> None:
    result = simulate(hold_at_us=20_000, hold_us=400_000_000)
    assert (result["received_bytes"], result["wrong_bytes"], result["error"]) == (BULK_BYTES, 0, 0)


@pytest.mark.parametrize("update_lost", [False, True])
def test_a_closed_window_opens(update_lost: bool) -> None:
    outage = {"outage_at_us": 319_000, "outage_us": 5000} if update_lost else {}
    result = carry(hold_at_us=20_000, hold_us=300_000, **outage)
    assert result["seconds"] < 0.3 + BULK_BYTES / 110e6 + 0.16 * update_lost


def test_a_path_that_becomes_slower() -> None:
    result = carry(slower_at_us=50_000, slower_us=20_000)
    assert result["sender"]["retransmitted_segments"] < 5
    stream = simulate(messages=100, message_bytes=500, slower_at_us=205_000, slower_us=20_000)
    assert stream["sender"]["retransmitted_segments"] < 12
    assert max(stream["latencies_us"][-50:]) < 20_200


def test_a_seed_is_a_run() -> None:
    options = {"loss": 0.05, "loss_back": 0.05, "reorder": 0.05, "bytes": 2_000_000}
    assert simulate(seed=7, **options) == simulate(seed=7, **options)
    assert simulate(seed=7, **options) != simulate(seed=8, **options)
