# SPDX-License-Identifier: Apache-2.0
"""The streams of a run with what the evidence of their replays says beside their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.daq_replay.evidence import ReplayEvidence
from reports.daq_replay.record_replays import RecordReplays, replay_folder
from reports.daq_replay.role import ReplayRole
from reports.daq_replay.verdict import StreamRequirement, judge_latency
from reports.natural_order import natural
from reports.record.histogram import Quantile, Summary, merge
from reports.record.measurement import Measurement
from reports.record.sampling import miss_probability_upper_95
from reports.run.folder import EVIDENCE
from reports.run.tally import key_of
from reports.tools.answers import SendStream, StreamResult, WitnessResult
from reports.tools.cpu_quota import cpu_quota

SHARED = 3
"""Streams from which on a reason is told once of all of them."""


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One stream: its record, and what the evidence says beside it."""

    record: Measurement
    stream: StreamResult | None
    low_latency: bool
    attempts: int

    def quantile(self, share: float) -> Quantile | None:
        """Return a quantile of received - scheduled, in ns; None: of so few samples it is the maximum."""
        latency = self.stream.received_minus_scheduled if self.stream else None
        return latency.quantile(share) if latency and latency.tells(share) else None

    @property
    def over_budget(self) -> int | None:
        """Return how many messages came later than their budget; None: not known."""
        return self.stream.misses if self.stream else None

    @property
    def budget_share(self) -> float | None:
        """Return the value as a share of the upper limit."""
        upper = self.record.limit.upper
        return self.record.value / upper if self.record.value is not None and upper else None

    @property
    def miss_bound(self) -> float | None:
        """Return the 95 % upper bound of the probability of a miss, lost messages counted as misses."""
        if self.stream is None:
            return None
        total = self.record.n + self.record.lost
        return miss_probability_upper_95(min(total, self.stream.misses + self.record.lost), total)

    @property
    def kind(self) -> str:
        """Return the transport in words."""
        if self.stream is None:
            return ""
        name = self.stream.transport.upper()
        return f"low-latency {name}" if self.low_latency else name


@dataclass(frozen=True, slots=True)
class Instrument:
    """What the bench says about itself during one replay; rows: the streams that it decides."""

    attempt: str
    folder: Path
    evidence: ReplayEvidence
    lateness: tuple[tuple[int, Summary, tuple[SendStream, ...]], ...]
    largest_u_ns: float
    misses_explained: dict[int, int]
    rows: tuple[StreamRow, ...]

    @property
    def witness(self) -> WitnessResult | None:
        """Return what the stall witness saw."""
        return self.evidence.witness

    @property
    def quota(self) -> str:
        """Return in words that a CPU quota stopped the machine; empty: nothing shows one."""
        return cpu_quota([window[:2] for window in self.witness.windows]).words if self.witness else ""

    @property
    def target_producer(self) -> int | None:
        """Return the producer in whose place the target sent; None: it received."""
        return self.evidence.role.producer if self.evidence.role else None

    @property
    def generator_lateness(self) -> list[Summary]:
        """Return sent - scheduled of each producer but the target: what it sends late is its own."""
        return [summary for number, summary, _ in self.lateness if number != self.target_producer]

    @property
    def generator_lateness_p99(self) -> Quantile | None:
        """Return the 99 % quantile of the generator's lateness in ns; None: it did not say."""
        summaries = self.generator_lateness
        return merge(summaries).quantile(0.99) if summaries else None

    @property
    def worst_lateness_ns(self) -> int | None:
        """Return the largest lateness of the generator in ns."""
        return max((s.max_ns for s in self.generator_lateness if s.max_ns is not None), default=None)

    @property
    def target_lateness_ns(self) -> int | None:
        """Return the largest lateness of a target that sent, in ns; None: it received."""
        return next((s.max_ns for number, s, _ in self.lateness if number == self.target_producer), None)


@dataclass(frozen=True, slots=True)
class StreamGroup:
    """The streams of one subject under one set of conditions, with the instruments of their replays.

    Attributes:
        role: The target's part where it produced; None: it consumed.
    """

    title: str
    rows: tuple[StreamRow, ...]
    instruments: tuple[Instrument, ...]
    role: ReplayRole | None = None

    @property
    def shared_reasons(self) -> dict[str, list[str]]:
        """Return the reasons that three streams or more have, each with these streams."""
        streams: dict[str, list[str]] = {}
        for row in self.rows:
            if row.record.reason:
                streams.setdefault(row.record.reason, []).append(row.record.subject.stream or "")
        return {reason: of for reason, of in streams.items() if len(of) >= SHARED}

    @property
    def has_tail(self) -> bool:
        """Say whether a stream has samples enough for p99.9."""
        return any(row.quantile(0.999) for row in self.rows)

    @property
    def heading(self) -> str:
        """Return the target's part in words."""
        if self.role is None:
            return "Received by the target"
        return f"Sent by the target in the place of producer {self.role.producer}, into {self.role.consumer}"


def stream_row(record: Measurement, replays: RecordReplays, attempts: int = 1) -> StreamRow:
    """Return a record's row, with what its replay says."""
    replay, stream = replays.of(record), replays.stream_of(record)
    low_latency = bool(replay and stream and stream.message_type in replay.low_latency_types)
    return StreamRow(record, stream, low_latency, attempts)


def stream_groups(
    folder: Path, latencies: Sequence[Measurement], everything: Sequence[Measurement]
) -> list[StreamGroup]:
    """Return latency records in groups of one subject and conditions, with the evidence of their replays.

    Args:
        folder: The run folder.
        latencies: Records of streams that count.
        everything: Records of all attempts.
    """
    replays = RecordReplays(folder)
    grouped: dict[str, list[StreamRow]] = {}
    used: dict[str, list[Path]] = {}
    roles: dict[str, ReplayRole | None] = {}
    tries = Counter(key_of(record) for record in everything)
    for record in latencies:
        place, replay = replay_folder(folder, record), replays.of(record)
        role = replay.role if replay else None
        title = _group_title(record, role)
        roles[title] = role
        if place is not None and place not in used.setdefault(title, []):
            used[title].append(place)
        grouped.setdefault(title, []).append(stream_row(record, replays, tries[key_of(record)]))
    groups: list[StreamGroup] = []
    for title, rows in grouped.items():
        places = used.get(title, [])
        instruments = [_instrument(folder, place, replays.at(place), rows) for place in places]
        rows.sort(key=lambda row: natural(row.record.subject.stream or ""))
        groups.append(StreamGroup(title, tuple(rows), tuple(instruments), roles[title]))
    return groups


def _group_title(record: Measurement, role: ReplayRole | None) -> str:
    s, c = record.subject, record.conditions
    words = [
        str(role) if role else f"target {s.target}",
        f"stack {s.stack or '-'}",
        f"clock {s.clock or '-'}",
    ]
    words += [f"phase {c.phase or '-'}", f"load {c.load}", f"impairment {c.impairment}"]
    return " · ".join(words)


def _instrument(folder: Path, place: Path, evidence: ReplayEvidence, rows: Sequence[StreamRow]) -> Instrument:
    recv = evidence.recv
    sent = [stream for send in evidence.sends for stream in send.streams]
    producers = sorted({stream.producer for stream in recv.streams}) if recv else []
    lateness = [
        (
            number,
            merge([s.sent_minus_scheduled for s in recv.streams if s.producer == number] if recv else []),
            tuple(s for s in sent if s.producer == number),
        )
        for number in producers
    ]
    mine = [row for row in rows if replay_folder(folder, row.record) == place]
    return Instrument(
        attempt=place.relative_to(folder / EVIDENCE).as_posix(),
        folder=place,
        evidence=evidence,
        lateness=tuple(lateness),
        largest_u_ns=max((row.record.uncertainty.expanded for row in mine), default=0),
        misses_explained=_misses_explained(evidence, mine),
        rows=tuple(mine),
    )


def _misses_explained(evidence: ReplayEvidence, rows: Iterable[StreamRow]) -> dict[int, int]:
    """Return, by stream, how many misses the machine explains by the time that it took."""
    if evidence.recv is None:
        return {}
    counts: dict[int, int] = {}
    replay = evidence.replay()
    for row in rows:
        if row.stream is not None:
            judged = judge_latency(row.stream.id, requirement_of(row.record, evidence), replay)
            if judged.misses_explained:
                counts[row.stream.id] = judged.misses_explained
    return counts


def requirement_of(record: Measurement, evidence: ReplayEvidence) -> StreamRequirement:
    """Return what a record's stream was held against."""
    of_sender = evidence.role is not None
    return StreamRequirement(
        record.requirement, record.limit, record.n_required, record.allowed_lost, of_sender
    )
