# SPDX-License-Identifier: Apache-2.0
"""What the qualification page shows, gathered from a run folder and from nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.advice_section import AdviceSection, gather_advice
from reports.answers import SendStream, StreamResult, WitnessResult
from reports.clock_section import ClockSection, gather_clocks
from reports.histogram import Quantile, Summary, merge
from reports.integrity import list_files, sha256_bytes, sha256_file
from reports.latency import Requirement, judge_latency
from reports.manifest import Manifest
from reports.read_latency_section import ReadLatencySection, gather_read_latency
from reports.record import Measurement, Outcome
from reports.replay_evidence import ReplayEvidence, load_replay
from reports.run_folder import EVIDENCE, MANIFEST, MEASUREMENTS, RunFolder
from reports.sampling import miss_probability_upper_95
from reports.tally import INSTRUMENT_CHECKS, effective, key_of, overall, relative_margin, worst
from reports.timed_edges import BudgetPart
from reports.timed_edges_section import TimedEdgesSection, gather_timed_edges

STREAM_QUANTITY = "one_way_latency"
RAW_DATA = (MANIFEST, MEASUREMENTS, "output.xml")


@dataclass(frozen=True, slots=True)
class StreamRow:
    """One stream: its record, and what the evidence says beside it."""

    record: Measurement
    stream: StreamResult | None
    low_latency: bool
    attempts: int

    @property
    def p999(self) -> Quantile | None:
        """Return the 99.9 % quantile of received - scheduled, in ns."""
        return self.stream.received_minus_scheduled.quantile(0.999) if self.stream else None

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
    evidence: ReplayEvidence
    lateness: tuple[tuple[int, Summary, tuple[SendStream, ...]], ...]
    largest_u_ns: float
    misses_in_stall: dict[int, int]
    rows: tuple[StreamRow, ...]

    @property
    def witness(self) -> WitnessResult | None:
        """Return what the stall witness saw."""
        return self.evidence.witness

    @property
    def worst_lateness_ns(self) -> int | None:
        """Return the largest lateness of the generator in ns."""
        return max((s.max_ns for _, s, _ in self.lateness if s.max_ns is not None), default=None)


@dataclass(frozen=True, slots=True)
class StreamGroup:
    """The streams of one subject under one set of conditions, with the instruments of their replays."""

    title: str
    rows: tuple[StreamRow, ...]
    instruments: tuple[Instrument, ...]


@dataclass(frozen=True, slots=True)
class PartRow:
    """One uncertainty part over all measurements: its largest and smallest value."""

    name: str
    kind: str
    low: float
    high: float
    unit: str
    count: int


@dataclass(frozen=True, slots=True)
class HashRow:
    """A file of raw data."""

    path: str
    size_bytes: int
    sha256: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Report:
    """Everything on the page.

    Attributes:
        outcome: Verdict on the target; at best inconclusive where the bench did not pass its own checks.
        counts: Measurements of the target that count, by outcome.
        records: The same measurements.
        checks: Measurements by which the bench checked itself.
        attempts_total: Measurements of the target in all attempts.
    """

    folder: str
    manifest: Manifest
    outcome: Outcome
    counts: dict[str, int]
    records: tuple[Measurement, ...]
    worst: Measurement | None
    worst_share: float | None
    simulated: bool
    groups: tuple[StreamGroup, ...]
    others: tuple[tuple[str, tuple[Measurement, ...]], ...]
    clocks: ClockSection | None
    read_latency: ReadLatencySection | None
    timed_edges: TimedEdgesSection | None
    advice: AdviceSection | None
    checks: tuple[Measurement, ...]
    attempts_total: int
    parts: tuple[PartRow, ...]
    hashes: tuple[HashRow, ...]
    problems: tuple[str, ...]

    @property
    def lost(self) -> int:
        """Return how many messages were lost in all."""
        return sum(record.lost for record in self._streams)

    @property
    def messages(self) -> int:
        """Return how many messages were received in all."""
        return sum(record.n for record in self._streams)

    @property
    def _streams(self) -> list[Measurement]:
        return [record for record in self.records if record.quantity == STREAM_QUANTITY]


def gather(path: Path, added: Mapping[str, bytes] | None = None) -> Report:
    """Gather a report from a run folder.

    Args:
        path: The run folder.
        added: Files that are about to be added to it, by their name.

    Raises:
        RunFolderError: The folder is none, or a whole line of its measurements is no record.
    """
    run = RunFolder.open(path)
    found = run.records()
    counting = effective(found.measurements)
    latencies = [m for m in counting if m.quantity == STREAM_QUANTITY and m.subject.stream is not None]
    checks = [m for m in counting if m.quantity in INSTRUMENT_CHECKS]
    clocks = gather_clocks(run.path, counting)
    rows = clocks.rows if clocks else ()
    shown = {record for row in rows for record in (row.record, *row.masks)}
    read_latency = gather_read_latency(run.path, counting)
    shown |= set(read_latency.records) if read_latency else set()
    timed_edges = gather_timed_edges(run.path, counting)
    shown |= set(timed_edges.records) if timed_edges else set()
    rest = [m for m in counting if m not in latencies and m not in checks and m not in shown]
    judged = [m for m in counting if m not in checks]
    hashes = _hashes(run.path, found.measurements, added or {})
    groups = _stream_groups(run.path, latencies, found.measurements)
    poorest = worst(counting)
    return Report(
        folder=run.path.name,
        manifest=run.manifest,
        outcome=overall(counting),
        counts={o: sum(m.outcome == o for m in judged) for o in run.manifest.counts},
        records=tuple(judged),
        worst=poorest,
        worst_share=relative_margin(poorest) if poorest else None,
        simulated=bool(run.manifest.simulated) or any(m.simulated for m in found.measurements),
        groups=tuple(groups),
        others=tuple(_by_quantity(rest)),
        clocks=clocks,
        read_latency=read_latency,
        timed_edges=timed_edges,
        advice=gather_advice(run.path, added or {}, run.run_id),
        checks=tuple(checks),
        attempts_total=sum(m.quantity not in INSTRUMENT_CHECKS for m in found.measurements),
        parts=tuple(_parts(counting, timed_edges.parts if timed_edges else ())),
        hashes=tuple(hashes),
        problems=tuple(_problems(run.manifest, found.torn, hashes, groups)),
    )


def _problems(
    manifest: Manifest, torn: str | None, hashes: Iterable[HashRow], groups: Iterable[StreamGroup]
) -> list[str]:
    problems = list(manifest.problems)
    if manifest.end_utc is None:
        problems.append("The run did not come to its end; this page shows what was measured until then.")
    if torn is not None:
        problems.append(f"The last line of {MEASUREMENTS} is torn and not counted.")
    problems += [
        f"{row.path} is not what its measurements were judged from." for row in hashes if row.changed
    ]
    for group in groups:
        for instrument in group.instruments:
            problems += [f"{instrument.attempt}: {problem}" for problem in instrument.evidence.problems]
    return problems


def _hashes(folder: Path, records: Iterable[Measurement], added: Mapping[str, bytes]) -> list[HashRow]:
    """Return the raw data with their hashes, and whether a record was judged from other bytes."""
    judged: dict[str, set[str]] = {}
    for record in records:
        for evidence in record.evidence:
            judged.setdefault(evidence.path, set()).add(evidence.sha256)
    everything = sorted({*list_files(folder), *added})
    present = [name for name in everything if name in RAW_DATA or name.startswith(f"{EVIDENCE}/")]
    rows: list[HashRow] = []
    for name in present:
        if name in added:
            size_bytes, digest = len(added[name]), sha256_bytes(added[name])
        else:
            size_bytes, digest = (folder / name).stat().st_size, sha256_file(folder / name)
        known = judged.pop(name, {digest})
        rows.append(HashRow(name, size_bytes, digest, known != {digest}))
    rows += [HashRow(name, 0, "missing", True) for name in sorted(judged)]
    return rows


def _replay_folder(folder: Path, record: Measurement) -> Path | None:
    """Return the folder of the replay that a record was judged from."""
    for evidence in record.evidence:
        if evidence.path.endswith("/recv.ndjson"):
            return (folder / evidence.path).parent
    return None


def _stream_groups(
    folder: Path, latencies: Sequence[Measurement], everything: Sequence[Measurement]
) -> list[StreamGroup]:
    replays: dict[Path, ReplayEvidence] = {}
    grouped: dict[str, list[StreamRow]] = {}
    used: dict[str, list[Path]] = {}
    tries = Counter(key_of(record) for record in everything)
    for record in latencies:
        title = _group_title(record)
        place = _replay_folder(folder, record)
        stream = None
        low_latency = False
        if place is not None:
            if place not in replays:
                replays[place] = load_replay(place)
            stream, low_latency = _stream_of(replays[place], record)
            if place not in used.setdefault(title, []):
                used[title].append(place)
        attempts = tries[key_of(record)]
        grouped.setdefault(title, []).append(StreamRow(record, stream, low_latency, attempts))
    groups: list[StreamGroup] = []
    for title, rows in grouped.items():
        places = used.get(title, [])
        instruments = [_instrument(folder, place, replays[place], rows) for place in places]
        rows.sort(key=lambda row: _natural(row.record.subject.stream or ""))
        groups.append(StreamGroup(title, tuple(rows), tuple(instruments)))
    return groups


def _natural(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdigit() else (1 << 31, text)


def _group_title(record: Measurement) -> str:
    s, c = record.subject, record.conditions
    words = [f"target {s.target}", f"stack {s.stack or '-'}", f"clock {s.clock or '-'}"]
    words += [f"phase {c.phase or '-'}", f"load {c.load}", f"impairment {c.impairment}"]
    return " · ".join(words)


def _stream_of(evidence: ReplayEvidence, record: Measurement) -> tuple[StreamResult | None, bool]:
    """Return the consumer's result of a record's stream, and whether the plan calls it low-latency."""
    if evidence.recv is None:
        return None, False
    for stream in evidence.recv.streams:
        if str(stream.id) == record.subject.stream:
            return stream, stream.message_type in evidence.low_latency_types
    return None, False


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
    mine = [row for row in rows if _replay_folder(folder, row.record) == place]
    return Instrument(
        attempt=place.relative_to(folder / EVIDENCE).as_posix(),
        evidence=evidence,
        lateness=tuple(lateness),
        largest_u_ns=max((row.record.uncertainty.expanded for row in mine), default=0),
        misses_in_stall=_misses_in_stall(evidence, mine),
        rows=tuple(mine),
    )


def _misses_in_stall(evidence: ReplayEvidence, rows: Iterable[StreamRow]) -> dict[int, int]:
    """Return, by stream, how many misses were under way while the bench stood still."""
    if evidence.recv is None:
        return {}
    counts: dict[int, int] = {}
    replay = evidence.replay()
    for row in rows:
        if row.stream is not None:
            requirement = Requirement(row.record.requirement, row.record.limit, row.record.n_required)
            judged = judge_latency(row.stream.id, requirement, replay)
            if judged.misses_in_stall:
                counts[row.stream.id] = judged.misses_in_stall
    return counts


def _by_quantity(records: Iterable[Measurement]) -> list[tuple[str, tuple[Measurement, ...]]]:
    grouped: dict[str, list[Measurement]] = {}
    for record in records:
        grouped.setdefault(record.quantity, []).append(record)
    return [(quantity, tuple(rows)) for quantity, rows in grouped.items()]


def _parts(records: Iterable[Measurement], edges: Iterable[BudgetPart]) -> list[PartRow]:
    """Return the parts of the records' uncertainties, and of edges those that are not judged."""
    values: dict[tuple[str, str, str], list[float]] = {}
    for part in edges:
        values.setdefault((part.name, part.kind, "ns"), []).append(part.value_ns)
    for record in records:
        for part in record.uncertainty.parts:
            values.setdefault((part.name, part.kind, record.unit), []).append(part.value)
    return [
        PartRow(name, kind, min(found), max(found), unit, len(found))
        for (name, kind, unit), found in sorted(values.items())
    ]
