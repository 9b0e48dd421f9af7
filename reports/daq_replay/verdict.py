# SPDX-License-Identifier: Apache-2.0
"""The verdict on the one-way latency of a stream, from the consumer's answer.

A stream passes on received - scheduled, so that a generator that is late hides nothing. It fails only when
received - sent of such a message, the part that is the target's and the network's, is over limit + U too.
Between the two it is inconclusive: `generator late`. Causes on the bench's side (a stepped clock, an invalid
result) make it inconclusive, never a pass.

What the bench's machine took from a late message is an amount of time (reports/tools/taken_time.py). It is
taken off: what is then still over limit + U is the target's. Where much else ran on that machine, half of a
message's time is taken off, too (reports/daq_replay/machine_use.py).

Where the target under test is the one that sends, its lateness is its own: it fails on received - scheduled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reports.daq_replay.clock_breaks import clock_causes
from reports.daq_replay.ended_producers import ended_streams, load_cause
from reports.daq_replay.machine_use import KnownUse
from reports.daq_replay.replay_clock import ReplayClock, ServerLine
from reports.record.context import Context, Sample, build_record
from reports.record.histogram import Summary
from reports.record.measurement import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record.verdict import Verdict, capable, judge
from reports.tools.answers import ClockResult, Miss, RecvResult, SendResult, StreamResult, WitnessResult
from reports.tools.taken_time import TakenTime
from reports.units import format_value

Standing = Literal["clean", "short", "explained", "marginal", "over", "undecided"]
"""What a replay says of a stream: `clean` it passes; `short` it would, with the samples required; `explained`
it would, had the machine not taken the time that it is known to have taken; `over` a miss, or a loss, that
nothing explains; `marginal` none of these, the value alone leaves it open; `undecided` the replay or the
stream cannot be judged at all."""


STEPPED = re.compile(r"(the local clock|clock \S+) was stepped|the lines to all clocks broke")
"""Reasons of `bw-traffic recv` that its `clock_steps` tell, too."""


@dataclass(frozen=True, slots=True)
class StreamRequirement:
    """What is asked of a stream: an upper limit in ns, samples, and messages that may be lost.

    Attributes:
        of_sender: Whether the target under test sends the stream; else it receives it.
    """

    id: str
    limit: Limit
    n_required: int
    allowed_lost: int = 0
    of_sender: bool = False


@dataclass(frozen=True, slots=True)
class ReplayResults:
    """Everything that one replay left behind and that its verdicts rest on.

    Attributes:
        recv: The consumer's result.
        clock_of_producer: Name of the clock that each producer stamps with, by producer number.
        sends: The producers' results.
        witness: What the stall witness saw; None where the bench has none.
        witness_clock: Name of the clock that the witness stamps with; `local` is the consumer's own.
        misses: The consumer's list of misses.
        faults: Further causes, found by the caller, for which nothing of this replay may pass.
        extra_parts: Parts of U that the caller knows of, for every stream, in ns.
        clock: The target's clock, where its stamps are taken as they are; None: they are corrected.
        emulator_pauses: (start, end) of times in which the emulator did not run the target though it had to,
            by the witness's clock, ns (reports/daq_replay/emulation.py).
        machine_use: What else ran on the bench's machine; None: nobody knows.
    """

    recv: RecvResult
    clock_of_producer: Mapping[int, str]
    sends: Sequence[SendResult] = ()
    witness: WitnessResult | None = None
    witness_clock: str = "host"
    misses: Sequence[Miss] = ()
    faults: Sequence[str] = ()
    extra_parts: Sequence[UncertaintyPart] = ()
    clock: ReplayClock | None = None
    emulator_pauses: Sequence[tuple[int, int]] = ()
    machine_use: KnownUse | None = None

    def causes(self, producer: int | None = None) -> list[str]:
        """Return why no stream of this replay may pass, the worst cause first; empty: none.

        Args:
            producer: Its number: with the causes for which its streams alone may not; None: without.
        """
        of_clocks = self._clock_causes(producer)
        # What the tool says of lines that broke is said here with whose clock it was.
        reasons = [why for why in self.recv.invalid_reasons if not (of_clocks and STEPPED.fullmatch(why))]
        causes = [f"invalid result: {reason}" for reason in reasons]
        if not self.recv.valid and not causes and not of_clocks:
            causes.append("invalid result")
        if not self.recv.complete:
            causes.append("incomplete: the consumer ended early")
        if load := load_cause(self.recv, ended_streams(self.recv, self.sends)):
            causes.append(load)
        return [*causes, *of_clocks, *self.faults]

    def clock_broke(self, producer: int) -> bool:
        """Say whether a clock that stamps the messages of a producer broke its line."""
        return bool(self._clock_causes(producer))

    def _clock_causes(self, producer: int | None) -> list[str]:
        clocks = clock_causes(self.recv, self.sends, self.clock_of_producer, self.witness_clock)
        own = self.clock_of_producer.get(producer, "") if producer is not None else ""
        return [*clocks.of_all, *clocks.of_clock.get(own, ())]


@dataclass(frozen=True, slots=True)
class StreamVerdict:
    """The verdict of one replay on a stream, its uncertainty, and how many late messages are explained."""

    verdict: Verdict
    uncertainty: Uncertainty
    standing: Standing
    misses_explained: int = 0


def stream_uncertainty(stream: StreamResult, replay: ReplayResults) -> tuple[Uncertainty, str]:
    """Return U of a stream's latency in ns, and why it is not known ('' where it is).

    The offset of the producer's clock enters with half the round trip of the exchanges that carry its
    line; what the line used differs from the fit over the whole run enters as `clock_residual`. Where stamps
    are taken as they are, the measured error of the target's clock enters beside them.
    """
    parts = list(replay.extra_parts)
    if replay.clock is not None:
        own, unknown = replay.clock.parts(replay.clock_of_producer.get(stream.producer))
        if replay.recv.own_line_ns is not None:
            own.append(UncertaintyPart("own_clock_line", "bound", replay.recv.own_line_ns))
        return Uncertainty.from_parts([*parts, *own]), unknown
    if replay.recv.correction == "none":
        missing = "" if parts else "clock error unknown: no correction and no stated bound"
        return Uncertainty.from_parts(parts), missing
    name = replay.clock_of_producer.get(stream.producer)
    clock = replay.recv.clock(name) if name is not None else None
    if clock is None or not clock.kept or clock.bound_ns is None or clock.residual_ns is None:
        known = f"clock {name}" if name else f"the clock of producer {stream.producer}"
        return Uncertainty.from_parts(parts), f"clock error unknown: no line for {known}"
    parts.append(UncertaintyPart("clock_offset", "bound", clock.bound_ns))
    parts.append(UncertaintyPart("clock_residual", "bound", clock.residual_ns))
    return Uncertainty.from_parts(parts), ""


def judge_latency(stream_id: int, requirement: StreamRequirement, replay: ReplayResults) -> StreamVerdict:
    """Judge the largest latency of one stream in one replay; see the module for the rule.

    Raises:
        RecordError: The consumer did not report the stream.
    """
    stream = replay.recv.stream(stream_id)
    uncertainty, unknown = stream_uncertainty(stream, replay)
    causes = [*replay.causes(stream.producer), *_stream_causes(stream, replay, uncertainty, unknown)]
    judged = _judge_maximum(stream, requirement, uncertainty, stream.received_minus_scheduled.max_ns)
    if causes:
        outcome = "unset" if stream.received_minus_scheduled.n == 0 else "inconclusive"
        return StreamVerdict(Verdict(outcome, judged.margin, "; ".join(causes)), uncertainty, "undecided")
    if judged.outcome == "pass":
        return StreamVerdict(judged, uncertainty, "clean")
    if stream.lost > requirement.allowed_lost:
        return StreamVerdict(judged, uncertainty, "over")
    has_room = judged.outcome == "fail" or capable(requirement.limit, uncertainty)
    if judged.outcome == "unset" or not has_room:
        return StreamVerdict(judged, uncertainty, "undecided")
    if judged.margin is not None and judged.margin >= 0:
        return StreamVerdict(judged, uncertainty, "short")
    return _attribute(stream, requirement, replay, uncertainty, judged)


def _judge_maximum(
    stream: StreamResult, requirement: StreamRequirement, uncertainty: Uncertainty, maximum_ns: int | None
) -> Verdict:
    return judge(
        maximum_ns,
        requirement.limit,
        uncertainty,
        n=stream.received_minus_scheduled.n,
        n_required=requirement.n_required,
        lost=stream.lost,
        allowed_lost=requirement.allowed_lost,
        unit="ns",
    )


def _stream_causes(
    stream: StreamResult, replay: ReplayResults, uncertainty: Uncertainty, unknown: str
) -> list[str]:
    """Return why this stream alone may not pass."""
    causes = [unknown] if unknown else []
    sent = [each for send in replay.sends for each in send.streams if each.id == stream.id]
    if stream.id in ended_streams(replay.recv, replay.sends):
        ended = "incomplete: its producer ended early"
        causes.append(ended if sent else "no producer says that it sent this stream")
    causes += [
        f"the producer scheduled {each.scheduled} messages, {stream.expected} are expected"
        for each in sent
        if each.scheduled != stream.expected
    ]
    if stream.invalid_samples:
        causes.append(f"{stream.invalid_samples} invalid samples: the producer's lateness was saturated")
    missing = stream.received_minus_scheduled.n + stream.lost + stream.invalid_samples
    if missing < stream.expected:
        causes.append(f"{stream.expected - missing} of {stream.expected} messages are not accounted for")
    earliest = stream.received_minus_sent.min_ns
    if not unknown and earliest is not None and earliest < -uncertainty.expanded:
        shown = format_value(earliest, "ns")
        u = format_value(uncertainty.expanded, "ns")
        causes.append(f"clocks contradict U = {u}: a message arrived {shown} after it was sent")
    first = stream.received_minus_scheduled.min_ns
    if not unknown and first is not None and first < -uncertainty.expanded:
        shown = format_value(-first, "ns")
        causes.append(f"sent too early: a message arrived {shown} before it was scheduled")
    return causes


def _attribute(
    stream: StreamResult,
    requirement: StreamRequirement,
    replay: ReplayResults,
    uncertainty: Uncertainty,
    judged: Verdict,
) -> StreamVerdict:
    """Judge a maximum that does not pass: message by message, without what the machine took from each."""
    band_ns = int(uncertainty.expanded)
    upper_ns = int(requirement.limit.upper or 0)
    taken, known = _taken_from(replay, band_ns), _taken_from(replay, band_ns, known=True)
    late = [
        miss
        for miss in replay.misses
        if miss.stream == stream.id and miss.received_minus_scheduled_ns > upper_ns - band_ns
    ]
    rests_ns: list[int] = []
    slowed_ns: list[int] = []
    explained: list[int] = []
    unclaimed = 0
    for miss in late:
        whole_ns = miss.received_minus_scheduled_ns
        own_ns = whole_ns if requirement.of_sender else miss.received_minus_sent_ns
        if own_ns is not None:
            own_ns = min(own_ns, whole_ns)  # what was sent early is late by its schedule alone
            rests_ns.append(own_ns - taken(miss, own_ns))
            slowed_ns.append(rests_ns[-1] - own_ns // 2)
        took_ns = known(miss, whole_ns)
        if took_ns and whole_ns - took_ns <= upper_ns - band_ns:
            explained.append(took_ns)
        elif whole_ns - taken(miss, whole_ns) <= upper_ns - band_ns:
            unclaimed += 1
    own = stream.received_minus_scheduled if requirement.of_sender else stream.received_minus_sent
    if _has_unlogged(stream, own, late, upper_ns + band_ns):
        rests_ns.append(min(own.max_ns or 0, stream.received_minus_scheduled.max_ns or 0))
        slowed_ns.append(rests_ns[-1])
    worst_ns = max(rests_ns, default=0)
    if worst_ns > upper_ns + band_ns:
        cause = _cause(stream, requirement, worst_ns, own.max_ns)
        use = replay.machine_use
        if use is not None and use.disturbs and max(slowed_ns) <= upper_ns + band_ns:
            reason = f"{judged.reason} ({cause}); {use.words}"
            verdict = Verdict("inconclusive", judged.margin, reason)
            return StreamVerdict(verdict, uncertainty, "marginal", len(explained))
        verdict = Verdict("fail", judged.margin, f"{judged.reason} ({cause})")
        return StreamVerdict(verdict, uncertainty, "over", len(explained))
    unlogged = stream.received_minus_scheduled.count_above(upper_ns - band_ns) - len(late)
    if explained and len(explained) == len(late) and unlogged <= 0:
        took = format_value(max(explained), "ns")
        reason = f"{judged.reason}; the machine took up to {took} from each of {len(late)} late messages"
        verdict = Verdict("inconclusive", judged.margin, reason)
        return StreamVerdict(verdict, uncertainty, "explained", len(explained))
    reason = judged.reason
    if judged.outcome == "fail":
        sent = format_value(stream.received_minus_sent.max_ns, "ns")
        late_ns = format_value(stream.sent_minus_scheduled.max_ns, "ns")
        reason = f"generator late: sent up to {late_ns} late, then {sent} under way"
        if (stream.received_minus_sent.max_ns or 0) > upper_ns + band_ns:
            count = len(late) + max(0, unlogged)
            reason = f"{judged.reason}; the machine explains {len(explained)} of {count} late messages"
    if unclaimed:
        reason += f"; time that nobody claims may explain {unclaimed} (interrupts: the target's, too)"
    verdict = Verdict("inconclusive", judged.margin, reason)
    return StreamVerdict(verdict, uncertainty, "marginal", len(explained))


def _has_unlogged(stream: StreamResult, own: Summary, late: Sequence[Miss], above_ns: int) -> bool:
    """Tell whether there may be a message over limit + U, by both latencies, that the log of misses lacks.

    Nothing explains it. The log has what comes near the pattern's budget; a requirement may be stricter.

    Args:
        stream: As the consumer counted it.
        own: Distribution of what is the target's.
        late: Its messages in the log.
        above_ns: Limit + U.
    """
    logged_ns = [miss.received_minus_scheduled_ns for miss in late]
    if own is stream.received_minus_scheduled:
        return _lacks(logged_ns, own, above_ns)
    own_logged_ns = [miss.received_minus_sent_ns or 0 for miss in late]
    return _lacks(logged_ns, stream.received_minus_scheduled, above_ns) and _lacks(
        own_logged_ns, own, above_ns
    )


def _lacks(logged_ns: Sequence[int], whole: Summary, above_ns: int) -> bool:
    """Tell whether a distribution has more values above a time than a log."""
    count = sum(value_ns > above_ns for value_ns in logged_ns)
    return whole.count_above(above_ns) > count or (whole.max_ns or 0) > max([above_ns, *logged_ns])


def _cause(stream: StreamResult, requirement: StreamRequirement, worst_ns: int, own_ns: int | None) -> str:
    """Return whose a miss is that nothing explains, in words."""
    if requirement.of_sender:
        late = format_value(stream.sent_minus_scheduled.max_ns, "ns")
        sent = format_value(stream.received_minus_sent.max_ns, "ns")
        return f"sent up to {late} late, then up to {sent} under way"
    without = "" if worst_ns == own_ns else ", without what the machine took"
    return f"received - sent{without}: {format_value(worst_ns, 'ns')}"


def _taken_from(replay: ReplayResults, slack_ns: int, *, known: bool = False) -> Callable[[Miss, int], int]:
    """Return what tells the most that the machine took from a message during its last so many ns.

    The message's way is widened by U of the stream at both ends, because the two clocks are known no better.

    Args:
        replay: As it is judged.
        slack_ns: U of the stream.
        known: Only what is known to have been the machine's; else also what may have been.
    """
    by_witness = witness_time(replay)
    if replay.witness is None or by_witness is None:
        return lambda _miss, _length_ns: 0
    machine = TakenTime.of(replay.witness, replay.emulator_pauses, known=known)

    def most_ns(miss: Miss, length_ns: int) -> int:
        received_ns = by_witness(miss.received_local_tai_ns)
        if received_ns is None:
            return 0
        return machine.most_ns(received_ns - length_ns - slack_ns, received_ns + slack_ns)

    return most_ns


def witness_time(replay: ReplayResults) -> Callable[[int], int | None] | None:
    """Return what turns TAI of the consumer's clock into that of the witness's, ns; None: it is not known."""
    clock: ClockResult | ServerLine | None = replay.recv.clock(replay.witness_clock)
    if replay.clock is not None:
        clock = replay.clock.line(replay.witness_clock)
    elif clock is None and (replay.recv.correction == "none" or replay.witness_clock == "local"):
        return lambda local_tai_ns: local_tai_ns
    if clock is None:
        return None
    known = clock

    def by_witness(local_tai_ns: int) -> int | None:
        offset_ns = known.offset_at(local_tai_ns)
        return None if offset_ns is None else local_tai_ns + offset_ns

    return by_witness


def latency_measurement(
    stream_id: int,
    requirement: StreamRequirement,
    replay: ReplayResults,
    judged: StreamVerdict,
    context: Context,
) -> Measurement:
    """Return the record of a stream that was judged: the maximum of received - scheduled, in ns."""
    stream = replay.recv.stream(stream_id)
    latency = stream.received_minus_scheduled
    sample = Sample(
        quantity="one_way_latency",
        statistic="max",
        value=latency.max_ns,
        n=latency.n,
        n_required=requirement.n_required,
        lost=stream.lost,
        allowed_lost=requirement.allowed_lost,
    )
    return build_record(
        requirement.id, sample, requirement.limit, judged.uncertainty, judged.verdict, context
    )
