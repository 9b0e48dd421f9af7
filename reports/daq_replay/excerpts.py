# SPDX-License-Identifier: Apache-2.0
"""Excerpts of the timeline around messages that were over their budgets: what was where, when, and how sure.

An excerpt begins 50 ms before a message was due and ends 5 ms after its last byte was read. It has the stamps
that the message itself carries, what took the processors meanwhile as far as anybody watched it, and other
messages that were held at the same time. Times are in ns from when the message was due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.daq_replay.emulation import TARGET_WITNESS
from reports.daq_replay.evidence import ReplayEvidence, load_replay
from reports.daq_replay.kernel_moments import RecordedKernel, kernel_events
from reports.daq_replay.late_messages import WorstMessage, worst_messages, worst_of_each_stream
from reports.daq_replay.verdict import ReplayResults, stream_uncertainty, witness_time
from reports.errors import RecordError
from reports.tools.answers import WitnessResult, last_result, witness_result
from reports.units import format_value

BEFORE_NS, AFTER_NS = 50_000_000, 5_000_000
EXCERPTS_MAX = 20
REPLAYS = ("daq_replay", "daq_producer")


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened to the message, or beside it; `until_ns` None: at once."""

    at_ns: int
    until_ns: int | None
    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is known of one message over its budget.

    Attributes:
        place: Folder of the replay, below the evidence.
        message: In the stages of its way.
        due_tai_ns: When it was due, by the target's clock.
        u_ns: U of its time under way, the clocks of its two ends included; None: they are not known.
        moments: In their order.
        unwatched: What nobody watched, so that the cause may lie there.
    """

    place: str
    message: WorstMessage
    due_tai_ns: int
    u_ns: int | None
    moments: tuple[Moment, ...]
    unwatched: tuple[str, ...]

    @property
    def over_share(self) -> float:
        """Return how far it was over its budget, as a share of that."""
        return self.message.received_ns / self.message.budget_ns - 1


@dataclass(frozen=True, slots=True)
class ReplayExcerpts:
    """The worst message of each stream of one replay, and how many were over their budgets.

    Attributes:
        late: By stream: all that were, those included of which only the number was kept; None: the consumer
            left no result that says it.
        streams: Ids of all that it tells of.
        problems: Why there is no more.
    """

    place: str
    late: Mapping[int, int] | None
    streams: frozenset[int]
    worst: tuple[Excerpt, ...]
    problems: tuple[str, ...]


def excerpts_of_run(run: Path, stream: int | None = None) -> list[ReplayExcerpts]:
    """Return the excerpts of each replay of a run; at most `EXCERPTS_MAX` of all, the worst.

    Args:
        run: Its folder.
        stream: Id of the stream that alone is looked at, whose worst messages are then all shown; None: all.
    """
    found = [
        excerpts_of(folder, folder.relative_to(run / "evidence").as_posix(), load_replay(folder), stream)
        for folder in replays_of_run(run)
    ]
    worst = sorted((each for replay in found for each in replay.worst), key=lambda each: -each.over_share)
    shown = {id(each) for each in worst[:EXCERPTS_MAX]}
    return [replace(each, worst=tuple(one for one in each.worst if id(one) in shown)) for each in found]


def replays_of_run(run: Path) -> Iterator[Path]:
    """Yield the replays from which verdicts follow; a check of the bench delays messages on purpose."""
    for capability in REPLAYS:
        for file in sorted((run / "evidence" / capability).rglob("recv.ndjson")):
            if file.parent.name.startswith("attempt-"):
                yield file.parent


def excerpts_of(
    folder: Path, place: str, evidence: ReplayEvidence, stream: int | None = None
) -> ReplayExcerpts:
    """Return the excerpts of one replay.

    Args:
        folder: Its evidence.
        place: What it is called.
        evidence: As it was read.
        stream: As of `excerpts_of_run`.
    """
    try:
        replay = evidence.replay()
    except RecordError as error:
        return ReplayExcerpts(place, None, frozenset(), (), (str(error),))
    late = {each.id: each.misses for each in replay.recv.streams if each.misses and stream in (None, each.id)}
    problems = list(evidence.problems)
    target = target_witness(folder, problems)
    kernel = kernel_events(folder, replay, problems)
    found = worst_of_each_stream(replay) if stream is None else worst_messages(replay, stream)
    worst = [
        _excerpt(place, replay, message, target, kernel)
        for message in found
        if message.received_ns > message.budget_ns
    ]
    missing = sorted({*late} - {each.message.stream for each in worst})
    if missing:
        names = ", ".join(map(str, missing))
        problems.append(
            f"streams {names}: no late message is in misses.ndjson with a clock that can be believed"
        )
    streams = frozenset(each.id for each in replay.recv.streams)
    return ReplayExcerpts(place, late, streams, tuple(worst), tuple(problems))


def target_witness(folder: Path, problems: list[str]) -> WitnessResult | None:
    """Return what the witness in the target saw; None: there is none, or a problem more."""
    path = folder / TARGET_WITNESS
    if not path.exists():
        return None
    try:
        return witness_result(last_result(path))
    except RecordError as error:
        problems.append(str(error))
        return None


def _excerpt(
    place: str,
    replay: ReplayResults,
    message: WorstMessage,
    target: WitnessResult | None,
    kernel: RecordedKernel | None,
) -> Excerpt:
    received_tai_ns = replay.recv.start_tai_ns + message.after_start_ns
    due_tai_ns = received_tai_ns - message.received_ns
    stream = replay.recv.stream(message.stream)
    uncertainty, unknown = stream_uncertainty(stream, replay)
    moments = [*_own(message, stream.producer), *_others(replay, message, received_tai_ns)]
    unwatched: list[str] = []
    sent_tai_ns = due_tai_ns + max(0, message.to_send_ns or 0)
    if kernel is None:
        unwatched.append("threads and interrupts of both ends: kernel events were not recorded")
    elif kernel.reaches_back_to() > sent_tai_ns:
        unwatched.append("threads and interrupts of both ends: the target's rings do not reach back so far")
    else:
        moments += [
            Moment(each.begin_ns - due_tai_ns, each.end_ns - due_tai_ns, f"target, {each.cpu}", each.words)
            for each in kernel.had(sent_tai_ns, received_tai_ns)
        ]
        unwatched.append("threads and interrupts of the producer: kernel events were not recorded there")
    if target is not None:
        moments += _taken(target.windows, due_tai_ns, message, "target", "its most urgent thread did not run")
    else:
        unwatched.append(
            "what kept the target's processors from their most urgent threads: no witness ran there"
        )
    by_witness = witness_time(replay)
    at_witness_ns = by_witness(received_tai_ns) if by_witness is not None else None
    if replay.witness is None or at_witness_ns is None:
        unwatched.append(
            "what the machine took from the bench: its witness, or the witness's clock, is missing"
        )
    else:
        due_ns = at_witness_ns - message.received_ns
        moments += _taken(replay.witness.windows, due_ns, message, "machine", "was away")
        pauses = [(start, end, -1) for start, end in replay.emulator_pauses]
        moments += _taken(pauses, due_ns, message, "emulator", "did not run the target")
    return Excerpt(
        place,
        message,
        due_tai_ns,
        None if unknown else round(uncertainty.expanded),
        tuple(sorted(moments, key=lambda each: (each.at_ns, each.until_ns or each.at_ns))),
        tuple(unwatched),
    )


def _own(message: WorstMessage, producer: int) -> Iterator[Moment]:
    """Yield the stamps of the message itself."""
    source = f"producer {producer}"
    yield Moment(0, None, source, "the message is due")
    sent_ns = message.to_send_ns
    if sent_ns is not None:
        yield Moment(sent_ns, None, source, f"it is sent: {_ms(sent_ns)} after it was due")
    if message.to_read_ns is not None:
        stamped_ns = message.received_ns - message.to_read_ns
        since = "" if message.to_kernel_ns is None else f": {_ms(message.to_kernel_ns)} under way"
        yield Moment(stamped_ns, None, "target", f"its kernel has its last frame{since}")
    last = "" if message.to_read_ns is None else f": {_ms(message.to_read_ns)} after the kernel had it"
    yield Moment(message.budget_ns, None, "budget", "it should be there by now")
    yield Moment(message.received_ns, None, "target", f"its last byte is read{last}")


def _others(replay: ReplayResults, held: WorstMessage, received_tai_ns: int) -> Iterator[Moment]:
    """Yield other messages over their budgets, or close to them, that were read within the excerpt."""
    due_tai_ns = received_tai_ns - held.received_ns
    begin_ns, end_ns = due_tai_ns - BEFORE_NS, received_tai_ns + AFTER_NS
    beside = [
        each
        for each in replay.misses
        if begin_ns <= each.received_local_tai_ns <= end_ns
        and (each.stream, each.sequence) != (held.stream, held.sequence)
    ]
    if not beside:
        return
    producer_of = {each.id: each.producer for each in replay.recv.streams}
    counts = Counter(producer_of.get(each.stream, 0) for each in beside)
    first = min(each.received_local_tai_ns for each in beside) - due_tai_ns
    last = max(each.received_local_tai_ns for each in beside) - due_tai_ns
    names = ", ".join(f"producer {number}: {count}" for number, count in sorted(counts.items()))
    many = "1 other message" if len(beside) == 1 else f"{len(beside)} other messages"
    what = f"{many} read, late or nearly so ({names})"
    yield Moment(first, last if last > first else None, "target", what)


def _taken(
    windows: Sequence[tuple[int, int, int]], due_ns: int, message: WorstMessage, where: str, what: str
) -> Iterator[Moment]:
    """Yield the windows that lie in the excerpt; of many short ones only those that may matter.

    Args:
        windows: (start, end, CPU or -1), by the clock of `due_ns`.
        due_ns: When the message was due, by that clock.
        message: Says how long the excerpt is.
        where: Whose.
        what: It did.
    """
    inside = [
        (start - due_ns, end - due_ns, cpu)
        for start, end, cpu in windows
        if end > due_ns - BEFORE_NS and start < due_ns + message.received_ns + AFTER_NS
    ]
    for start, end, cpu in sorted(inside, key=lambda each: each[0] - each[1])[:5]:
        name = where if cpu < 0 else f"{where}, CPU {cpu}"
        yield Moment(start, end, name, f"{what} for {_ms(end - start)}")


def narrated(excerpt: Excerpt) -> list[str]:
    """Return an excerpt as lines of text."""
    message = excerpt.message
    over = format_value(message.received_ns - message.budget_ns, "ns")
    u = "unknown" if excerpt.u_ns is None else format_value(excerpt.u_ns, "ns")
    name = f"stream {message.stream}, message no. {message.sequence} ({excerpt.place})"
    lines = [f"{name}: {_ms(message.received_ns)}, {over} over its budget of {_ms(message.budget_ns)}; U {u}"]
    width = max(len(each.where) for each in excerpt.moments)
    for each in excerpt.moments:
        until = "" if each.until_ns is None else f" .. {each.until_ns / 1e6:.3f}"
        lines.append(f"  {each.at_ns / 1e6:10.3f}{until:>14} ms  {each.where:{width}}  {each.what}")
    lines.append(f"  most of it: {message.cause.partition(': ')[2]}")
    return [*lines, *(f"  not known: {each}" for each in excerpt.unwatched)]


def _ms(value_ns: int) -> str:
    return format_value(value_ns, "ns")
