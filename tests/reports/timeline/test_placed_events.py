# SPDX-License-Identifier: Apache-2.0
"""A timeline in memory: one order of all tracks, events without a place, and what cannot be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reports.errors import RecordError
from reports.timeline import placed_events
from reports.timeline.global_time import Places
from reports.timeline.placed_events import Flows, Timeline, merged_order, placed_track
from tests.reports.timeline.placed_sample import drawn_timeline


def test_tracks_merge_into_one_order_and_of_one_time_the_earlier_track_is_first() -> None:
    times = [np.array([1, 5, 5, 9]), np.array([5, 6]), np.array([], np.int64), np.array([0, 5])]
    assert merged_order(times).tolist() == [6, 0, 1, 2, 4, 7, 5, 3]
    assert merged_order([]).size == 0


@pytest.mark.parametrize("at_once", [2, 5, 64])
def test_the_order_is_the_same_however_many_are_merged_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    ascending = [np.sort(rng.integers(0, 90, n)) for n in (100, 0, 37, 250)]
    backwards = [*ascending[:3], ascending[3][::-1]]
    monkeypatch.setattr(placed_events, "MERGED_AT_ONCE", at_once)
    for times in (ascending, backwards):
        expected = np.argsort(np.concatenate(times), kind="stable")
        assert merged_order(times).tolist() == expected.tolist()


def test_merging_a_drawn_timeline_gives_what_sorting_pairs_gives() -> None:
    timeline = drawn_timeline()
    pairs = [(int(t), n, k) for n, each in enumerate(timeline.tracks) for k, t in enumerate(each.tai_ns)]
    order = merged_order(timeline.tracks)
    track = np.searchsorted(timeline.offsets, order, side="right") - 1
    found = list(zip(track.tolist(), (order - timeline.offsets[track]).tolist(), strict=True))
    assert found == [(n, k) for _, n, k in sorted(pairs)]


def test_events_without_a_place_are_left_out_and_the_others_keep_their_numbers() -> None:
    tai_ns = np.array([30, 10, 20, 40])
    zero = np.zeros(4, np.int64)
    known = np.array([True, False, True, True])
    places = Places(tai_ns, tai_ns - 1, tai_ns + 2, zero + 1, known)
    columns = {"text": np.array([b"c", b"a", b"b", b"d"])}
    track, number = placed_track("n", "l", ("x",), places, zero, np.array([3, 1, 2, 4]), columns=columns)
    assert track.tai_ns.tolist() == [20, 30, 40]
    assert track.tag.tolist() == [2, 3, 4]
    assert track.columns["text"].tolist() == [b"b", b"c", b"d"]
    assert number.tolist() == [1, -1, 0, 2]


def test_of_one_node_its_own_flows_are_kept() -> None:
    timeline = drawn_timeline()
    within = Flows(*(np.concatenate(pair) for pair in zip(_columns(timeline.flows), _OWN, strict=True)))
    own = replace(timeline, flows=within).of_node("target")
    assert [each.lane for each in own.tracks] == ["CPU 0", "bw-traffic 1234"]
    assert [each.tolist() for each in _columns(own.flows)] == [[0], [7], [1], [8]]


_OWN = ([1], [7], [2], [8])


def _columns(flows: Flows) -> tuple[np.ndarray, ...]:
    return flows.from_track, flows.from_index, flows.to_track, flows.to_index


@pytest.mark.parametrize(
    ("column", "at", "value", "said"),
    [
        ("tai_ns", 0, -1, r"tai_ns\[0\]: -1 cannot be"),
        ("tai_ns", 5, 2**62, r"latest_ns\[5\]"),
        ("tai_ns", 5, 0, r"earliest_ns\[5\]"),
        ("earliest_ns", 7, 2**62, r"earliest_ns\[7\]"),
        ("latest_ns", 7, 0, r"latest_ns\[7\]: 0 cannot be"),
        ("u_ns", 2, -3, r"u_ns\[2\]: -3"),
        ("duration_ns", 2, -3, r"duration_ns\[2\]: -3"),
        ("name", 299, 4, r"name\[299\]: 4"),
    ],
)
def test_what_cannot_be_is_refused_with_its_track_column_and_event(
    column: str, at: int, value: int, said: str
) -> None:
    track = drawn_timeline().tracks[0]
    wrong = getattr(track, column).copy()
    wrong[at] = value
    with pytest.raises(RecordError, match=f"^producer 4, stream 43: {said}"):
        replace(track, **{column: wrong})


def test_columns_of_other_shapes_types_and_names_are_refused() -> None:
    track = drawn_timeline().tracks[0]
    zero = np.zeros(len(track), np.int64)
    with pytest.raises(RecordError, match="must ascend"):
        replace(track, tai_ns=track.tai_ns[::-1], earliest_ns=zero, latest_ns=track.latest_ns + 10**12)
    with pytest.raises(RecordError, match=r"u_ns: shape \(299,\)"):
        replace(track, u_ns=track.u_ns[1:])
    with pytest.raises(RecordError, match="tag: float64, must be int64"):
        replace(track, tag=track.tag / 2)
    with pytest.raises(RecordError, match="x: int32, must be int64, float64 or bytes"):
        replace(track, columns={"x": zero.astype(np.int32)})
    for name in ("tag", "a b", "", "1st", "ä"):
        with pytest.raises(RecordError, match="a column cannot be called"):
            replace(track, columns={name: zero})


def test_flows_and_lanes_that_cannot_be_are_refused() -> None:
    timeline = drawn_timeline()
    one = np.ones(1, np.int64)
    for track, index in ((4, 0), (-1, 0), (0, 300), (0, -1), (3, 0)):
        with pytest.raises(RecordError, match="flows: to of flow 0: no such event"):
            replace(timeline, flows=Flows(one, one, one * track, one * index))
    with pytest.raises(RecordError, match="flows: from: shapes differ"):
        replace(timeline, flows=Flows(one, one[:0], one, one))
    with pytest.raises(RecordError, match="two tracks of one node and lane"):
        Timeline("x", "tai", "y", (timeline.tracks[0], timeline.tracks[0]))
