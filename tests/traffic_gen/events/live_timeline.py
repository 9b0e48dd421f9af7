# SPDX-License-Identifier: Apache-2.0
"""A replay between two namespaces as a timeline of two nodes whose clocks are made to run apart.

Both nodes are this machine, so the truth is known: one counter stamps all events, and one reading of a clock
beside it says when they were. What a node shows of itself is put through a line of its own before anything is
worked out of it, stamps of events and of exchanges alike, so that its clock is off in time and rate by what
the line says. The timeline has only that, and the exchanges with the other node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from reports.timeline.clock_record import ClockRecord, Times, nominal_ns
from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_streams
from reports.timeline.global_time import GlobalTime, Places
from reports.timeline.processing.stream_events import clock_record, frequency_hz, readings_of
from reports.timeline.sources import chained_record, read_two_way_record
from tests.traffic_gen.events.recording import recorder
from tests.traffic_gen.lab import Lab, Plan

BEYOND_NS = 2_000_000_000


@dataclass(frozen=True)
class WrongClock:
    """A line that a node's clock is put through: at `since_ns` off by some ns, then by some ppm."""

    off_ns: int
    rate_ppm: float
    since_ns: int

    def shown(self, true_ns: Times) -> Times:
        """Return what the clock shows at some times."""
        return (
            true_ns + self.off_ns + np.rint((true_ns - self.since_ns) * self.rate_ppm / 1e6).astype(np.int64)
        )


@dataclass(frozen=True)
class LiveReplay:
    """What two nodes recorded.

    Attributes:
        sender: Events of the node whose clock is the reference.
        receiver: Events of the other one.
        exchanges: The answer of its exchanges with the reference.
    """

    sender: EventStream
    receiver: EventStream
    exchanges: Path

    def truth_ns(self, stream: EventStream) -> Times:
        """Return when events were, by the one counter and the clock that was read beside it by the sender."""
        record = clock_record("truth", self.sender, "realtime", 37)
        hz, _ = frequency_hz(self.sender, readings_of(self.sender, "realtime"))
        places = GlobalTime(record).place(nominal_ns(stream.ticks, hz), BEYOND_NS)
        assert places.known.all()
        return places.tai_ns

    def placed(self, clock: WrongClock) -> Places:
        """Return the places of the receiver's events by its exchanges, its clock put through a line."""
        own = clock_record("receiver", self.receiver, "realtime", 37)
        own = replace(own, tai_ns=clock.shown(own.tai_ns))
        two_way = read_two_way_record(self.exchanges, "receiver")
        two_way = replace(two_way, local_ns=clock.shown(two_way.local_ns))
        record: ClockRecord = chained_record(own, GlobalTime(two_way))
        hz, _ = frequency_hz(self.receiver, readings_of(self.receiver, "realtime"))
        return GlobalTime(record).place(nominal_ns(self.receiver.ticks, hz), BEYOND_NS)

    def sent(self) -> Places:
        """Return the places of the sender's events, whose clock is the reference."""
        record = clock_record("sender", self.sender, "realtime", 37)
        hz, _ = frequency_hz(self.sender, readings_of(self.sender, "realtime"))
        return GlobalTime(record).place(nominal_ns(self.sender.ticks, hz), BEYOND_NS)


def record_replay(lab: Lab, tool: str, plan: Plan, folder: Path) -> LiveReplay:
    """Play a plan while both programs record and the receiver exchanges with the sender's clock."""
    events = folder / "events"
    total_ms = plan.warmup_ms + plan.duration_ms + 3000
    lab.serve().wait_ready()
    with recorder(tool, events, "--ring-kib", "16384") as (_, environment):
        exchanges = lab.exchange("--duration-ms", str(total_ms), "--interval-ms", "50")
        path = plan.write(folder / "plan.toml")
        recv = lab.recv(path, environment=environment)
        recv.wait_ready()
        send = lab.send(path, environment=environment)
        send.result()
        recv.result()
        exchanges.result()
    by_pid = {stream.pid: stream for stream in read_event_streams(events)}
    return LiveReplay(by_pid[send.process.pid], by_pid[recv.process.pid], exchanges.log)
