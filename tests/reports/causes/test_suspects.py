# SPDX-License-Identifier: Apache-2.0
"""Who had the time of late messages: causes laid over at known instants, and strangers of the same period."""

from __future__ import annotations

import numpy as np
import pytest

from bench.patterns.overlay import Overlaid, Spans, lay_over, quiet_scene
from reports.causes.suspects import Activity, Finding, Stay, merged, overlap, suspects, without
from reports.errors import ReportError

PERIOD_NS, HOG_NS = 250_000_000, 8_000_000
NAME = "thread nobody-knows"


def spans(period_ns: int, long_ns: int, end_ns: int, phase_ns: int = 40_000_000) -> Spans:
    return [(at, at + long_ns) for at in range(phase_ns, end_ns - long_ns, period_ns)]


def judged(found: Overlaid, **more: Spans) -> Finding:
    scene = found.scene
    took = (scene.read_ns - scene.came_ns).astype(np.float64)
    level = float(np.median(took))
    late = took > level + 10 * float(np.median(np.abs(took - level))) + 1e5
    activities = [
        Activity(name, "t", *(np.array(each, np.int64) for each in zip(*there, strict=True)))
        for name, there in {**scene.active, **more}.items()
        if there
    ]
    return suspects(took - level, late, [Stay("t", scene.came_ns, scene.read_ns)], activities)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def test_a_thread_that_had_the_time_is_named_with_its_share(rng: np.random.Generator) -> None:
    scene = quiet_scene(rng, 2000, 2_500_000)
    found = judged(lay_over(scene, NAME, spans(PERIOD_NS, HOG_NS, scene.end_ns)))
    [first] = found.named
    assert first.name == NAME
    assert first.chance <= 0.001
    assert found.explained == pytest.approx(1, abs=0.05)
    assert first.low - 0.02 <= 1 <= first.high + 0.05


def test_a_share_is_what_was_laid_over(rng: np.random.Generator) -> None:
    scene = quiet_scene(rng, 2000, 2_500_000)
    hidden = spans(PERIOD_NS, HOG_NS // 2, scene.end_ns, 170_000_000)
    laid = lay_over(scene, NAME, spans(PERIOD_NS, HOG_NS, scene.end_ns), hidden)
    found = judged(laid)
    assert [each.name for each in found.named] == [NAME]
    assert found.explained == pytest.approx(laid.truth, abs=0.1)


def test_what_explains_less_than_half_is_not_recorded(rng: np.random.Generator) -> None:
    scene = quiet_scene(rng, 2000, 2_500_000)
    hidden = spans(PERIOD_NS, HOG_NS, scene.end_ns, 170_000_000)
    found = judged(lay_over(scene, NAME, spans(PERIOD_NS, HOG_NS // 2, scene.end_ns), hidden))
    assert found.named == ()
    assert found.explained == 0
    assert found.seen[0].name == NAME
    assert found.seen[0].share == pytest.approx(0.2, abs=0.1)


def test_times_may_be_those_of_tai(rng: np.random.Generator) -> None:
    """To the nanosecond: as a float such a time is known to 256 of them."""
    tai_ns = 1_796_000_000_000_000_001
    came = np.arange(200, dtype=np.int64) * 1_000_000 + tai_ns
    late = np.arange(200) % 20 == 7
    read = came + np.where(late, 100, 10)
    begin = came[late] + 5
    found = suspects(
        (read - came - 10).astype(np.float64),
        late,
        [Stay("t", came, read)],
        [Activity(NAME, "t", begin, begin + 80)],
    )
    assert found.explained == pytest.approx(80 / 90)


def test_two_that_share_it_are_named_both(rng: np.random.Generator) -> None:
    scene = quiet_scene(rng, 2000, 2_500_000)
    once = lay_over(scene, NAME, spans(PERIOD_NS, HOG_NS, scene.end_ns))
    twice = lay_over(once.scene, "softirq NET_TX", spans(PERIOD_NS, HOG_NS, scene.end_ns, 170_000_000))
    found = judged(twice)
    assert {each.name for each in found.named} == {NAME, "softirq NET_TX"}
    assert found.explained == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("phase_ns", [90_000_000, 130_000_000, 200_000_000])
def test_what_has_the_same_period_and_another_phase_is_not_named(
    rng: np.random.Generator, phase_ns: int
) -> None:
    scene = quiet_scene(rng, 2000, 2_500_000)
    laid = lay_over(scene, NAME, [], spans(PERIOD_NS, HOG_NS, scene.end_ns))
    found = judged(laid, **{NAME: spans(PERIOD_NS, HOG_NS, scene.end_ns, phase_ns)})
    assert found.named == ()


def test_what_is_active_all_the_time_explains_nothing(rng: np.random.Generator) -> None:
    scene = quiet_scene(rng, 2000, 2_500_000)
    laid = lay_over(scene, NAME, [], spans(PERIOD_NS, HOG_NS, scene.end_ns))
    found = judged(laid, busy=[(at, at + 600_000) for at in range(0, scene.end_ns, 1_000_000)])
    assert found.named == ()


def test_one_single_late_message_may_be_chance(rng: np.random.Generator) -> None:
    """A cause that was active for a tenth of the record meets one moment by chance."""
    scene = quiet_scene(rng, 2000, 2_500_000)
    [first, *_] = spans(PERIOD_NS, HOG_NS, scene.end_ns)
    laid = lay_over(scene, NAME, [], [first])
    found = judged(laid, **{NAME: spans(PERIOD_NS // 4, HOG_NS, scene.end_ns)})
    assert found.seen[0].share > 0.9
    assert found.named == ()


def test_what_was_not_recorded_counts_as_unknown(rng: np.random.Generator) -> None:
    scene = quiet_scene(rng, 2000, 2_500_000)
    laid = lay_over(scene, NAME, spans(PERIOD_NS, HOG_NS, scene.end_ns))
    half = scene.end_ns // 2
    took = (laid.scene.read_ns - laid.scene.came_ns).astype(np.float64)
    late = laid.due_ns > 0
    lost = {"t": (np.array([half]), np.array([scene.end_ns]))}
    found = suspects(
        took - np.median(took),
        late,
        [Stay("t", laid.scene.came_ns, laid.scene.read_ns)],
        [],
        unrecorded=lost,
    )
    assert found.named == ()
    assert found.unknown == pytest.approx(0.5, abs=0.05)
    nothing = {"t": (np.empty(0, np.int64), np.empty(0, np.int64))}
    stay = Stay("t", laid.scene.came_ns, laid.scene.read_ns)
    assert suspects(took - np.median(took), late, [stay], [], unrecorded=nothing).unknown == 0


def test_clocks_that_hardly_agree_widen_the_interval(rng: np.random.Generator) -> None:
    scene = quiet_scene(rng, 2000, 2_500_000)
    laid = lay_over(scene, NAME, spans(PERIOD_NS, HOG_NS, scene.end_ns)).scene
    took = (laid.read_ns - laid.came_ns).astype(np.float64)
    excess, late = took - np.median(took), took > 1e6
    begin, end = (np.array(each, np.int64) for each in zip(*laid.active[NAME], strict=True))
    one, other = (
        suspects(excess, late, [Stay("t", laid.came_ns, laid.read_ns, u)], [Activity(NAME, "t", begin, end)])
        for u in (0.0, 6e6)
    )
    assert one.seen[0].low > 0.9
    assert other.seen[0].low < 0.5
    assert other.named == ()


def test_stretches_are_taken_out_of_an_activity(rng: np.random.Generator) -> None:
    for _ in range(200):
        marks = np.sort(rng.choice(200, 12, replace=False)).astype(np.int64)
        cuts = np.sort(rng.choice(200, 8, replace=False)).astype(np.int64)
        activity = Activity(NAME, "t", marks[::2], marks[1::2])
        left = without(activity, cuts[::2], cuts[1::2])
        ticks = np.arange(200)
        was = ((marks[::2, None] <= ticks) & (ticks < marks[1::2, None])).any(0)
        out = ((cuts[::2, None] <= ticks) & (ticks < cuts[1::2, None])).any(0)
        found = ((left.begin_ns[:, None] <= ticks) & (ticks < left.end_ns[:, None])).any(0)
        assert (found == (was & ~out)).all()
        assert (left.end_ns > left.begin_ns).all()
        assert (left.begin_ns[1:] >= left.end_ns[:-1]).all()


def test_without_a_late_message_there_is_nothing_to_explain() -> None:
    none = np.zeros(3, np.int64)
    with pytest.raises(ReportError, match="no message is late"):
        suspects(np.zeros(3), np.zeros(3, np.bool_), [Stay("t", none, none)], [])
    with pytest.raises(ReportError, match="each message needs"):
        suspects(np.zeros(3), np.zeros(2, np.bool_), [], [])


def test_an_overlap_is_what_two_have_in_common() -> None:
    activity = Activity("a", "t", np.array([0, 10, 20]), np.array([5, 15, 30]))
    both = overlap(activity, np.array([3, 12, 22, 40]), np.array([11, 13, 24, 50]))
    assert both.begin_ns.tolist() == [3, 10, 12, 22]
    assert both.end_ns.tolist() == [5, 11, 13, 24]
    assert not len(overlap(activity, np.array([], np.int64), np.array([], np.int64)).begin_ns)


def test_spans_that_touch_or_overlap_become_one() -> None:
    begin, end = merged([(20, 30), (0, 5), (5, 7), (6, 6), (8, 19), (9, 10)])
    assert list(zip(begin.tolist(), end.tolist(), strict=True)) == [(0, 7), (8, 19), (20, 30)]
    assert [each.size for each in merged([])] == [0, 0]
