# SPDX-License-Identifier: Apache-2.0
"""Messages round a ring, on the timeline of all its machines: every hop, every node, and the whole.

A hop reaches from the write of one program to the read of the next one: it needs the timeline. What a node
takes, from its read to its write, and the whole, from the source's write to the sink's read on one machine,
need that machine's counter alone. On the wire a hop reaches from the kernel's stamp of the last frame that
left to that of the last frame that came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reports.control_loops.capability import LOOP_WIRE_DELAY, WHOLE
from reports.control_loops.load import AchievedLoad, read_load
from reports.control_loops.loop import Stretch, leg_stretch, named_stretch, own_stretch
from reports.control_loops.ring_evidence import RingAnswer, RingFacts, load_answer, load_ring_facts
from reports.errors import RecordError
from reports.timeline.clock_record import NS_PER_S, ClockRecord, Times
from reports.timeline.contradictions import Causality, Messages, causality
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_stream
from reports.timeline.global_time import Break, Places
from reports.timeline.leg import Leg, PlacedEnd, matched_leg, places_at
from reports.timeline.processing.stream_events import frequency_hz, readings_of
from reports.timeline.recorded_end import event_places

RUN_UP = 10
"""Messages at the beginning that do not count: connections and caches are cold."""
READ, WRITE = "ring.read", "ring.write"
KERNEL_READ, KERNEL_WRITTEN = "ring.kernel_read", "ring.kernel_written"


@dataclass(frozen=True, eq=False)
class Ring:
    """What was found.

    Attributes:
        facts: Of the measurement.
        answers: Of the programs.
        hops: From each program to the next one, by the timeline.
        nodes: What each program between source and sink takes, by its counter.
        whole: By the timeline.
        whole_own_ns: The same messages by the one counter of source and sink, shape (n,).
        wire_hops: By the kernels' stamps; those of messages that have both; empty: nobody stamps.
        wire_whole: Likewise; None: nobody stamps.
        clocks: Of each machine its record on the reference, in the order of the programs.
        breaks: What happened to a clock meanwhile, with its node.
        lost_events: That a ring of bw-events had no room for.
        unaccounted: Messages whose way is not known, over all hops.
        load: What a load meanwhile came to; None: there was none.
    """

    facts: RingFacts
    answers: tuple[RingAnswer, ...]
    hops: tuple[Leg, ...]
    nodes: tuple[Stretch, ...]
    whole: Leg
    whole_own_ns: Times
    wire_hops: tuple[Leg, ...]
    wire_whole: Leg | None
    clocks: tuple[ClockRecord, ...]
    breaks: tuple[tuple[str, Break], ...]
    lost_events: int
    unaccounted: int
    load: AchievedLoad | None = None

    @property
    def complete(self) -> bool:
        """Tell whether every program came to the last message."""
        return all(each.complete for each in self.answers)

    @property
    def causality(self) -> Causality:
        """Return messages that were read before they can have been written; on one machine none can."""
        return causality(
            [
                Messages(leg.sender, leg.receiver, leg.sent, leg.received, least_ns)
                for leg, least_ns in zip(self.hops, self.facts.least_ns, strict=True)
                if leg.sender != leg.receiver
            ]
        )

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """Return the whole, and what it consists of in the order of the ring, from program to program."""
        whole = Stretch(WHOLE, self.whole.number, self.whole_own_ns, None)
        hops = [leg_stretch(each) for each in self.hops]
        between = [part for pair in zip(hops, self.nodes, strict=False) for part in pair]
        return (whole, *between, hops[-1])

    @property
    def wire_stretches(self) -> tuple[Stretch, ...]:
        """Return the whole and the hops on the wire; empty: nobody stamps."""
        if self.wire_whole is None:
            return ()
        return leg_stretch(self.wire_whole), *map(leg_stretch, self.wire_hops)

    def stretch(self, quantity: str, name: str) -> Stretch:
        """Return a stretch of a quantity by its name; raises RecordError: says which there are."""
        every = self.wire_stretches if quantity == LOOP_WIRE_DELAY else self.stretches
        return named_stretch(every, quantity, name)

    def missing(self, stretch: Stretch) -> int:
        """Return how many messages that should count have no time there, from program to program."""
        return max(0, self.facts.count - RUN_UP) - len(named_stretch(self.stretches, "", stretch.name))

    def unstamped(self, stretch: Stretch) -> int:
        """Return how many messages came without a stamp of their own: of several in a frame one has it."""
        return max(0, len(named_stretch(self.stretches, "", stretch.name)) - len(stretch))


def load_ring(folder: Path) -> Ring:
    """Read the evidence and place all events; raises RecordError, which names the file."""
    facts = load_ring_facts(folder)
    answers = tuple(load_answer(folder, end) for end in facts.ends)
    streams = [read_event_stream(folder / end.events) for end in facts.ends]
    times = [
        end.time(folder, stream, facts.tai_utc_s, is_corrected=facts.is_corrected(end))
        for end, stream in zip(facts.ends, streams, strict=True)
    ]
    placed = [
        PlacedEnd(end, stream, event_places(stream, time))
        for end, stream, time in zip(facts.ends, streams, times, strict=True)
    ]
    hops = tuple(
        matched_leg(f"hop {number}", (one, WRITE), (other, READ), RUN_UP)
        for number, (one, other) in enumerate(pairwise(placed), start=1)
    )
    whole = matched_leg(WHOLE, (placed[0], WRITE), (placed[-1], READ), RUN_UP)
    nodes = tuple(
        own_stretch(f"node {number}", stream, READ, WRITE, RUN_UP)
        for number, stream in enumerate(streams[1:-1], start=1)
    )
    wire_hops, wire_whole = _on_the_wire(folder, facts, streams)
    clocks = {end.node: time for end, time in zip(facts.ends, times, strict=True)}
    return Ring(
        facts,
        answers,
        hops,
        nodes,
        whole,
        _one_counter(streams, whole.number),
        wire_hops,
        wire_whole,
        tuple(time.record for time in clocks.values()),
        tuple((node, one) for node, time in clocks.items() for one in time.breaks),
        sum(each.lost for each in streams),
        _unaccounted(answers, streams),
        read_load(folder, facts.load) if facts.load else None,
    )


def _one_counter(streams: Sequence[EventStream], number: Times) -> Times:
    """Return what the whole took by the counter of source and sink, which is one, shape of `number`.

    Their ticks are subtracted before they become ns: each program tells the counter's frequency a little
    otherwise, which days after the machine's start are microseconds.
    """
    source, sink = streams[0], streams[-1]
    if (source.counter, source.counter_hz) != (sink.counter, sink.counter_hz):
        raise RecordError(f"{source.program}: source and sink do not have one counter")
    ends: list[NDArray[np.uint64]] = []
    for stream, point in ((source, WRITE), (sink, READ)):
        own = stream.of(point)
        order = np.argsort(stream.tag[own], kind="stable")
        ends.append(stream.ticks[own][order][np.searchsorted(stream.tag[own][order], number)])
    hz, _ = frequency_hz(source, readings_of(source, "realtime"))
    passed = ends[1].astype(np.int64) - ends[0].astype(np.int64)
    return np.rint(passed * (NS_PER_S / hz)).astype(np.int64)


def _on_the_wire(
    folder: Path, facts: RingFacts, streams: Sequence[EventStream]
) -> tuple[tuple[Leg, ...], Leg | None]:
    """Return the hops and the whole by the kernels' stamps; nothing where a program has none."""
    left: list[tuple[Times, Places]] = []
    came: list[tuple[Times, Places]] = []
    for kept, point, ends in ((left, KERNEL_WRITTEN, slice(0, -1)), (came, KERNEL_READ, slice(1, None))):
        for end, stream in zip(facts.ends[ends], streams[ends], strict=True):
            own = stream.of(point)
            if not own.size:
                return (), None
            stamps_ns = np.ascontiguousarray(stream.data(own)).view(np.int64).reshape(-1)
            number, first = np.unique(stream.tag[own].astype(np.int64), return_index=True)
            kept.append(
                (
                    number,
                    end.stamp_places(
                        folder, stamps_ns[first], facts.tai_utc_s, is_corrected=facts.is_corrected(end)
                    ),
                )
            )
    legs = [_wire_leg(f"hop {at + 1}", facts, (at, left[at]), (at + 1, came[at])) for at in range(facts.hops)]
    return tuple(legs), _wire_leg(WHOLE, facts, (0, left[0]), (facts.hops, came[-1]))


def _wire_leg(
    name: str,
    facts: RingFacts,
    sent: tuple[int, tuple[Times, Places]],
    received: tuple[int, tuple[Times, Places]],
) -> Leg:
    (sender, (left, out)), (receiver, (came, back)) = sent, received
    number, first, last = np.intersect1d(left, came, assume_unique=True, return_indices=True)
    counts = out.known[first] & back.known[last] & (number >= RUN_UP)
    return Leg(
        name,
        facts.ends[sender].node,
        facts.ends[receiver].node,
        number[counts],
        places_at(out, first[counts]),
        places_at(back, last[counts]),
    )


def _unaccounted(answers: Sequence[RingAnswer], streams: Sequence[EventStream]) -> int:
    """Return how many messages of all hops went a way that answers and events do not say alike.

    Each message that was written was read by the next one, or that one says that it is missing; none was
    read that was not written; each program has as many events as its answer says.
    """
    found = 0
    for answer, stream in zip(answers, streams, strict=True):
        found += abs(stream.of(READ).size - answer.read) + abs(stream.of(WRITE).size - answer.written)
        found += answer.double
    for (before, behind), (out, back) in zip(pairwise(answers), pairwise(streams), strict=True):
        written, read = out.tag[out.of(WRITE)], back.tag[back.of(READ)]
        lost = np.setdiff1d(written, read).size
        found += np.setdiff1d(read, written).size
        found += abs(lost - (behind.missing - before.missing))
    return found
