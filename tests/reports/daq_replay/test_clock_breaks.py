# SPDX-License-Identifier: Apache-2.0
"""Whose clock broke a line, whether it was stepped, and which streams that takes."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reports.daq_replay.clock_breaks import ClockBreak, clock_breaks
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.late_messages import worst_messages
from reports.daq_replay.verdict import ReplayResults, judge_latency
from reports.rejudge.line_breaks import touched
from reports.tools.answers import ClockResult, ClockStep
from tests.reports.sample_run import DURATION_MS, START_TAI_NS, Disturbance, requirement_of, write_evidence

MS, S = 1_000_000, 1_000_000_000
BREAK_S = 30.4
"""Between two exchanges, in the middle of the counted time."""
PERIOD_NS = 100 * MS
"""Of the guest's fastest stream."""


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> ReplayResults:
    folder = tmp_path_factory.mktemp("quiet")
    write_evidence(folder, Disturbance(), seed=3)
    return load_replay(folder).replay()


def broken(
    replay: ReplayResults,
    moves: dict[str, tuple[int, int]],
    own: tuple[int, int] = (0, 0),
    *,
    seed: int = 1,
    bound_ns: int = 80_000,
    at_s: float = BREAK_S,
    valid: bool = True,
) -> ReplayResults:
    """Return a replay in which clocks move: by name, by so many ns and so many ppb; `own` the consumer's."""
    rng = random.Random(seed)
    clocks: list[ClockResult] = []
    steps: list[ClockStep] = []
    for clock in replay.recv.clocks:
        step_ns, rate_ppb = moves.get(clock.name, (0, 0))
        step_ns, rate_ppb = step_ns - own[0], rate_ppb - own[1]
        series: list[tuple[int, int, int]] = []
        for second in range(DURATION_MS // 1000 + 1):
            after_s = max(0.0, second - at_s)
            moved_ns = (step_ns if second > at_s else 0) + rate_ppb * after_s
            noise_ns = rng.randint(-bound_ns, bound_ns) // 2
            offset_ns = (
                (clock.offset_ns or 0) + second * int(clock.rate_ppb or 0) + round(moved_ns) + noise_ns
            )
            series.append((START_TAI_NS + second * S, offset_ns, bound_ns))
        if step_ns or rate_ppb:
            first_off = int(at_s) + 1
            off_ns = step_ns + round(rate_ppb * (first_off - at_s))
            steps.append(ClockStep(clock.name, START_TAI_NS + first_off * S + 2 * MS, off_ns))
        clocks.append(dataclasses.replace(clock, series=tuple(series)))
    recv = dataclasses.replace(replay.recv, clocks=tuple(clocks), clock_steps=tuple(steps), valid=valid)
    return dataclasses.replace(replay, recv=recv)


def reasons(replay: ReplayResults) -> dict[int, str]:
    """Return the reason of each stream that has no verdict."""
    judged = {
        stream.id: judge_latency(stream.id, requirement_of(stream.id), replay)
        for stream in replay.recv.streams
    }
    return {stream: each.verdict.reason for stream, each in judged.items() if each.standing == "undecided"}


def test_a_slewed_clock_of_the_target_is_its_own_and_no_step(quiet: ReplayResults):
    """475 ppm, as a live fault was: it was told as steps of two other clocks."""
    told = reasons(broken(quiet, {}, own=(0, 475_000)))
    assert len(told) == 48
    (reason,) = set(told.values())
    assert reason.startswith("clock local ran 47")
    assert reason.endswith(" ppm faster than before: the lines to all 2 clocks broke together")


def test_a_step_of_the_target_that_only_the_lines_saw_is_one_of_its_clock(quiet: ReplayResults):
    (reason,) = set(reasons(broken(quiet, {}, own=(3 * MS, 0))).values())
    assert reason.startswith("clock local stepped by ")
    assert reason.endswith(": the lines to all 2 clocks broke together")


def test_a_step_that_the_consumer_saw_itself_is_told_once(quiet: ReplayResults):
    replay = broken(quiet, {}, own=(3 * MS, 0))
    step = ClockStep("local", START_TAI_NS + int(BREAK_S * S), 3 * MS)
    recv = dataclasses.replace(
        replay.recv,
        clock_steps=(step, *replay.recv.clock_steps),
        valid=False,
        invalid_reasons=("the local clock was stepped", "the lines to all clocks broke"),
    )
    assert set(reasons(dataclasses.replace(replay, recv=recv)).values()) == {"clock local stepped by 3 ms"}


@pytest.mark.parametrize("step_ns", [-3 * MS, 3 * MS, 9 * MS])
def test_a_step_of_one_producers_clock_takes_its_streams_alone(quiet: ReplayResults, step_ns: int):
    told = reasons(broken(quiet, {"guest": (step_ns, 0)}))
    assert sorted(told) == [120, 121, 122, 123]
    assert all(reason.startswith("clock guest stepped by ") for reason in told.values())


def test_of_senders_too(quiet: ReplayResults):
    step = ClockStep("local", START_TAI_NS, -5 * MS)
    sends = [quiet.sends[0], dataclasses.replace(quiet.sends[1], clock_steps=(step,))]
    told = reasons(dataclasses.replace(quiet, sends=sends))
    assert told == dict.fromkeys([120, 121, 122, 123], "clock guest stepped by \N{MINUS SIGN}5 ms")


@pytest.mark.parametrize(
    ("moves", "why"),
    [
        ({"guest": (PERIOD_NS + MS, 0)}, "longer than a period: another load than the pattern's"),
        ({"guest": (0, PERIOD_NS // 25)}, "longer than a period in the half minute that is left"),
        ({"host": (3 * MS, 0)}, "the witness's clock"),
    ],
)
def test_what_touches_the_load_or_the_witness_takes_all(
    quiet: ReplayResults, moves: dict[str, tuple[int, int]], why: str
):
    told = reasons(broken(quiet, moves))
    assert len(told) == 48, why
    assert all(reason.startswith(f"clock {next(iter(moves))} ") for reason in told.values())


def test_a_result_that_is_invalid_for_a_step_decides_nothing(quiet: ReplayResults):
    """As the version before said it."""
    replay = broken(quiet, {"guest": (3 * MS, 0)}, valid=False)
    recv = dataclasses.replace(replay.recv, invalid_reasons=("clock guest was stepped",))
    told = reasons(dataclasses.replace(replay, recv=recv))
    assert len(told) == 48
    assert all(reason.startswith("clock guest stepped by ") for reason in told.values())


def test_who_moved_and_how_is_named_of_random_breaks(quiet: ReplayResults):
    """Amounts of at least four times what exchanges leave open; the truth is known."""
    rng = random.Random(20)
    for number in range(300):
        bound_ns = rng.choice([20_000, 80_000, 200_000])
        who = rng.choice(["local", "host", "guest"])
        is_rate = rng.random() < 0.5
        sign = rng.choice([-1, 1])
        step_ns = 0 if is_rate else sign * rng.randint(10 * bound_ns, 100 * bound_ns)
        rate_ppb = sign * rng.randint(4 * bound_ns, 10 * bound_ns) if is_rate else 0
        moved = (step_ns, rate_ppb)
        own, moves = (moved, {}) if who == "local" else ((0, 0), {who: moved})
        at_s = rng.uniform(10.2, 50.8)
        if at_s % 1 > 0.85:
            at_s -= 0.2  # what moved a moment ago has not broken a line yet
        replay = broken(quiet, moves, own, seed=number, bound_ns=bound_ns, at_s=at_s)
        (found,) = clock_breaks(replay.recv)
        told = (number, who, moved, at_s, found)
        assert found.clock == who, told
        assert (found.rate_change_ppb is not None) == is_rate, told
        if is_rate:
            assert abs((found.rate_change_ppb or 0) / rate_ppb - 1) < 0.2, told
        else:
            assert abs(found.step_ns - step_ns) <= 2 * bound_ns, told


def test_the_second_judge_takes_the_same_streams(quiet: ReplayResults):
    """Steps and rates about as long as a period, of every clock: what it calls too close may be either."""
    rng = random.Random(31)
    answers: list[frozenset[bool]] = []
    for number in range(200):
        moved = (
            (rng.randint(-2, 2) * PERIOD_NS * rng.random(), 0.0)
            if number % 2
            else (0.0, rng.uniform(-6e6, 6e6))
        )
        step_ns, rate_ppb = round(moved[0]), round(moved[1])
        who = rng.choice(["local", "host", "guest", "guest", "guest"])
        own, moves = ((step_ns, rate_ppb), {}) if who == "local" else ((0, 0), {who: (step_ns, rate_ppb)})
        replay = broken(quiet, moves, own, seed=number, valid=rng.random() < 0.9)
        told = reasons(replay)
        recv = dataclasses.asdict(replay.recv)
        sends = [dataclasses.asdict(send) for send in replay.sends]
        for stream in recv["streams"]:
            answer = touched(recv, sends, replay.clock_of_producer, stream)
            answers.append(answer)
            if replay.recv.valid:
                assert (stream["id"] in told) in answer, (number, who, moved, stream["id"], answer)
    assert set(answers) >= {frozenset({True}), frozenset({False})}
    assert sum(len(answer) > 1 for answer in answers) < len(answers) / 10


@pytest.mark.parametrize(("stream", "with_the_guests"), [(33, [33]), (123, [])])
def test_no_stage_is_told_of_a_message_whose_clock_broke(
    tmp_path: Path, stream: int, with_the_guests: list[int]
):
    write_evidence(tmp_path, Disturbance(path_delay_ns={stream: 150 * MS}), seed=3)
    replay = load_replay(tmp_path).replay()
    assert {message.stream for message in worst_messages(replay)} == {stream}
    stepped = broken(replay, {"guest": (3 * MS, 0)})
    assert sorted({message.stream for message in worst_messages(stepped)}) == with_the_guests
    assert worst_messages(broken(replay, {}, own=(0, 475_000))) == []


def test_a_clock_has_shifted_since_the_last_exchange_on_its_line():
    """Its rate may have changed right behind that one; and a clock that runs slower shifts as far."""
    for change_ppb in (2_000, -2_000):
        each = ClockBreak("guest", 10 * S, 14 * S, 7, change_ppb)
        assert [each.shift_ns(end_s * S) for end_s in (9, 10, 14, 30)] == [0, 0, 8_000, 40_000]
    assert ClockBreak("guest", 10 * S, 14 * S, -3 * MS).shift_ns(30 * S) == 3 * MS


def test_words():
    assert str(ClockBreak("guest", 0, 1, -3 * MS)) == "clock guest stepped by \N{MINUS SIGN}3 ms"
    assert str(ClockBreak("guest", 0, 1, 9, -12_000)) == "clock guest ran 12 ppm slower than before"


class Series(tuple[Any, ...]):
    """Exchanges of a clock that nobody may walk through: there are as many as the run has seconds."""

    def __iter__(self) -> Iterator[Any]:
        """Refuse."""
        raise AssertionError("a walk through all exchanges of a clock")


def test_breaks_of_a_day_are_found_without_a_walk_through_it(quiet: ReplayResults) -> None:
    """Each stream asks for them, and each break: a page of such a day took half a minute, `verify` hours."""
    count = 86_400
    series = Series([(START_TAI_NS + n * S, n % 7 * 1000, 81_000) for n in range(count)])
    steps = tuple(
        ClockStep("guest", START_TAI_NS + n * 1_300 * S + 2 * MS, 3 * MS * (1 if n % 2 else -1))
        for n in range(1, 65)
    )
    clocks = [dataclasses.replace(each, series=series) for each in quiet.recv.clocks]
    recv = dataclasses.replace(
        quiet.recv, clocks=tuple(clocks), clock_steps=steps, end_tai_ns=START_TAI_NS + count * S
    )
    found = clock_breaks(recv)
    assert [(each.clock, each.step_ns, each.to_tai_ns) for each in found] == [
        ("guest", step.step_ns, step.time_tai_ns - 2 * MS) for step in steps
    ]
    assert all(each.to_tai_ns - each.from_tai_ns == S for each in found)
    as_told = {
        "clock_steps": [dataclasses.asdict(step) for step in steps],
        "valid": True,
        "end_tai_ns": recv.end_tai_ns,
        "clocks": [{"name": each.name, "series": series} for each in clocks],
        "streams": [{"producer": 12, "period_ns": PERIOD_NS}],
    }
    assert touched(as_told, (), {1: "host", 12: "guest"}, {"producer": 12}) == {True}
