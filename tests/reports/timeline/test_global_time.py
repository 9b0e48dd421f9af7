# SPDX-License-Identifier: Apache-2.0
"""Places in TAI by readings on both sides: inside their interval and U, and none across a break."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from bench.timeline.bench_timeline import Tally
from bench.timeline.scenes import scene
from reports.errors import RecordError
from reports.timeline import global_time
from reports.timeline.clock_record import NS_PER_S, ClockRecord, Times, nominal_ns
from reports.timeline.global_time import Break, GlobalTime

TAI0_NS = 1_795_000_000 * NS_PER_S
BOUND_NS, U_NS = 50_000, 10_000
COLUMNS = ("local_ns", "tai_ns", "bound_ns", "u_ns")


def whole(values: Sequence[float]) -> Times:
    return np.array(values, np.int64)


def record(local_s: Sequence[float], tai_s: Sequence[float], *, is_counter: bool = False) -> ClockRecord:
    """Return a record of readings in s after a start; all have one bound and one U."""
    local_ns = whole([round(value * NS_PER_S) for value in local_s])
    tai_ns = whole([TAI0_NS + round(value * NS_PER_S) for value in tai_s])
    bound_ns, u_ns = np.full_like(tai_ns, BOUND_NS), np.full_like(tai_ns, U_NS)
    return ClockRecord("n", "clock", "a test", is_counter, local_ns, tai_ns, bound_ns, u_ns)


def breaks_of(found: GlobalTime) -> list[tuple[str, float, float, float]]:
    """Return kind, begin, end and size of the breaks, in s to the millisecond."""
    return [
        (
            each.kind,
            (each.from_tai_ns - TAI0_NS) / NS_PER_S,
            (each.to_tai_ns - TAI0_NS) / NS_PER_S,
            round(each.size_ns / NS_PER_S, 3),
        )
        for each in found.breaks
    ]


@pytest.mark.parametrize("seeds", [range(20), range(10_000, 10_020)])
def test_drawn_scenes_lie_where_they_are_placed(seeds: range) -> None:
    tally = Tally()
    for seed in seeds:
        for node in scene(seed):
            tally.add(node)
    figures = tally.figures()
    assert (figures["outside_bound"], figures["false_breaks"], figures["steps_named_share"]) == (0, 0, 1)
    assert figures["inside_u_share"] >= 0.95
    assert figures["median_error_by_u"] >= 1 / 20


@pytest.mark.parametrize("chunk", [1, 7, 1999])
def test_events_have_the_same_places_however_many_are_placed_at_once(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    [node, *_] = [each for seed in range(20) for each in scene(seed) if each.step is not None]
    clock, local_ns = GlobalTime(node.record), node.events_local_ns[::-1]
    at_once = clock.place(local_ns, NS_PER_S)
    assert not at_once.known.all()
    monkeypatch.setattr(global_time, "CHUNK", chunk)
    found = clock.place(local_ns, NS_PER_S)
    assert (found.known == at_once.known).all()
    for column in ("tai_ns", "earliest_ns", "latest_ns", "u_ns"):
        assert (getattr(found, column) == getattr(at_once, column))[found.known].all(), column


def test_a_clock_of_one_rate_is_interpolated_and_goes_on_beyond_its_readings() -> None:
    rate = 1 + 40e-6
    seconds = np.arange(0, 60, 2.0)
    found = GlobalTime(record((seconds * rate).tolist(), seconds.tolist()))
    at_s = np.array([-100.0, 0, 0.7, 31.1, 58, 200])
    places = found.place(whole((at_s * rate * NS_PER_S).tolist()), beyond_ns=1000 * NS_PER_S)
    error_ns = places.tai_ns - TAI0_NS - at_s * NS_PER_S
    assert places.known.all()
    assert np.abs(error_ns[1:5]).max() <= 2
    assert (np.abs(places.u_ns[1:5] - U_NS) <= 60).all(), places.u_ns
    assert (np.abs(error_ns) <= places.u_ns).all()
    # The readings of a minute tell the rate by 2 bounds in 58 s, and the drift is 15 ppm beyond it.
    assert BOUND_NS + 15e-6 * 142 * NS_PER_S < places.bound_ns[5] < 10e6
    assert (places.bound_ns[1:5] <= BOUND_NS + 2 * 15e-6 * NS_PER_S).all()
    assert not found.place(whole([-301 * NS_PER_S, 360 * NS_PER_S]), beyond_ns=1000 * NS_PER_S).known.any()
    assert not found.place(whole([-1, 58 * NS_PER_S + 2_400_000])).known.any()


def test_many_wide_readings_tell_less_than_few_narrow_ones() -> None:
    narrow = record([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    wide_ns = narrow.bound_ns.copy()
    wide_ns[1:4] = 30_000_000
    u_ns = narrow.u_ns.copy()
    u_ns[1:4] = 9_000_000
    off_ns = narrow.tai_ns.copy()
    off_ns[1:4] += 20_000_000
    mixed = ClockRecord("n", "c", "s", False, narrow.local_ns, off_ns, wide_ns, u_ns)
    places = GlobalTime(mixed).place(whole([NS_PER_S, 2 * NS_PER_S]))
    assert np.abs(places.tai_ns - TAI0_NS - whole([NS_PER_S, 2 * NS_PER_S])).max() <= 1
    assert places.u_ns.max() < U_NS + 200


@pytest.mark.parametrize(
    ("local_s", "tai_s", "is_counter", "breaks", "unknown_s"),
    [
        # Forward, back, and by less than the interval between two readings.
        ([0, 1, 2, 13, 14], [0, 1, 2, 3, 4], False, [("step", 2, 3, 10)], [2.5, 5, 12.5]),
        ([0, 1, 2, 2.999, 3.999], [0, 1, 2, 3, 4], False, [("step", 2, 3, -0.001)], [2.5]),
        ([10, 11, 12, 3, 4], [0, 1, 2, 3, 4], False, [("step", 2, 3, -10)], [2.5, 12.5, 9]),
        # Times that the clock shows twice.
        (
            [10, 11, 12, 11.5, 12.5, 13.5],
            [0, 1, 2, 3, 4, 5],
            False,
            [("step", 2, 3, -1.5)],
            [11.2, 11.7, 12.2],
        ),
        ([0, 1, 1.2, 2.2], [0, 1, 2, 3], True, [("stopped", 1, 2, -0.8)], [1.1]),
        ([0, 1, 1, 1, 1.5, 2.5], [0, 1, 2, 3, 4, 5], True, [("stopped", 1, 4, -2.5)], [1.2]),
        ([50, 51, 52, 3, 4], [0, 1, 2, 9, 10], True, [("restart", 2, 9, -56)], [2.5, 52.5, 54]),
        ([0, 1, 2, 402, 403], [0, 1, 2, 402, 403], True, [("gap", 2, 402, 0)], [2.5, 200, 401.9]),
    ],
)
def test_nothing_is_placed_across_a_break(
    local_s: list[float],
    tai_s: list[float],
    is_counter: bool,
    breaks: list[tuple[str, float, float, float]],
    unknown_s: list[float],
) -> None:
    clock = record(local_s, tai_s, is_counter=is_counter)
    found = GlobalTime(clock)
    assert breaks_of(found) == breaks
    assert not found.place(whole([each * NS_PER_S for each in unknown_s])).known.any()
    ends = found.place(clock.local_ns[[0, -1]])
    assert (ends.tai_ns[ends.known] - TAI0_NS).tolist() in (
        [round(tai_s[0] * NS_PER_S), round(tai_s[-1] * NS_PER_S)],
        [round(tai_s[0] * NS_PER_S)],
    )


def test_a_step_behind_a_wide_reading_is_not_placed_before_it() -> None:
    """The reading at 3 s is consistent with either side: the step of 2 ms may have been before it."""
    clock = record([0, 1, 2, 3.002, 4.002, 5.002], [0, 1, 2, 3, 4, 5])
    bound_ns = clock.bound_ns.copy()
    bound_ns[3] = 20_000_000
    wide = ClockRecord("n", "c", "s", False, clock.local_ns, clock.tai_ns, bound_ns, clock.u_ns)
    found = GlobalTime(wide)
    assert breaks_of(found) == [("step", 2, 4, 0.002)]
    assert found.place(whole([2.5 * NS_PER_S, 3.5 * NS_PER_S])).known.tolist() == [False, False]


def test_a_single_reading_tells_little_but_no_lie() -> None:
    found = GlobalTime(record([5], [0]))
    places = found.place(whole([5 * NS_PER_S, 15 * NS_PER_S]), beyond_ns=10 * NS_PER_S)
    assert places.known.all()
    assert (places.tai_ns - TAI0_NS).tolist() == [0, 10 * NS_PER_S]
    assert places.bound_ns[1] == pytest.approx(BOUND_NS + 300e-6 * 10 * NS_PER_S, abs=2)


def test_u_grows_with_the_walk_of_the_frequency_between_two_readings() -> None:
    """Half-way of 100 s: 2 x 0.1 ppm a root second x 25 s x the root of 100 / 3, beside U of the readings."""
    places = GlobalTime(record([0, 100], [0, 100])).place(whole([0, 50 * NS_PER_S, 100 * NS_PER_S]))
    walk_ns = 2 * 100e-9 * 25 * NS_PER_S * (100 / 3) ** 0.5
    assert places.u_ns[[0, 2]].tolist() == [U_NS, U_NS]
    assert places.u_ns[1] == pytest.approx(np.hypot(U_NS, walk_ns), abs=1)


def test_a_step_is_measured_by_the_clock_that_made_it() -> None:
    rate = 1 + 200e-6
    local_s = [number * rate + (10 if number > 20 else 0) for number in range(40)]
    [found] = GlobalTime(record(local_s, list(range(40)))).breaks
    assert found.size_ns == pytest.approx(10 * NS_PER_S, abs=2 * BOUND_NS)


def test_a_break_says_when_and_by_how_much() -> None:
    [found] = GlobalTime(record([0, 1, 3], [0, 1, 2])).breaks
    assert found == Break("step", TAI0_NS + NS_PER_S, TAI0_NS + 2 * NS_PER_S, NS_PER_S)


@pytest.mark.parametrize(
    ("hz", "ticks"),
    [(1_000_000_000, 7), (2_593_902_000, 1 << 62), (62_500_000, 123_456_789_012), (9_999_999_999, 5)],
)
def test_ticks_become_whole_nanoseconds(hz: int, ticks: int) -> None:
    assert nominal_ns(np.array([ticks], np.uint64), hz).tolist() == [ticks * NS_PER_S // hz]


@pytest.mark.parametrize(("hz", "ticks"), [(0, [1]), (10**10 + 1, [1]), (1, [1 << 62])])
def test_ticks_that_cannot_become_nanoseconds_are_refused(hz: int, ticks: list[int]) -> None:
    with pytest.raises(RecordError, match="must be from"):
        nominal_ns(ticks, hz)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"u_ns": [1, 2, 60_000]}, r"clock of n: u_ns\[2\]: must be from 0 to bound_ns"),
        ({"bound_ns": [-1, 0, 0], "u_ns": [0, 0, 0]}, r"clock of n: u_ns\[0\]: must be from 0"),
        ({"u_ns": [1, 2]}, r"clock of n: u_ns: shape \(2,\), must be that of local_ns"),
        ({"tai_ns": [9_000_000, 0, 1]}, r"clock of n: tai_ns\[1\]: before the one before it"),
        ({"local_ns": [0, 1, 1 << 54]}, "clock of n: local_ns: must be within 104 days"),
        ({"tai_ns": [1 << 62, 2 + (1 << 62), 3 + (1 << 62)]}, "clock of n: tai_ns: must be within 104 days"),
        ({"bound_ns": [9, 9, 1 << 60]}, "clock of n: bound_ns: must be within 104 days"),
        ({"bound_ns": [1 << 60] * 3}, f"clock of n: bound_ns: must be at most {1 << 53}"),
        ({name: list[int]() for name in COLUMNS}, "clock of n: no reading"),
    ],
)
def test_readings_that_cannot_be_are_refused(changed: dict[str, list[int]], message: str) -> None:
    columns = dict(zip(COLUMNS, ([0, 1, 2], [0, 1, 2], [9, 9, 9], [1, 1, 1]), strict=True)) | changed
    local_ns, tai_ns, bound_ns, u_ns = (whole(columns[name]) for name in COLUMNS)
    with pytest.raises(RecordError, match=f"^{message}"):
        ClockRecord("n", "c", "s", False, local_ns, tai_ns, bound_ns, u_ns)
