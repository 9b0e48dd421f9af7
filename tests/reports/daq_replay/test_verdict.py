# SPDX-License-Identifier: Apache-2.0
"""The verdict on a stream: what is the target's, what is the bench's, and that nothing slips through."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from reports.daq_replay.evidence import load_replay
from reports.daq_replay.verdict import (
    ReplayResults,
    StreamRequirement,
    StreamVerdict,
    judge_latency,
    stream_uncertainty,
)
from reports.errors import RecordError
from reports.record.histogram import Summary
from reports.record.measurement import Limit, UncertaintyPart
from reports.tools.answers import (
    ClockStep,
    Miss,
    RecvResult,
    SendResult,
    WitnessResult,
    read_misses,
    witness_result,
)
from tests.reports.sample_run import Disturbance, requirement_of, summary, write_evidence

MS = 1_000_000


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> ReplayResults:
    return replay_of(tmp_path_factory.mktemp("quiet"), Disturbance())


def replay_of(folder: Path, disturbance: Disturbance) -> ReplayResults:
    write_evidence(folder, disturbance, seed=3)
    return load_replay(folder).replay()


def judged(replay: ReplayResults, stream: int) -> StreamVerdict:
    return judge_latency(stream, requirement_of(stream), replay)


def outcomes(replay: ReplayResults) -> dict[int, str]:
    found = {stream.id: judged(replay, stream.id).verdict.outcome for stream in replay.recv.streams}
    return {stream: outcome for stream, outcome in found.items() if outcome != "pass"}


def changed_recv(replay: ReplayResults, **fields: object) -> ReplayResults:
    recv: RecvResult = dataclasses.replace(replay.recv, **fields)  # type: ignore[arg-type]
    return dataclasses.replace(replay, recv=recv)


def test_all_48_streams_of_a_quiet_run_pass(quiet: ReplayResults):
    assert len(quiet.recv.streams) == 48
    assert outcomes(quiet) == {}


def test_a_slow_path_fails_exactly_its_stream(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}))
    assert outcomes(replay) == {33: "fail"}
    assert "received - sent" in judged(replay, 33).verdict.reason


def test_a_late_generator_is_inconclusive_never_a_pass_never_a_fail(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(generator_delay_ns={33: 15 * MS}))
    assert outcomes(replay) == {33: "inconclusive"}
    assert judged(replay, 33).verdict.reason.startswith("generator late")


def test_a_value_in_the_guard_band_is_inconclusive(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 9 * MS}))
    maximum = replay.recv.stream(33).received_minus_scheduled.max_ns
    assert maximum is not None
    part = UncertaintyPart("more", "bound", abs(10 * MS - maximum))
    assert judged(dataclasses.replace(replay, extra_parts=[part]), 33).verdict.outcome == "inconclusive"


def test_what_the_machine_pushed_into_the_guard_band_is_explained(tmp_path: Path):
    """The consumer logs it although it is no miss; what it did not log, nothing explains."""
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 9 * MS}, stalled=True))
    stream = replay.recv.stream(33)
    maximum = stream.received_minus_scheduled.max_ns
    assert maximum is not None
    tight = dataclasses.replace(requirement_of(33), limit=Limit(maximum + 10_000, None, "this test"))
    found = judge_latency(33, tight, replay)
    assert "lies within U" in found.verdict.reason
    assert found.standing == "explained"
    of_others = [miss for miss in replay.misses if miss.stream != 33]
    unlogged = judge_latency(33, tight, dataclasses.replace(replay, misses=of_others))
    assert unlogged.standing == "marginal"


def test_loss_fails_the_stream(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(lost={12: 6}))
    assert outcomes(replay) == {12: "fail"}
    assert judged(replay, 12).verdict.reason == "6 lost, 0 allowed"


def test_misses_that_the_machine_explains_in_full_are_inconclusive_and_counted(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    assert outcomes(replay) == {33: "inconclusive"}
    found = judged(replay, 33)
    assert found.standing == "explained"
    assert found.misses_explained == replay.recv.stream(33).misses > 1
    assert "the machine took up to" in found.verdict.reason


def test_a_stall_that_does_not_explain_the_whole_excuses_nothing(tmp_path: Path):
    """One stall of 1.1 ms does not excuse a message that is 5 s late."""
    for late_ns, stall_ns in ((15 * MS, 1_100_000), (5_000 * MS, 1_100_000), (30 * MS, 8 * MS)):
        folder = tmp_path / f"{late_ns}-{stall_ns}"
        folder.mkdir()
        disturbance = Disturbance(path_delay_ns={33: late_ns}, stalled=True, stall_ns=stall_ns)
        found = judged(replay_of(folder, disturbance), 33)
        assert (found.standing, found.verdict.outcome) == ("over", "fail")
        assert "without what the machine took" in found.verdict.reason


def test_between_explained_and_over_there_is_no_verdict(tmp_path: Path):
    """What is left after the machine's time lies within U of the limit."""
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    part = UncertaintyPart("more", "bound", 6 * MS)
    found = judged(dataclasses.replace(replay, extra_parts=[part]), 33)
    assert (found.standing, found.verdict.outcome) == ("marginal", "inconclusive")


@pytest.mark.parametrize(
    ("ran_share", "standing"),
    [(0.0, "explained"), (0.5, "over"), (1.0, "over"), (None, "over")],
    ids=["nobody of the target", "half", "all of it", "not known"],
)
def test_a_stall_in_which_the_target_itself_ran_excuses_nothing(
    tmp_path: Path, ran_share: float | None, standing: str
):
    """A thread of the target above the witness's priority stalls that, as a pause of the machine does."""
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    witness = replay.witness
    assert witness is not None
    ran_ns = None
    if ran_share is not None:
        lengths = [end - start + witness.period_ns for start, end, _cpu in witness.windows]
        ran_ns = tuple(int(ran_share * length) for length in lengths)
    counted: WitnessResult = dataclasses.replace(witness, target_ran_ns=ran_ns)
    assert judged(dataclasses.replace(replay, witness=counted), 33).standing == standing


@pytest.mark.parametrize(
    ("unclaimed_share", "standing"),
    [(0.0, "explained"), (0.5, "marginal"), (1.0, "marginal"), (None, "marginal")],
    ids=["all is claimed", "half", "nobody claims it", "not known"],
)
def test_a_stall_that_nobody_claims_neither_excuses_nor_fails(
    tmp_path: Path, unclaimed_share: float | None, standing: str
):
    """It may be of interrupts, which a target makes as well as a machine."""
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    witness = replay.witness
    assert witness is not None
    unclaimed_ns = None
    if unclaimed_share is not None:
        lengths = [end - start + witness.period_ns for start, end, _cpu in witness.windows]
        unclaimed_ns = tuple(int(unclaimed_share * length) for length in lengths)
    counted: WitnessResult = dataclasses.replace(witness, unclaimed_ns=unclaimed_ns)
    emulated: WitnessResult = dataclasses.replace(counted, emulated=True)
    assert judged(dataclasses.replace(replay, witness=emulated), 33).standing == "explained"
    found = judged(dataclasses.replace(replay, witness=counted), 33)
    assert found.standing == standing
    assert ("nobody claims" in found.verdict.reason) is (standing == "marginal")


@pytest.mark.parametrize(
    ("target_ran_ns", "unclaimed_ns", "share"),
    [
        ((), (), 0.5),
        ((0, 0, 0), (0, 0, 0), 0.5),
        ((20, 0, 0), (20, 20, 0), 0.3125),  # left are none, 30 to 40, 60 to 100, of 80
        ((40, 30, 0), (), 0.25),
        (None, (), 0.0),
        ((0, 0, 0), None, 0.0),
        ((), None, 0.0),
    ],
)
def test_the_machine_was_away_while_neither_target_nor_interrupts_are_known_to_have_run(
    target_ran_ns: tuple[int, ...] | None, unclaimed_ns: tuple[int, ...] | None, share: float
):
    windows = ((0, 30, 0), (20, 40, 1), (60, 100, 0))
    found = WitnessResult((), 0.5, windows, 0, 10, target_ran_ns, unclaimed_ns)
    assert found.away_fraction == pytest.approx(share)
    whole = dataclasses.replace(found, target_ran_ns=(), emulated=True)
    assert whole.away_fraction == pytest.approx(0.5)


def test_a_share_of_a_pause_is_of_each_window(tmp_path: Path):
    replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    answer = json.loads((tmp_path / "witness.ndjson").read_text().splitlines()[-1])
    of_each = [0] * len(answer["windows"])
    for key in ("target_ran_ns", "unclaimed_ns"):
        assert getattr(witness_result(answer), key) == ()
        assert getattr(witness_result({**answer, key: None}), key) is None
        assert getattr(witness_result({**answer, key: of_each}), key) == tuple(of_each)
        for wrong in (of_each[1:], [-1, *of_each[1:]], [True, *of_each[1:]]):
            with pytest.raises(RecordError, match=f"{key}: expected a whole number, 0 or more, of each"):
                witness_result({**answer, key: wrong})


def test_one_miss_that_nothing_explains_still_fails_the_stream(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    assert replay.witness is not None
    witness: WitnessResult = dataclasses.replace(replay.witness, windows=replay.witness.windows[1:])
    found = judged(dataclasses.replace(replay, witness=witness), 33)
    assert found.verdict.outcome == "fail"
    assert found.misses_explained == replay.recv.stream(33).misses - 1


def test_a_loss_is_not_excused_by_a_bench_that_was_not_quiet(tmp_path: Path):
    """1.01 % of stall, and 590 of 600 messages of a stream lost."""
    replay = replay_of(tmp_path, Disturbance(lost={33: 590}, stalled_fraction=0.0101))
    assert outcomes(replay) == {33: "fail"}


def test_a_target_that_spins_behind_a_short_stall_fails(tmp_path: Path):
    """Every message 900 ms late, behind one stall of a millisecond."""
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 900 * MS}, stalled=True, stall_ns=MS))
    assert replay.witness is not None
    witness = dataclasses.replace(replay.witness, windows=replay.witness.windows[:1])
    found = judged(dataclasses.replace(replay, witness=witness), 33)
    assert (found.verdict.outcome, found.misses_explained) == ("fail", 0)


def test_a_maximum_that_the_log_of_misses_lacks_is_not_excused(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    worst = max(replay.misses, key=lambda miss: miss.received_minus_scheduled_ns)
    kept = [miss for miss in replay.misses if miss is not worst]
    assert judged(dataclasses.replace(replay, misses=kept), 33).verdict.outcome == "fail"


STRICT = StreamRequirement("R", Limit(10 * MS, None, "stricter than the pattern"), 3)


def with_latencies(replay: ReplayResults, ways: list[tuple[int, int]]) -> ReplayResults:
    """Give stream 12, whose budget is 50 ms, messages of (sent - scheduled, received - sent) in ns.

    The log has what is over three quarters of the budget.
    """
    whole = [late_ns + way_ns for late_ns, way_ns in ways]
    fields = {
        "received_minus_scheduled": Summary.from_json(summary(whole)),
        "received_minus_sent": Summary.from_json(summary([way_ns for _, way_ns in ways])),
        "sent_minus_scheduled": Summary.from_json(summary([late_ns for late_ns, _ in ways])),
    }
    n = len(ways)
    sends = [
        dataclasses.replace(
            send,
            streams=tuple(
                dataclasses.replace(each, scheduled=n) if each.id == 12 else each for each in send.streams
            ),
        )
        for send in replay.sends
    ]
    logged = [
        Miss(12, number, late_ns + way_ns, way_ns, 0)
        for number, (late_ns, way_ns) in enumerate(ways)
        if late_ns + way_ns > 37_500_000
    ]
    changed = with_stream(replay, 12, expected=n, received=n, misses=0, **fields)
    return dataclasses.replace(changed, sends=sends, misses=logged)


def test_a_miss_that_a_stricter_requirement_makes_is_not_hidden_by_a_worse_one(quiet: ReplayResults):
    """A: 15 ms under way, not in the log. B: sent 40 ms late, in the log. Alone A fails, and so with B."""
    usual, a, b = (0, 1 * MS), (0, 15 * MS), (40 * MS, 1 * MS)
    for ways, outcome in (
        ([usual, usual, usual], "pass"),
        ([usual, usual, a], "fail"),
        ([usual, usual, b], "inconclusive"),
        ([usual, a, b], "fail"),
    ):
        assert judge_latency(12, STRICT, with_latencies(quiet, ways)).verdict.outcome == outcome, ways


def test_a_message_in_the_bucket_of_the_limit_does_not_pass(quiet: ReplayResults):
    """docs/latency.md: beside a worse one it is not told from one at the limit; alone the maximum tells."""
    above_ns = 10 * MS + int(stream_uncertainty(quiet.recv.stream(12), quiet)[0].expanded)
    [[low_ns, width_ns, _]] = summary([above_ns])["buckets"]
    assert width_ns <= above_ns / 1000
    usual, worse = (0, 1 * MS), (40 * MS, 1 * MS)
    for over_ns, beside in ((low_ns + width_ns - 1, "inconclusive"), (low_ns + width_ns, "fail")):
        assert over_ns > above_ns
        for ways, outcome in (([usual, usual, (0, over_ns)], "fail"), ([usual, (0, over_ns), worse], beside)):
            assert judge_latency(12, STRICT, with_latencies(quiet, ways)).verdict.outcome == outcome, ways


def test_what_was_sent_early_fails_by_both_latencies_alone(quiet: ReplayResults):
    """Over limit + U by its way, not by its schedule; U from the clocks."""
    u_ns = int(stream_uncertainty(quiet.recv.stream(12), quiet)[0].expanded)
    usual, limit_ns = (0, MS), 10 * MS
    early_ns, way_ns = -3 * u_ns // 2, limit_ns + 6 * u_ns // 5
    found = judge_latency(12, STRICT, with_latencies(quiet, [usual, usual, (early_ns, way_ns)]))
    assert found.verdict.outcome == "inconclusive"
    assert "lies within U" in found.verdict.reason
    later = with_latencies(quiet, [usual, usual, (early_ns, way_ns + 2 * u_ns)])
    assert judge_latency(12, STRICT, later).verdict.outcome == "fail"


def test_stalls_in_another_clock_are_found_by_its_offset(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled=True))
    assert judged(dataclasses.replace(replay, witness_clock="guest"), 33).verdict.outcome == "fail"
    unknown = dataclasses.replace(replay, witness_clock="nobody's")
    assert judged(unknown, 33).misses_explained == 0


def test_a_bench_that_was_not_quiet_is_judged_message_by_message(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS}, stalled_fraction=0.5))
    assert outcomes(replay) == {33: "fail"}


@pytest.mark.parametrize("delay_ns", [0, 15 * MS])
def test_a_stepped_clock_decides_nothing(tmp_path: Path, delay_ns: int):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: delay_ns}, clock_step_ns=3 * MS))
    assert len(outcomes(replay)) == 48
    assert judged(replay, 33).verdict.reason == "clock local stepped by 3 ms"


def test_a_stepped_clock_of_a_producer_decides_nothing(quiet: ReplayResults):
    step = ClockStep("guest", 0, -5 * MS)
    sends = [dataclasses.replace(quiet.sends[0], clock_steps=(step,)), *quiet.sends[1:]]
    assert len(outcomes(dataclasses.replace(quiet, sends=sends))) == 48


def test_an_invalid_or_incomplete_result_decides_nothing(quiet: ReplayResults, tmp_path: Path):
    for fields in ({"valid": False}, {"complete": False}, {"invalid_reasons": ("no clock",)}):
        assert set(outcomes(changed_recv(quiet, **fields)).values()) == {"inconclusive"}
    assert len(outcomes(replay_of(tmp_path, Disturbance(complete=False)))) == 48


def ended(replay: ReplayResults, number: int, received: float) -> ReplayResults:
    """End a producer when it had sent that share of its messages; the rest counts as lost."""
    streams = [
        dataclasses.replace(
            each,
            received=round(each.expected * received),
            lost=each.expected - round(each.expected * received),
        )
        if each.producer == number
        else each
        for each in replay.recv.streams
    ]
    own, other = (
        tuple(each for send in replay.sends for each in send.streams if (each.producer == number) == is_own)
        for is_own in (True, False)
    )
    sends = [SendResult(False, own, (), {}), SendResult(True, other, (), {})]
    return dataclasses.replace(changed_recv(replay, streams=tuple(streams)), sends=sends)


def test_a_producer_that_ended_early_takes_its_own_streams(quiet: ReplayResults):
    share = {each.producer: 0 for each in quiet.recv.streams}
    for each in quiet.recv.streams:
        share[each.producer] += each.expected * each.size_bytes
    light, heavy = min(share, key=lambda number: share[number]), max(share, key=lambda number: share[number])
    assert share[light] < 0.1 * sum(share.values()) < 0.25 * sum(share.values()) < share[heavy]
    found = ended(quiet, light, 0.5)
    assert outcomes(found) == {10 * light + kind: "inconclusive" for kind in range(4)}
    assert "its producer ended early" in judged(found, 10 * light).verdict.reason
    whole = ended(quiet, heavy, 0.1)
    assert set(outcomes(whole).values()) == {"inconclusive"}
    assert len(outcomes(whole)) == 48
    assert "of the load came, 90% are needed" in judged(whole, 10 * light).verdict.reason
    few = {number for number in share if share[number] > 0.15 * sum(share.values()) and number != heavy}
    assert few, "a producer of few messages, and of many bytes"
    assert len(outcomes(ended(quiet, min(few), 0.1))) == 48


def test_what_is_over_beside_a_producer_that_ended_early_fails(tmp_path: Path):
    replay = ended(replay_of(tmp_path, Disturbance(path_delay_ns={33: 15 * MS})), 12, 0.9)
    assert outcomes(replay) == {33: "fail", **{120 + kind: "inconclusive" for kind in range(4)}}


def test_a_fault_that_the_caller_found_decides_nothing(quiet: ReplayResults):
    replay = dataclasses.replace(quiet, faults=["the known delay was not found"])
    assert judged(replay, 10).verdict.message == "INCONCLUSIVE: the known delay was not found"


def test_u_is_made_from_the_bounds_of_the_producers_clock(quiet: ReplayResults):
    band, unknown = stream_uncertainty(quiet.recv.stream(120), quiet)
    assert unknown == ""
    assert [(part.name, part.kind) for part in band.parts] == [
        ("clock_offset", "bound"),
        ("clock_residual", "bound"),
    ]
    clock = quiet.recv.clock("guest")
    assert clock is not None
    assert clock.bound_ns is not None
    assert clock.residual_ns is not None
    assert band.expanded == clock.bound_ns + clock.residual_ns


@pytest.mark.parametrize(
    "broken", [{"kept": 0}, {"bound_ns": None}, {"residual_ns": None}, {"name": "other"}]
)
def test_without_a_clock_line_only_its_producers_are_undecided(
    quiet: ReplayResults, broken: dict[str, object]
):
    clocks = [dataclasses.replace(c, **broken) if c.name == "guest" else c for c in quiet.recv.clocks]  # type: ignore[arg-type]
    found = outcomes(changed_recv(quiet, clocks=tuple(clocks)))
    assert found == dict.fromkeys((120, 121, 122, 123), "inconclusive")


def test_uncorrected_clocks_need_a_stated_bound(quiet: ReplayResults):
    replay = changed_recv(quiet, correction="none")
    assert len(outcomes(replay)) == 48
    stated = dataclasses.replace(replay, extra_parts=[UncertaintyPart("shared_clock", "bound", 0)])
    assert outcomes(stated) == {}


def with_stream(replay: ReplayResults, stream_id: int, **fields: object) -> ReplayResults:
    streams = [dataclasses.replace(s, **fields) if s.id == stream_id else s for s in replay.recv.streams]  # type: ignore[arg-type]
    return changed_recv(replay, streams=tuple(streams))


def test_saturated_samples_decide_nothing_for_their_stream(quiet: ReplayResults):
    assert outcomes(with_stream(quiet, 31, invalid_samples=1, received=599)) == {31: "inconclusive"}


def test_messages_that_nobody_accounts_for_decide_nothing(quiet: ReplayResults):
    assert outcomes(with_stream(quiet, 31, expected=601)) == {31: "inconclusive"}


def test_a_message_received_before_it_was_sent_contradicts_u(quiet: ReplayResults):
    early = Summary.from_json(summary([-200_000] + [300_000] * 599))
    found = with_stream(quiet, 31, received_minus_sent=early)
    assert outcomes(found) == {31: "inconclusive"}
    assert "clocks contradict" in judged(found, 31).verdict.reason


@pytest.mark.parametrize(
    ("name", "words"),
    [("received_minus_scheduled", "sent too early"), ("received_minus_sent", "clocks contradict U")],
)
def test_what_is_too_early_is_so_from_u_on(quiet: ReplayResults, name: str, words: str):
    u_ns = int(stream_uncertainty(quiet.recv.stream(31), quiet)[0].expanded)
    for first_ns, said in ((-u_ns, {}), (-u_ns - 1, {31: "inconclusive"})):
        found = with_stream(quiet, 31, **{name: Summary.from_json(summary([first_ns] + [300_000] * 599))})
        assert outcomes(found) == said
    assert words in judged(found, 31).verdict.reason


def test_a_message_received_before_its_slot_decides_nothing(quiet: ReplayResults):
    """The generator did not keep the schedule: what it sent is not the pattern."""
    early = Summary.from_json(summary([-300 * MS] + [300_000] * 599))
    found = with_stream(quiet, 31, received_minus_scheduled=early)
    assert outcomes(found) == {31: "inconclusive"}
    assert (
        "sent too early: a message arrived 300 ms before it was scheduled" in judged(found, 31).verdict.reason
    )


def test_messages_that_no_producer_scheduled_decide_nothing(quiet: ReplayResults):
    def without(send: SendResult) -> SendResult:
        return dataclasses.replace(send, streams=tuple(s for s in send.streams if s.id != 31))

    def fewer(send: SendResult) -> SendResult:
        return dataclasses.replace(
            send,
            streams=tuple(dataclasses.replace(s, scheduled=590) if s.id == 31 else s for s in send.streams),
        )

    for change, words in ((without, "no producer says"), (fewer, "the producer scheduled 590 messages, 600")):
        found = dataclasses.replace(quiet, sends=[change(send) for send in quiet.sends])
        assert outcomes(found) == {31: "inconclusive"}
        assert words in judged(found, 31).verdict.reason


def test_a_sender_that_stood_still_for_seconds_loses_no_verdict(tmp_path: Path):
    """Of a message that was sent 18 minutes late it is not known when; all others keep their verdict."""
    replay = replay_of(tmp_path, Disturbance(generator_delay_ns={33: 15 * MS}))
    text = (tmp_path / "misses.ndjson").read_text().splitlines()
    first = json.loads(text[0]) | {"lateness_ns": None, "received_minus_sent_ns": None}
    misses = read_misses([json.dumps(first), *text[1:]])
    assert misses[0].received_minus_sent_ns is None
    assert outcomes(dataclasses.replace(replay, misses=misses)) == {33: "inconclusive"}


def test_a_violation_that_is_proven_fails_on_a_bench_that_is_not_capable(tmp_path: Path):
    replay = replay_of(tmp_path, Disturbance(path_delay_ns={33: 50 * MS}))
    part = UncertaintyPart("more", "bound", 20 * MS)
    found = judged(dataclasses.replace(replay, extra_parts=[part]), 33)
    assert (found.standing, found.verdict.outcome) == ("over", "fail")
    part = UncertaintyPart("more", "bound", 50 * MS)
    found = judged(dataclasses.replace(replay, extra_parts=[part]), 33)
    assert (found.standing, found.verdict.outcome) == ("undecided", "inconclusive")


def test_a_stream_without_samples_is_unset(quiet: ReplayResults):
    nothing = Summary.from_json(summary([]))
    found = with_stream(
        quiet, 31, received_minus_scheduled=nothing, received_minus_sent=nothing, expected=0, received=0
    )
    assert outcomes(found) == {31: "unset"}


def test_too_few_samples_are_inconclusive(quiet: ReplayResults):
    short = Summary.from_json(summary([MS] * 98))
    found = with_stream(quiet, 31, received_minus_scheduled=short, expected=98, received=98)
    assert outcomes(found) == {31: "inconclusive"}


def test_a_stream_that_was_not_reported_is_an_error(quiet: ReplayResults):
    with pytest.raises(RecordError, match="stream 999"):
        judge_latency(999, requirement_of(10), quiet)
