# SPDX-License-Identifier: Apache-2.0
"""Messages of a ring that waited for one another are counted; a long path alone is no queue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reports.control_loops.ring import load_ring
from reports.control_loops.ring_evidence import FOLDER, NAGLE_FOLDER
from reports.control_loops.ring_queue import RingQueue, ring_queue
from reports.control_loops.section import gather_control_loops
from reports.section import TargetData
from tests.reports.control_loops.ring_sample import INTERVAL_NS, TARGET, hop_ns, write_sample_ring

PAUSED, PAUSE_NS = 100, 48_000_000
"""A node does nothing from this message on, so long: it and the nine behind it leave together."""
SLOW, SERVED_NS = range(50, 90), 6_100_000
"""A node needs so long for each of these messages, which come each 5 ms, and nothing for others.

With the last of them it is 49 ms behind, and nine more find it so.
"""


def long_path(place: int, number: int) -> int:
    """Return 40 ms for each hop: 32 messages are under way at once, and none waits."""
    return hop_ns(place, number) + 40_000_000


def paused(place: int, number: int) -> int:
    """Return what a hop takes behind a pause of the second one."""
    behind_ns = PAUSE_NS - (number - PAUSED) * INTERVAL_NS if place == 2 and number >= PAUSED else 0
    return hop_ns(place, number) + max(0, behind_ns)


def overloaded(place: int, number: int) -> int:
    """Return what a hop takes while the second one needs longer for a message than there is to the next."""
    if place != 2 or number < SLOW.start:
        return hop_ns(place, number)
    served = min(number, SLOW.stop - 1) - SLOW.start
    behind_ns = SERVED_NS + served * (SERVED_NS - INTERVAL_NS)
    behind_ns -= max(0, number - SLOW.stop + 1) * INTERVAL_NS
    return hop_ns(place, number) + max(0, behind_ns)


@pytest.mark.parametrize(
    ("hops", "waited"), [(hop_ns, 0), (long_path, 0), (paused, 9), (overloaded, len(SLOW) - 1 + 9)]
)
def test_messages_that_waited_are_counted(
    tmp_path: Path, hops: Callable[[int, int], int], waited: int
) -> None:
    write_sample_ring(tmp_path, hops=hops)
    found = ring_queue(load_ring(tmp_path))
    assert (found.messages, found.waited, found.most) == (210, waited, waited)
    assert found.interval_ns == INTERVAL_NS


def test_page_tells_of_a_queue_and_of_which_ring(tmp_path: Path) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET
    write_sample_ring(folder)
    write_sample_ring(folder / NAGLE_FOLDER, hops=paused)
    shown = gather_control_loops(TargetData(tmp_path, target=TARGET))
    assert shown
    [said] = shown.queues
    assert said.startswith(
        "The ring with Nagle's algorithm: 4.3 % of the messages waited behind the one before,"
    )
    assert said.endswith(
        " one every 5 ms the ring does not always keep up, and what these take is that of a queue."
    )


def test_a_few_that_wait_are_not_told() -> None:
    assert RingQueue(1000, 10, 3, INTERVAL_NS).words == ""
    assert RingQueue(1000, 11, 3, INTERVAL_NS).words.startswith("1.1 % of the messages waited")
    assert RingQueue(0, 0, 0, INTERVAL_NS).words == ""
