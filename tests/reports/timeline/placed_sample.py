# SPDX-License-Identifier: Apache-2.0
"""A timeline that was drawn: what is written of it is held against this."""

from __future__ import annotations

import numpy as np

from reports.timeline.clock_record import Times
from reports.timeline.placed_events import Axis, Flows, Timeline, Track

START_TAI_NS = 1_795_000_000_000_000_000
NAMES = ("sent", 'a "quoted"\\ name', "größer", "line\nfeed")
TEXTS = np.array([b"", b"rtdip-echo", b"swapper/0"])


def drawn_track(
    rng: np.random.Generator, node: str, lane: str, tai_ns: Times, *, with_columns: bool = False
) -> Track:
    """Return events at some times; of three one lasts, for no longer than until the next one begins."""
    n = tai_ns.size
    u_ns = rng.integers(0, 5000, n)
    until_next = np.diff(tai_ns, append=tai_ns[-1:] + 1000)
    duration_ns = np.where(rng.random(n) < 1 / 3, until_next, 0)
    columns = {
        "event": rng.integers(-(2**62), 2**62, n),
        "ratio": rng.integers(-8, 9, n) / 8,
        "comm": TEXTS[rng.integers(0, 3, n)],
    }
    return Track(
        node,
        lane,
        NAMES,
        tai_ns,
        tai_ns - u_ns - rng.integers(0, 9, n),
        tai_ns + 2 * u_ns,
        u_ns,
        duration_ns,
        rng.integers(0, len(NAMES), n),
        rng.integers(-5, 2**40, n),
        columns if with_columns else {},
    )


def drawn_timeline(n: int = 300, axis: Axis = "tai", seed: int = 1) -> Timeline:
    """Return four tracks of three nodes, no two events at one time, and flows between them.

    Args:
        n: Events of each track; the last track has none.
        axis: Of the times.
        seed: Of the draw.
    """
    rng = np.random.default_rng(seed)
    start_ns = START_TAI_NS if axis == "tai" else 1_000_000_000
    times = start_ns + rng.permutation(np.cumsum(rng.integers(1, 100_000, 3 * n)))
    first, second, third = (np.sort(each) for each in times.reshape(3, n))
    tracks = (
        drawn_track(rng, "producer 4", "stream 43", first),
        drawn_track(rng, "target", "CPU 0", second, with_columns=True),
        drawn_track(rng, "target", "bw-traffic 1234", third),
        drawn_track(rng, "idle", "CPU 0", first[:0]),
    )
    several = np.array([0, 0, 5, 9, n - 1])
    flows = Flows(
        np.zeros(5, np.int64), several, np.array([1, 2, 1, 2, 1]), np.array([3, 4, 3, n - 1, n - 1])
    )
    return Timeline("daq_replay/linux-rt/attempt-1", axis, "the target's clock", tracks, flows)
