# SPDX-License-Identifier: Apache-2.0
"""Of a stream's latency, received - sent, the part of each end's own software, from round trips.

One way from A to B is A's sending, the hardware, and B's receiving (Puttnies et al., equation (1)). Of each
end S = send + receive is known: one way is S / 2 where both are alike, within (7), else anywhere in [0, S].
S holds for all devices of one kind, (10) to (12). What is left of the median is queues of the network and of
the ends, waits for a processor, and all software that a round trip of one datagram does not have.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from reports.daq_replay.stream_groups import StreamRow
from reports.record.histogram import Summary, merge
from reports.software_latency.estimate import SoftwareLatency
from reports.software_latency.evidence import SoftwareLatencies
from reports.software_latency.plan import Kind
from reports.tools.answers import StreamResult

UDP = "UDP"


@dataclass(frozen=True, slots=True)
class OneWay:
    """One way through the software of one end, in ns.

    Attributes:
        mean_ns: S / 2: sending and receiving are taken to be alike.
        expanded_ns: U of it, with all its parts; not that of the assumption.
        most_ns: S: without the assumption it is anywhere from 0 to here.
    """

    mean_ns: float
    expanded_ns: float
    most_ns: float

    @classmethod
    def of(cls, latency: SoftwareLatency) -> OneWay:
        """Return that of a device; a mean below zero, which is chance, is zero."""
        most_ns = max(latency.mean_ns, 0.0)
        return cls(most_ns / 2, latency.mean_u_ns / 2, most_ns)


@dataclass(frozen=True, slots=True)
class SoftwarePart:
    """Streams of one transport from producers of one kind, whose round trips of one size are nearest.

    Attributes:
        transport: In words.
        sizes_bytes: Of the smallest and of the largest message.
        streams: Their ids.
        producers: Their numbers.
        kind: Hardware and software of the producers.
        trips_bytes: Size of the round trips that S is of.
        latency: Received - sent of all their messages.
        expanded_ns: The largest U of these streams.
        sending: Of the producers.
        receiving: Of the target.
        hardware_ns: Cables and switches, one way of a datagram of `trips_bytes`; None: not known.
        hardware_bound_ns: By how much that may be off.
    """

    transport: str
    sizes_bytes: tuple[int, int]
    streams: tuple[int, ...]
    producers: tuple[int, ...]
    kind: Kind
    trips_bytes: int
    latency: Summary
    expanded_ns: float
    sending: OneWay
    receiving: OneWay
    hardware_ns: float | None
    hardware_bound_ns: float

    @property
    def median_ns(self) -> int:
        """Return the median of received - sent."""
        found = self.latency.quantile(0.5)
        assert found is not None
        return found.value_ns

    @property
    def p99_ns(self) -> int | None:
        """Return the 99 % quantile of received - sent; None: of so few messages it is the maximum."""
        found = self.latency.quantile(0.99)
        return found.value_ns if found is not None and self.latency.tells(0.99) else None

    @property
    def _alike_ns(self) -> float:
        return self.median_ns - self.sending.mean_ns - self.receiving.mean_ns - (self.hardware_ns or 0.0)

    @property
    def left_ns(self) -> float | None:
        """Return what is left of the median; None: its parts are more than it."""
        return self._alike_ns if self._alike_ns >= 0 else None

    @property
    def exceeds_ns(self) -> float:
        """Return by how much the parts exceed the median; 0: they do not."""
        return max(-self._alike_ns, 0.0)

    @property
    def left_between_ns(self) -> tuple[float, float]:
        """Return between what it is where sending and receiving need not be alike."""
        high = self.median_ns - (self.hardware_ns or 0.0)
        return max(high - self.sending.most_ns - self.receiving.most_ns, 0.0), max(high, 0.0)

    @property
    def left_expanded_ns(self) -> float:
        """Return U of what is left: the sum, as what the parts have in common is not known."""
        return (
            self.expanded_ns + self.sending.expanded_ns + self.receiving.expanded_ns + self.hardware_bound_ns
        )


@dataclass(frozen=True, slots=True)
class UntoldStreams:
    """Streams whose software parts are not told: no device of the kind was measured.

    Attributes:
        kind: Of the producers; None: the bench did not list them.
    """

    streams: tuple[int, ...]
    producers: tuple[int, ...]
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class SoftwareParts:
    """What round trips say of the streams of one target."""

    rows: tuple[SoftwarePart, ...]
    untold: tuple[UntoldStreams, ...]

    @property
    def has_more_than_udp(self) -> bool:
        """Say whether a stream is not of UDP datagrams, as round trips are."""
        return any(each.transport != UDP for each in self.rows)

    @property
    def exceeding(self) -> bool:
        """Say whether the parts of some streams are more than their median."""
        return any(each.exceeds_ns > 0 for each in self.rows)


@dataclass(frozen=True, slots=True)
class _Source:
    """Round trips of one size that tell both ends of a producer's way.

    Attributes:
        hardware_ns: Of one way; None: not known.
        hardware_bound_ns: By how much it may be off.
    """

    trips_bytes: int
    sending: SoftwareLatency
    receiving: SoftwareLatency
    hardware_ns: float | None
    hardware_bound_ns: float

    @property
    def key(self) -> Hashable:
        """Return what streams that stand together have in common."""
        return self.sending.kind, self.trips_bytes, self.hardware_ns, self.hardware_bound_ns


def software_parts(rows: Iterable[StreamRow], measured: Sequence[SoftwareLatencies]) -> SoftwareParts | None:
    """Return the software parts of streams that a target received.

    Of several sizes of round trips each stream takes the nearest, of two as near the first.

    Args:
        rows: The streams; those without samples are left out.
        measured: Round trips of the same target, one a size.

    Returns:
        None: nothing was measured, or the run does not say what machine each producer has.
    """
    if not any(each.facts.producers for each in measured):
        return None
    told: dict[Hashable, list[tuple[StreamRow, StreamResult, _Source]]] = {}
    untold: dict[Kind | None, list[StreamResult]] = {}
    for row in rows:
        stream = row.stream
        if stream is None or not stream.received_minus_sent.n:
            continue
        source = _nearest(measured, stream)
        if source is not None:
            told.setdefault((row.kind, source.key), []).append((row, stream, source))
        else:
            untold.setdefault(_kind_of(measured, stream.producer), []).append(stream)
    parts = [_part(own) for own in told.values()]
    kinds = list(dict.fromkeys(each.kind for each in parts))
    return SoftwareParts(
        tuple(sorted(parts, key=lambda each: kinds.index(each.kind))),
        tuple(UntoldStreams(_ids(own), _numbers(own), kind) for kind, own in untold.items()),
    )


def _nearest(measured: Iterable[SoftwareLatencies], stream: StreamResult) -> _Source | None:
    """Return the round trips whose size is nearest to a stream's, of those that tell both of its ends."""
    sources = [source for each in measured if (source := _source(each, stream.producer)) is not None]
    return min(sources, key=lambda each: abs(each.trips_bytes - stream.size_bytes), default=None)


def _source(measured: SoftwareLatencies, number: int) -> _Source | None:
    facts = measured.facts
    latencies = {each.kind: each for each in measured.estimate.latencies}
    producer = next((each for each in facts.producers or () if each.number == number), None)
    if producer is None or not facts.devices:
        return None
    sending, receiving = (
        latencies.get((each.hardware, each.software)) for each in (producer, facts.devices[0])
    )
    if sending is None or receiving is None:
        return None
    bounds = producer.hardware_bounds
    hardware_ns = None if bounds is None else producer.hardware_ns / 2
    return _Source(
        facts.size_bytes, sending, receiving, hardware_ns, sum(each.ns for each in bounds or ()) / 2
    )


def _kind_of(measured: Iterable[SoftwareLatencies], number: int) -> Kind | None:
    listed = (each for one in measured for each in one.facts.producers or ())
    return next(((each.hardware, each.software) for each in listed if each.number == number), None)


def _part(own: Sequence[tuple[StreamRow, StreamResult, _Source]]) -> SoftwarePart:
    rows, streams, sources = zip(*own, strict=True)
    sizes_bytes = [each.size_bytes for each in streams]
    source: _Source = sources[0]
    return SoftwarePart(
        transport=rows[0].kind,
        sizes_bytes=(min(sizes_bytes), max(sizes_bytes)),
        streams=_ids(streams),
        producers=_numbers(streams),
        kind=source.sending.kind,
        trips_bytes=source.trips_bytes,
        latency=merge([each.received_minus_sent for each in streams]),
        expanded_ns=max(row.record.uncertainty.expanded for row in rows),
        sending=OneWay.of(source.sending),
        receiving=OneWay.of(source.receiving),
        hardware_ns=source.hardware_ns,
        hardware_bound_ns=source.hardware_bound_ns,
    )


def _ids(streams: Iterable[StreamResult]) -> tuple[int, ...]:
    return tuple(each.id for each in streams)


def _numbers(streams: Iterable[StreamResult]) -> tuple[int, ...]:
    return tuple(sorted({each.producer for each in streams}))
