# SPDX-License-Identifier: Apache-2.0
"""Events of a real replay lie on the timeline where they were, however wrong a node's clock is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.timeline.contradictions import Messages, causality
from tests.traffic_gen.events.live_timeline import LiveReplay, WrongClock, record_replay
from tests.traffic_gen.lab import Lab, Plan, Stream, pattern_text

pytestmark = pytest.mark.simulated

RATES_PPM = (0, 25, 100, -40)


@pytest.fixture
def replay(lab: Lab, tool: str, tmp_path: Path) -> LiveReplay:
    """Give a replay of three streams, 3 s."""
    pattern = pattern_text(Stream(11), Stream(12, "tcp", 5000), Stream(13, "tcp", 20_000))
    return record_replay(lab, tool, Plan(pattern, duration_ms=3000), tmp_path)


def test_each_event_lies_where_it_was(replay: LiveReplay) -> None:
    truth_ns = replay.truth_ns(replay.receiver)
    for rate_ppm in RATES_PPM:
        clock = WrongClock(5_000_000_000, rate_ppm, int(truth_ns.min()))
        places = replay.placed(clock)
        assert places.known.all()
        error_ns = np.abs(places.tai_ns - truth_ns)
        assert (truth_ns >= places.earliest_ns).all()
        assert (truth_ns <= places.latest_ns).all()
        assert np.mean(error_ns <= places.u_ns) >= 0.95
        medians_ns = [int(np.median(each)) for each in (error_ns, places.u_ns, places.bound_ns)]
        print(f"{rate_ppm} ppm: medians of error, U, bound in ns: {medians_ns}")  # shown by `pytest -rP`
        # A padded U would be no statement.
        assert np.median(error_ns) >= np.median(places.u_ns) / 100


def _messages(replay: LiveReplay, clock: WrongClock) -> Messages:
    sender, receiver = replay.sender, replay.receiver
    written, read = sender.of("send.begun"), receiver.of("receive.message")
    written = written[np.argsort(sender.tag[written], kind="stable")]
    read = read[np.argsort(receiver.tag[read], kind="stable")]
    assert np.array_equal(sender.tag[written], receiver.tag[read])
    return Messages("sender", "receiver", replay.sent(), replay.placed(clock), 0, (written, read))


def test_no_effect_lies_before_its_cause_until_a_clock_is_wrong(replay: LiveReplay) -> None:
    since_ns = int(replay.truth_ns(replay.receiver).min())
    for rate_ppm in RATES_PPM:
        assert not causality([_messages(replay, WrongClock(0, rate_ppm, since_ns))]).contradictions
    # The exchanges are of the right clock, its events are not: put back by more than bounds and way.
    right = _messages(replay, WrongClock(0, 0, since_ns))
    sent, received = right.sent, right.received
    way_ns = (
        received.tai_ns[right.matched[1]] - sent.tai_ns[right.matched[0]] if right.matched else np.empty(0)
    )
    back_ns = int(way_ns.max() + sent.bound_ns.max() + received.bound_ns.max()) + 1
    wrong = type(received)(
        received.tai_ns - back_ns,
        received.earliest_ns - back_ns,
        received.latest_ns - back_ns,
        received.u_ns,
        received.known,
    )
    found = causality([Messages("sender", "receiver", sent, wrong, 0, right.matched)])
    assert found.is_certain
    assert found.contradictions[0].count == found.contradictions[0].of
