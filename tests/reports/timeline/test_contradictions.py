# SPDX-License-Identifier: Apache-2.0
"""An effect before its cause is certain beyond the hard intervals, likely beyond U, and its node is named."""

from __future__ import annotations

import numpy as np
import pytest

from bench.timeline.bench_timeline import BARS, Contradictions
from bench.timeline.scenes import scene
from reports.errors import RecordError
from reports.timeline import contradictions
from reports.timeline.contradictions import Causality, Contradiction, Messages, causality
from reports.timeline.global_time import Places

BOUND_NS, U_NS, LEAST_NS = 100, 20, 10


def places(tai_ns: list[int], known: list[bool] | None = None) -> Places:
    at_ns = np.array(tai_ns, np.int64)
    u_ns = np.full_like(at_ns, U_NS)
    is_known = np.array(known if known is not None else [True] * len(tai_ns))
    return Places(at_ns, at_ns - BOUND_NS, at_ns + BOUND_NS, u_ns, is_known)


def between(sender: str, receiver: str, *ways_ns: int) -> Messages:
    """Return messages that seem to take so long."""
    sent_ns = [1_000_000 * number for number in range(len(ways_ns))]
    received_ns = [sent + way for sent, way in zip(sent_ns, ways_ns, strict=True)]
    return Messages(sender, receiver, places(sent_ns), places(received_ns), LEAST_NS)


def test_drawn_networks_are_judged_right() -> None:
    found = Contradictions()
    for seed in range(30):
        found.add(scene(seed), seed)
    assert found.of_three > 15
    for name, value in found.figures().items():
        assert BARS[name].met_by(value), (name, value)


def test_beyond_the_intervals_it_is_certain_and_beyond_u_likely() -> None:
    certain = causality([between("a", "b", 500, -191)])
    assert certain.contradictions == (Contradiction("a", "b", "certain", 1, 2, 1),)
    likely = causality([between("a", "b", 500, -31)])
    assert likely.contradictions == (Contradiction("a", "b", "likely", 1, 2, 1),)
    assert (certain.is_certain, likely.is_certain) == (True, False)
    none = causality([between("a", "b", -30, 500), between("b", "a", 40)])
    assert none == Causality((), (), ())


def test_matched_events_of_all_places_of_nodes_are_judged_as_those_of_messages_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways_ns = [500, -191, -700, 40, -31]
    alone = causality([between("a", "b", *ways_ns)])
    assert alone.contradictions == (Contradiction("a", "b", "certain", 2, 5, 510),)
    one = between("a", "b", *ways_ns)
    sent = places([7, *one.sent.tai_ns.tolist(), 9], [False, *[True] * 5, False])
    received = places([*one.received.tai_ns[::-1].tolist(), 8])
    matched = np.array([1, 2, 3, 4, 5]), np.array([4, 3, 2, 1, 0])
    for chunk in (1, 2, 100):
        monkeypatch.setattr(contradictions, "CHUNK", chunk)
        assert causality([Messages("a", "b", sent, received, LEAST_NS, matched)]) == alone
    unplaced = np.array([0, 2, 3, 4, 6]), matched[1]
    [found] = causality([Messages("a", "b", sent, received, LEAST_NS, unplaced)]).contradictions
    assert (found.count, found.of) == (2, 3)
    for wrong in ((matched[0] + 2, matched[1]), (matched[0], matched[1] - 1)):
        with pytest.raises(RecordError, match="messages from a to b: matched: no such event"):
            Messages("a", "b", sent, received, LEAST_NS, wrong)


def test_one_of_many_messages_beyond_u_is_chance() -> None:
    assert causality([between("a", "b", *[50] * 19, -31)]).contradictions == ()
    assert len(causality([between("a", "b", *[50] * 18, -31, -31)]).contradictions) == 1


def test_of_three_nodes_the_one_is_named_whose_clock_explains_all() -> None:
    """The clock of b is ahead by 1000 ns."""
    found = causality(
        [
            between("a", "b", 1100), between("b", "a", -900), between("a", "c", 100), between("c", "a", 100),
            between("b", "c", -900), between("c", "b", 1100),
        ]
    )  # fmt: skip
    assert found.suspects == ("b",)
    assert found.shifts_ns == ((710, 1290),)
    assert [each.worst_ns for each in found.contradictions] == [710, 710]


def test_of_two_nodes_it_may_be_either() -> None:
    found = causality([between("a", "b", 1100), between("b", "a", -900)])
    assert found.suspects == ("a", "b")
    assert found.shifts_ns == ((-1290, -710), (710, 1290))


def test_where_no_single_clock_explains_all_none_is_named() -> None:
    both = [between("a", "b", -900), between("b", "a", -900)]
    two = [between("a", "b", -900), between("c", "d", -900)]
    assert [causality(each).suspects for each in (both, two)] == [(), ()]


def test_a_side_that_no_message_limits_is_open() -> None:
    assert causality([between("a", "b", -900)]).shifts_ns == ((710, None), (None, -710))


def test_messages_that_cannot_be_are_refused() -> None:
    two, one = places([0, 1000]), places([5])
    with pytest.raises(RecordError, match=r"messages from a to b: \(1,\) were sent, \(2,\) came"):
        Messages("a", "b", one, two)
    for sender, least_ns in (("b", 0), ("a", -1)):
        with pytest.raises(RecordError, match=f"messages from {sender} to b: must be of two nodes"):
            Messages(sender, "b", two, two, least_ns)


@pytest.mark.parametrize("known", [[False, True], [True, False]])
def test_what_has_no_place_at_one_end_says_nothing(known: list[bool]) -> None:
    sent, received = places([0, 1000], [True, known[1]]), places([-900, 100], [known[0], True])
    found = causality([Messages("a", "b", sent, received)])
    assert [each.of for each in found.contradictions] == [1]
