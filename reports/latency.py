# SPDX-License-Identifier: Apache-2.0
"""The verdict on the one-way latency of a stream, from the consumer's answer.

A stream passes on received - scheduled, so that a generator that is late hides nothing. It fails only when
received - sent, the part that is the target's and the network's, is over limit + U. Between the two it is
inconclusive: `generator late`. Causes on the bench's side (a stepped clock, an invalid result, a bench that
stood still) make it inconclusive, never a pass.

Where the target under test is the one that sends, its lateness is its own: it fails on received - scheduled.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reports.answers import ClockResult, Miss, RecvResult, SendResult, StreamResult, WitnessResult
from reports.record import Limit, Measurement, Uncertainty, UncertaintyPart
from reports.record_context import Context, Sample, build_record
from reports.replay_clock import ReplayClock, ServerLine
from reports.units import format_value
from reports.verdict import Verdict, judge

MAX_STALLED_FRACTION = 0.01
"""Share of stalled time above which the bench is not quiet."""


def producer_of(stream: int) -> int:
    """Return the producer that sends a stream: an id is its number, then a digit for the message type."""
    return stream // 10


@dataclass(frozen=True, slots=True)
class Requirement:
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
class Replay:
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

    def causes(self) -> list[str]:
        """Return why no stream of this replay may pass, the gravest cause first; empty: none."""
        causes = [f"invalid result: {reason}" for reason in self.recv.invalid_reasons]
        if not self.recv.valid and not causes:
            causes.append("invalid result")
        if not self.recv.complete:
            causes.append("incomplete: the consumer ended early")
        if any(not send.complete for send in self.sends):
            causes.append("incomplete: a producer ended early")
        steps = [*self.recv.clock_steps, *(step for send in self.sends for step in send.clock_steps)]
        causes += [f"clock {s.clock} stepped by {format_value(s.step_ns, 'ns')}" for s in steps]
        causes += self.faults
        return [*causes, *self.not_quiet()]

    def not_quiet(self) -> list[str]:
        """Return the cause that the bench stood still for too long in all; empty: it did not."""
        if self.witness is None or self.witness.stalled_fraction <= MAX_STALLED_FRACTION:
            return []
        share = 100 * self.witness.stalled_fraction
        return [f"bench not quiet: it stood still for {share:.2g} % of the time, 1 % is allowed"]


@dataclass(frozen=True, slots=True)
class StreamVerdict:
    """The verdict on a stream, its uncertainty, and the misses that the bench itself may have caused.

    Attributes:
        disturbed: There is no verdict for no other reason than that the bench stood still.
    """

    verdict: Verdict
    uncertainty: Uncertainty
    misses_in_stall: int
    disturbed: bool = False


def stream_uncertainty(stream: StreamResult, replay: Replay) -> tuple[Uncertainty, str]:
    """Return U of a stream's latency in ns, and why it is not known ('' where it is).

    The offset of the producer's clock enters with half the round trip of the exchanges that carry its
    line; what the line used differs from the fit over the whole run enters as `clock_residual`. Where stamps
    are taken as they are, the measured error of the target's clock enters beside them.
    """
    parts = list(replay.extra_parts)
    if replay.clock is not None:
        own, unknown = replay.clock.parts(replay.clock_of_producer.get(stream.producer))
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


def judge_latency(stream_id: int, requirement: Requirement, replay: Replay) -> StreamVerdict:
    """Judge the largest latency of one stream; see the module for the rule.

    Raises:
        RecordError: The consumer did not report the stream.
    """
    stream = replay.recv.stream(stream_id)
    uncertainty, unknown = stream_uncertainty(stream, replay)
    excused = misses_in_stall(stream, requirement, replay, uncertainty)
    causes = [*replay.causes(), *_stream_causes(stream, uncertainty, unknown)]
    judged = _judge_maximum(stream, requirement, uncertainty, stream.received_minus_scheduled.max_ns)
    if causes:
        outcome = "unset" if stream.received_minus_scheduled.n == 0 else "inconclusive"
        verdict = Verdict(outcome, judged.margin, "; ".join(causes))
        disturbed = outcome == "inconclusive" and causes == replay.not_quiet()
        return StreamVerdict(verdict, uncertainty, len(excused), disturbed)
    all_excused = bool(excused) and len(excused) >= stream.misses and stream.lost <= requirement.allowed_lost
    if judged.outcome != "fail" or stream.lost > requirement.allowed_lost:
        if excused and judged.outcome == "inconclusive":
            judged = Verdict(
                "inconclusive", judged.margin, f"{judged.reason}; {_stall_reason(stream, excused)}"
            )
        disturbed = all_excused and judged.outcome == "inconclusive"
        return StreamVerdict(judged, uncertainty, len(excused), disturbed)
    verdict = _attribute(stream, requirement, replay, uncertainty, excused, judged)
    disturbed = all_excused and verdict.outcome == "inconclusive"
    return StreamVerdict(verdict, uncertainty, len(excused), disturbed)


def _judge_maximum(
    stream: StreamResult, requirement: Requirement, uncertainty: Uncertainty, maximum_ns: int | None
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


def _stream_causes(stream: StreamResult, uncertainty: Uncertainty, unknown: str) -> list[str]:
    """Return why this stream alone may not pass."""
    causes = [unknown] if unknown else []
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
    return causes


def _attribute(
    stream: StreamResult,
    requirement: Requirement,
    replay: Replay,
    uncertainty: Uncertainty,
    excused: Sequence[Miss],
    judged: Verdict,
) -> Verdict:
    """Decide whether a maximum over limit + U is the target's: fail; or the bench's: inconclusive."""
    own = [m for m in replay.misses if m.stream == stream.id]
    left = [m for m in own if m not in set(excused)]
    whole = requirement.of_sender
    found_ns = [m.received_minus_scheduled_ns if whole else m.received_minus_sent_ns for m in left]
    logged_ns = max((m.received_minus_scheduled_ns for m in own), default=None)
    if logged_ns is None or (stream.received_minus_scheduled.max_ns or 0) > logged_ns or not excused:
        latency = stream.received_minus_scheduled if whole else stream.received_minus_sent
        found_ns.append(latency.max_ns or 0)
    worst_ns = max(found_ns, default=None)
    late = format_value(stream.sent_minus_scheduled.max_ns, "ns")
    sent = format_value(stream.received_minus_sent.max_ns, "ns")
    if worst_ns is not None:
        target = _judge_maximum(stream, requirement, uncertainty, worst_ns)
        if target.outcome == "fail":
            parts = f"sent up to {late} late, then up to {sent} under way"
            cause = parts if whole else f"received - sent: {format_value(worst_ns, 'ns')}"
            return Verdict("fail", judged.margin, f"{judged.reason} ({cause})")
    if excused:
        return Verdict("inconclusive", judged.margin, f"{judged.reason}; {_stall_reason(stream, excused)}")
    return Verdict(
        "inconclusive", judged.margin, f"generator late: sent up to {late} late, then {sent} under way"
    )


def _stall_reason(stream: StreamResult, excused: Sequence[Miss]) -> str:
    total = max(stream.misses, len(excused))
    return f"{len(excused)} of {total} misses were under way while the bench stood still"


def misses_in_stall(
    stream: StreamResult, requirement: Requirement, replay: Replay, uncertainty: Uncertainty
) -> list[Miss]:
    """Return the stream's misses that were under way (scheduled to received) in a stall window.

    Windows are widened by U of the stream, because the two clocks are known no better than that.
    """
    windows = _Windows.of(replay)
    upper_ns = requirement.limit.upper
    if windows is None or upper_ns is None:
        return []
    slack_ns = int(uncertainty.expanded)
    own = (m for m in replay.misses if m.stream == stream.id and m.received_minus_scheduled_ns > upper_ns)
    return [miss for miss in own if windows.touch(miss, slack_ns)]


@dataclass(frozen=True, slots=True)
class _Windows:
    """Stall windows, sorted by start, with the clock that turns the consumer's time into theirs."""

    starts_ns: list[int]
    ends_so_far_ns: list[int] = field(repr=False)
    clock: ClockResult | ServerLine | None

    @classmethod
    def of(cls, replay: Replay) -> _Windows | None:
        """Return the windows of a replay, None where there are none or their clock is unknown."""
        if replay.witness is None or not replay.witness.windows:
            return None
        clock = replay.recv.clock(replay.witness_clock)
        if replay.clock is not None:
            clock = replay.clock.line(replay.witness_clock)
            if clock is None:
                return None
        elif clock is None and replay.recv.correction != "none" and replay.witness_clock != "local":
            return None
        starts: list[int] = []
        ends: list[int] = []
        for start, end, _ in sorted(replay.witness.windows):
            starts.append(start)
            ends.append(max(end, ends[-1]) if ends else end)
        return cls(starts, ends, clock)

    def touch(self, miss: Miss, slack_ns: int) -> bool:
        """Say whether a window overlaps the way of a message, from its schedule to its receipt."""
        offset_ns = self.clock.offset_at(miss.received_local_tai_ns) if self.clock else 0
        if offset_ns is None:
            return False
        received_ns = miss.received_local_tai_ns + offset_ns
        scheduled_ns = received_ns - miss.received_minus_scheduled_ns
        begun = bisect_left(self.starts_ns, received_ns + slack_ns + 1)
        return begun > 0 and self.ends_so_far_ns[begun - 1] >= scheduled_ns - slack_ns


def latency_measurement(
    stream_id: int, requirement: Requirement, replay: Replay, context: Context
) -> Measurement:
    """Judge a stream and return the record: the maximum of received - scheduled, in ns."""
    stream = replay.recv.stream(stream_id)
    judged = judge_latency(stream_id, requirement, replay)
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
