# SPDX-License-Identifier: Apache-2.0
"""Random replays against an oracle that was written from docs/latency.md alone, `What the machine took`.

The oracle walks through time step by step in exact fractions and shares no code with
reports/tools/taken_time.py. The log has what is over a threshold, which a stricter requirement lies below.
Twenty thousand replays here; `pytest --oracle-replays 100000` asks for more.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import pytest

from reports.daq_replay.attempts import decide
from reports.daq_replay.verdict import ReplayResults, Standing, StreamRequirement, judge_latency
from reports.record.histogram import Summary
from reports.record.measurement import Limit, UncertaintyPart
from reports.tools.answers import Miss, RecvResult, StreamResult, WitnessCpu, WitnessResult
from reports.tools.taken_time import TakenTime

US = 1000
LIMIT_NS = 10_000 * US
PERIOD_NS = 250 * US
STREAM = 13


@dataclass(frozen=True)
class Message:
    """When a message was to be sent, was sent, and arrived; ns of the one clock that all share here."""

    scheduled: int
    sent: int
    received: int


@dataclass(frozen=True)
class Case:
    """A replay of one stream."""

    messages: tuple[Message, ...]
    pauses: tuple[tuple[int, int, int], ...]
    target_ran_ns: tuple[int, ...] | None
    unclaimed_ns: tuple[int, ...] | None
    emulated: bool
    band_ns: int
    utilisation: float | None
    n_required: int
    lost: int
    logged_above_ns: int

    def logged(self) -> list[Message]:
        """Return the messages that the log of misses has."""
        return [m for m in self.messages if m.received - m.scheduled > self.logged_above_ns]


def draw(rng: random.Random) -> Case:
    """Draw a replay in which limits, pauses and lateness lie close to each other."""
    messages: list[Message] = []
    for number in range(rng.randrange(1, 5)):
        scheduled = number * 40_000 * US
        late = rng.choice((0, 0, -150 * US, rng.randrange(12_000 * US)))
        way = rng.choice((1_000 * US, rng.randrange(9_000 * US, 11_000 * US), rng.randrange(30_000 * US)))
        way = max(way, -late)  # none arrives before its instant: that would decide nothing
        messages.append(Message(scheduled, scheduled + late, scheduled + late + way))
    pauses: list[tuple[int, int, int]] = []
    for _ in range(rng.randrange(6)):
        start = rng.randrange(-10_000 * US, 150_000 * US)
        pauses.append((start, start + rng.randrange(100 * US, 12_000 * US), rng.randrange(2)))
    ran = tuple(
        rng.choice((0, 0, rng.randrange(PERIOD_NS), end - start + PERIOD_NS)) for start, end, _cpu in pauses
    )
    nobody = tuple(rng.choice((0, 0, rng.randrange(end - start + PERIOD_NS))) for start, end, _cpu in pauses)
    return Case(
        messages=tuple(messages),
        pauses=tuple(pauses),
        target_ran_ns=rng.choice((ran, ran, ran, (), None)),
        unclaimed_ns=rng.choice((nobody, nobody, nobody, (), None)),
        emulated=rng.choice((False, False, True)),
        band_ns=rng.choice((0, 200 * US, 1_500 * US)),
        utilisation=rng.choice((None, 0.0, 0.25, 0.9)),
        n_required=rng.choice((1, 1, 1, 3)),
        lost=rng.choice((0, 0, 0, 0, 1)),
        logged_above_ns=rng.choice((LIMIT_NS // 4 * 3, LIMIT_NS, LIMIT_NS // 2 * 3)),
    )


# -- the oracle


def taken(case: Case, begin: int, end: int, *, claimed: bool = False) -> Fraction:
    """T of the document, or its K where `claimed`: o + rho o + V(b), at most e - b."""
    begin, end = begin - case.band_ns, end + case.band_ns
    rho = min(Fraction(case.utilisation or 0), Fraction(1, 2))
    away: list[tuple[int, int]] = []
    claimed = claimed and not case.emulated
    if case.target_ran_ns is not None and not (claimed and case.unclaimed_ns is None):
        for number, (start, stop, _cpu) in enumerate(case.pauses):
            less = case.target_ran_ns[number] if case.target_ran_ns else 0
            less += case.unclaimed_ns[number] if claimed and case.unclaimed_ns else 0
            away.append((min(stop, start - PERIOD_NS + less), stop))
    marks = sorted({begin, end, *(mark for pause in away for mark in pause)})
    piled_up = Fraction(0)
    paused = 0
    value = Fraction(0)
    for since, until in itertools.pairwise(marks):
        if since == begin:
            value = piled_up
        is_away = any(start <= since and until <= stop for start, stop in away)
        if is_away:
            piled_up += rho * (until - since)
            paused += until - since if begin <= since and until <= end else 0
        else:
            piled_up = max(Fraction(0), piled_up - (1 - rho) * (until - since))
    return min(Fraction(end - begin), paused + rho * paused + value)


def expected(case: Case) -> str:
    """Return what the document says of the stream."""
    whole = [message.received - message.scheduled for message in case.messages]
    if case.lost:
        return "over"
    if max(whole) <= LIMIT_NS - case.band_ns:
        return "clean" if len(whole) >= case.n_required else "short"
    bound = LIMIT_NS + case.band_ns
    late = [m for m in case.logged() if m.received - m.scheduled > LIMIT_NS - case.band_ns]
    for m in late:
        way = min(m.received - m.scheduled, m.received - m.sent)
        if way - taken(case, m.received - way, m.received) > bound:
            return "over"
    unlogged = [m for m in case.messages if m not in case.logged()]
    if any(m.received - m.scheduled > bound for m in unlogged) and any(
        m.received - m.sent > bound for m in unlogged
    ):
        return "over"
    near = [m for m in unlogged if m.received - m.scheduled > LIMIT_NS - case.band_ns]
    rests = [
        m.received - m.scheduled - taken(case, m.scheduled, m.received, claimed=True)
        <= LIMIT_NS - case.band_ns
        for m in late
    ]
    return "explained" if late and not near and all(rests) else "marginal"


# -- the same through the project's code


def summary(values: list[int]) -> Summary:
    ordered = sorted(values)
    buckets = tuple((value, 1, ordered.count(value)) for value in sorted(set(ordered)))
    return Summary(len(ordered), ordered[0], ordered[-1], None, None, 0, buckets)


def replay_of(case: Case) -> ReplayResults:
    misses = [
        Miss(STREAM, number, m.received - m.scheduled, m.received - m.sent, m.received)
        for number, m in enumerate(case.messages)
        if m in case.logged()
    ]
    n = len(case.messages)
    stream = StreamResult(
        id=STREAM, producer=1, message_type=3, transport="tcp", size_bytes=10, period_ns=40_000 * US,
        budget_ns=LIMIT_NS, expected=n + case.lost, received=n, lost=case.lost, duplicates=0, reordered=0,
        invalid_samples=0, misses=len(misses), misses_sent=0,
        received_minus_scheduled=summary([m.received - m.scheduled for m in case.messages]),
        received_minus_sent=summary([m.received - m.sent for m in case.messages]),
        sent_minus_scheduled=summary([m.sent - m.scheduled for m in case.messages]),
    )  # fmt: skip
    recv = RecvResult(
        version="0", complete=True, valid=True, invalid_reasons=(), phase="aligned-12", warmup_ms=0,
        duration_ms=1, correction="none", start_tai_ns=0, end_tai_ns=1, tai_utc_s=37, streams=(stream,),
        clocks=(), clock_steps=(), hostile={}, recorder={}, memory={}, scheduling={},
    )  # fmt: skip
    cpus = tuple(WitnessCpu(cpu, 1, 0, 0, 0, 0, case.utilisation) for cpu in (0, 1))
    return ReplayResults(
        recv=recv,
        clock_of_producer={1: "host"},
        witness=WitnessResult(
            cpus, 0.0, case.pauses, 0, PERIOD_NS, case.target_ran_ns, case.unclaimed_ns, case.emulated
        ),
        misses=misses,
        extra_parts=[UncertaintyPart("clock", "bound", case.band_ns)],
    )


@pytest.mark.parametrize("seed", range(4))
def test_every_replay_stands_as_the_document_says(seed: int, pytestconfig: pytest.Config) -> None:
    rng = random.Random(seed)
    found: dict[str, int] = {}
    for _ in range(int(str(pytestconfig.getoption("--oracle-replays"))) // 4):
        case = draw(rng)
        requirement = StreamRequirement("R", Limit(LIMIT_NS, None, "a test"), case.n_required)
        judged = judge_latency(STREAM, requirement, replay_of(case))
        wanted = expected(case)
        found[wanted] = found.get(wanted, 0) + 1
        assert judged.standing == wanted, case
        assert (judged.verdict.outcome == "pass") is (wanted == "clean"), case
        assert (judged.verdict.outcome == "fail") is (wanted == "over"), case
    assert set(found) == {"clean", "short", "over", "explained", "marginal"}


def test_what_is_taken_is_never_more_than_the_pauses_allow() -> None:
    """Twice the pauses, whatever lies between them."""
    rng = random.Random(5)
    for _ in range(500):
        case = draw(rng)
        machine = TakenTime.of(replay_of(case).witness or WitnessResult((), 0.0, (), 0))
        begin = rng.randrange(100_000 * US)
        end = begin + rng.randrange(40_000 * US)
        all_of_it = machine.paused_ns(-(10**12), 10**12)
        assert 0 <= machine.most_ns(begin, end) <= min(end - begin, 2 * all_of_it)
        assert machine.most_ns(begin, end) >= machine.paused_ns(begin, end)


# -- several replays


def outcome_probabilities(over: float, allowed: int) -> Counter[str]:
    """Return how often a stream ends with each outcome; a replay is over with a probability, else clean."""
    found: Counter[str] = Counter()
    begun: list[tuple[list[Standing], float]] = [([], 1.0)]
    while begun:
        standings, probability = begun.pop()
        decided = decide(standings, standings.count("over"), allowed)
        if decided is not None or len(standings) == allowed:
            found[decided or "inconclusive"] += probability  # type: ignore[assignment]
            continue
        begun.append(([*standings, "over"], probability * over))
        begun.append(([*standings, "clean"], probability * (1.0 - over)))
    return found


@pytest.mark.parametrize(
    ("over", "fail", "none", "passes"),
    [
        (0.01, 0.000001, 0.000198, 0.999801),
        (0.05, 0.000125, 0.00475, 0.995125),
        (0.10, 0.001, 0.018, 0.981),
        (1 - 0.99**120, 0.344, 0.294, 0.362),
        (1 - 0.97**99, 0.860, 0.0887, 0.0513),
        (1 - 0.95**120, 0.9936, 0.0042, 0.0021),
        (1 - 0.99**600, 0.9928, 0.0048, 0.0024),
    ],
)
def test_the_operating_characteristic_is_that_of_the_document(
    over: float, fail: float, none: float, passes: float
) -> None:
    found = outcome_probabilities(over, 3)
    assert found["fail"] == pytest.approx(fail, rel=0.01, abs=1e-7)
    assert found["inconclusive"] == pytest.approx(none, rel=0.01, abs=1e-6)
    assert found["pass"] == pytest.approx(passes, rel=0.02, abs=1e-6)
    assert sum(found.values()) == pytest.approx(1.0)


def test_real_hardware_decides_by_one_replay() -> None:
    assert decide(["over"], 1, 1) == "fail"
    assert outcome_probabilities(0.3, 1) == pytest.approx({"pass": 0.7, "fail": 0.3})


@pytest.mark.parametrize("against", ["over", "marginal", "undecided"])
def test_each_replay_that_is_not_clean_counts_against_a_pass(against: Standing) -> None:
    assert decide([against, "clean"], 1, 3) is None
    assert decide(["clean", against], 1, 3) is None
    assert decide([against, "clean", "clean"], 1, 3) == "pass"


def test_a_stream_passes_only_by_one_clean_replay_more_than_others() -> None:
    assert decide(["clean"], 0, 3) == "pass"
    assert decide(["over", "clean"], 1, 3) is None
    assert decide(["over", "clean", "clean"], 1, 3) == "pass"
    assert decide(["explained", "explained", "explained"], 0, 3) is None
    assert decide(["explained", "short", "clean"], 0, 3) is None, "one lucky replay"
    assert decide(["explained", "explained", "clean", "clean"], 0, 3) == "pass"
    assert decide(["over", "explained", "clean", "clean"], 1, 3) == "pass"
    assert decide(["over", "clean", "clean"], 3, 3) == "fail"
    assert decide(["clean", "clean", "clean"], 3, 3) == "pass", "another stream's misses are not this one's"
