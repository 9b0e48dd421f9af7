# SPDX-License-Identifier: Apache-2.0
"""What may have had the time of a ring's messages, on the timeline, and where each message was.

Threads, softirqs and interrupts of each kernel that was recorded; the machine itself, held up; what it ran
instead of what emulates a node; the source's own clock, corrected; what TCP waited for; and the way from one
node to the next, as far as it took longer than usual. A kernel's events go by its TAI, which the exchanges of
its clock bring to the timeline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from reports.causes.emulator_waits import emulator_waits
from reports.causes.kernel_activity import kernel_activities
from reports.causes.suspects import Activity, Stay, Times, merged, stretches, without
from reports.causes.tcp_waits import NEVER, Connection, has_probes, tcp_waits
from reports.clock_sync.tai_utc import load_tai_utc
from reports.control_loops.pace import clock_lag_ns
from reports.control_loops.ring import Ring
from reports.control_loops.ring_evidence import FIRST_PORT, KernelNode, RecordedKernel
from reports.errors import RecordError
from reports.timeline.clock_record import NS_PER_S
from reports.timeline.event_stream_file import read_event_stream
from reports.timeline.global_time import Places
from reports.timeline.kernel_recording import Recording, load_recording
from reports.timeline.leg import Leg
from reports.timeline.recorded_end import event_places
from reports.tools.answers import last_result, witness_result

KERNEL_RING = "kernel-ring.gz"
"""Of the target, by the trace clock `tai`."""
WITNESS = "witness.ndjson"
BENCH = "bench"
PACE = "pace"
MACHINE = "the bench's machine, held up"
LEAST_NS = 100_000
"""By so much a way is longer than usual, or it is not told."""
WRITES = "ring.write", "ring.write_content"
HEADER_BYTES = 4

Placed = Callable[[Times], Times]


@dataclass(frozen=True)
class RingActivities:
    """What there is.

    Attributes:
        active: What was active.
        stays: Where each message of the whole was.
        unrecorded: By node, begin and end of stretches of which its kernel has nothing.
    """

    active: tuple[Activity, ...]
    stays: tuple[Stay, ...]
    unrecorded: Mapping[str, tuple[Times, Times]]


@dataclass(frozen=True)
class _Kernel:
    """A recording, and how its times come to the timeline."""

    facts: RecordedKernel
    recording: Recording
    placed: Placed

    @cached_property
    def by_cpu(self) -> Mapping[int, tuple[list[Activity], tuple[Times, Times]]]:
        """Return what each processor ran, and stretches of which nobody knows."""
        return {cpu: kernel_activities("", self.recording, cpus=(cpu,)) for cpu in self.recording.rings}

    @property
    def ran(self) -> Mapping[int, list[Activity]]:
        """Return what each processor ran."""
        return {cpu: found for cpu, (found, _) in self.by_cpu.items()}

    def activities(self, cpus: tuple[int, ...]) -> tuple[list[Activity], tuple[Times, Times]]:
        """Return what processors ran together, none: all of them, and stretches of which nobody knows."""
        if len(cpus) == 1 and cpus[0] in self.by_cpu:
            return self.by_cpu[cpus[0]]
        return kernel_activities("", self.recording, cpus=cpus or None)

    def place_of(self, node: str) -> tuple[str, tuple[int, ...]]:
        """Return where messages at a node are: nodes of one kernel and the same processors are one place."""
        cpus = next(each.cpus for each in self.facts.nodes if each.node == node)
        return ", ".join(each.node for each in self.facts.nodes if each.cpus == cpus), cpus

    def has(self, node: str) -> bool:
        """Tell whether it runs a node's programs."""
        return any(each.node == node for each in self.facts.nodes)

    @property
    def places(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return all of them."""
        return list(dict.fromkeys(self.place_of(each.node) for each in self.facts.nodes))


def ring_activities(ring: Ring, due: Times, folder: Path) -> RingActivities:
    """Return what may have had the time of messages that were due at some time, in ns, shape (n,).

    Raises:
        RecordError: The target's kernel was not recorded, or a recording cannot be read.
    """
    kernels = _kernels(ring, folder)
    stalled = _stalled(folder)
    active = [stalled]
    unrecorded: dict[str, tuple[Times, Times]] = {}
    waits = _emulator_waits(kernels)
    for kernel in kernels:
        for place, cpus in kernel.places:
            found, (begin, end) = kernel.activities(cpus)
            found = [replace(each, node=place) for each in found]
            end = np.where(end > 1 << 61, end, kernel.placed(end))
            unrecorded[place] = kernel.placed(begin), end
            # A processor that is held up still has whatever thread it had.
            held = stretches([stalled, *waits.get(place, [])])
            active += [without(_moved(each, kernel.placed), *held) for each in found]
            active += [without(each, stalled.begin_ns, stalled.end_ns) for each in waits.get(place, [])]
    lag_ns = clock_lag_ns(ring, due, folder)
    active.append(_clock(ring, due, lag_ns))
    # While a machine does not run, neither end of a hop can do anything, and nothing else counts there.
    held_on = {
        hop.name: [
            stalled,
            *waits.get(_place(kernels, hop.sender), []),
            *waits.get(_place(kernels, hop.receiver), []),
        ]
        for hop in ring.hops
    }
    tcp = {
        name: [without(each, *stretches(held_on[name])) for each in own]
        for name, own in _tcp_waits(ring, kernels, folder).items()
    }
    active += [each for own in tcp.values() for each in own]
    ways = _ways(ring)
    active += [without(way, *stretches([*tcp.get(way.node, []), *held_on[way.node]])) for way in ways]
    sent = {name: stretches(own) for name, own in tcp.items()}
    return RingActivities(tuple(active), tuple(_stays(ring, (due, due + lag_ns), kernels, sent)), unrecorded)


def _place(kernels: Sequence[_Kernel], node: str) -> str:
    """Return where messages at a node are; a node whose kernel was not recorded is a place by itself."""
    kernel = _kernel_of(kernels, node)
    return node if kernel is None else kernel.place_of(node)[0]


def _kernel_of(kernels: Sequence[_Kernel], node: str) -> _Kernel | None:
    """Return the kernel of a node; None: it was not recorded."""
    return next((each for each in kernels if each.has(node)), None)


def _moved(activity: Activity, placed: Placed) -> Activity:
    return replace(activity, begin_ns=placed(activity.begin_ns), end_ns=placed(activity.end_ns))


def _kernels(ring: Ring, folder: Path) -> list[_Kernel]:
    """Return the kernels that were recorded; raises RecordError."""
    target = ring.facts.ends[0].node
    facts = ring.facts.kernels
    if facts is None and (folder / KERNEL_RING).exists():
        facts = (RecordedKernel(KERNEL_RING, (KernelNode(target),)),)
    if not any(each.node == target for kernel in facts or () for each in kernel.nodes):
        raise RecordError(f"the kernel of {target} was not recorded: {KERNEL_RING} would tell")
    known = load_tai_utc(folder)
    kernels_s = {each.node: each.kernel_s for each in known.nodes} if known else {}
    found: list[_Kernel] = []
    for kernel in facts or ():
        ends = {each.node: each for each in ring.facts.ends}
        node = next((each.node for each in kernel.nodes if each.node in ends), None)
        if node is None:
            raise RecordError(f"{kernel.file}: of no node of the ring")
        if node not in kernels_s:
            raise RecordError(f"what the kernel of {node} takes for TAI - UTC is not known")
        corrected = ring.facts.is_corrected(ends[node])
        places = ends[node].stamp_placer(folder, ring.facts.tai_utc_s, is_corrected=corrected)
        placed = partial(_placed, places, -kernels_s[node] * NS_PER_S)
        found.append(_Kernel(kernel, load_recording(folder / kernel.file), placed))
    return found


def _placed(places: Callable[[Times], Places], offset_ns: int, trace_ns: Times) -> Times:
    return places(trace_ns + offset_ns).tai_ns


def _stalled(folder: Path) -> Activity:
    """Return when a processor of the bench's own machine was held up, by its witness; raises RecordError."""
    windows: Sequence[tuple[int, int, int]] = ()
    if (folder / WITNESS).exists():
        windows = witness_result(last_result(folder / WITNESS)).windows
    return Activity(MACHINE, BENCH, *merged([(first, last) for first, last, _ in windows]))


def _emulator_waits(kernels: Sequence[_Kernel]) -> dict[str, list[Activity]]:
    """Return by place what machines ran instead of what emulates its node."""
    found: dict[str, list[Activity]] = {}
    for kernel in kernels:
        for node in dict.fromkeys(each.node for each in kernel.facts.emulators):
            place = _place(kernels, node)
            tids = [each.tid for each in kernel.facts.emulators if each.node == node]
            found[place] = [
                replace(_moved(each, kernel.placed), name=f"{each.name}, of the machine below")
                for each in emulator_waits(place, kernel.recording, kernel.ran, tids)
            ]
    return found


def _tcp_waits(ring: Ring, kernels: Sequence[_Kernel], folder: Path) -> dict[str, list[Activity]]:
    """Return by hop what its connection waited for, where its sender's kernel was recorded.

    Raises:
        RecordError: What the sender recorded cannot be read.
    """
    found: dict[str, list[Activity]] = {}
    if ring.facts.transport != "tcp":
        return found
    for place, end in enumerate(ring.facts.ends[:-1]):
        kernel = _kernel_of(kernels, end.node)
        port = FIRST_PORT + place + 1
        if kernel is None or not has_probes(kernel.recording, port):
            continue
        stream = read_event_stream(folder / end.events)
        time = end.time(folder, stream, ring.facts.tai_utc_s, is_corrected=ring.facts.is_corrected(end))
        at_ns = event_places(stream, time).tai_ns
        sizes = (ring.facts.size_bytes,)
        if ring.facts.writes > 1:
            sizes = (HEADER_BYTES, ring.facts.size_bytes - HEADER_BYTES)
        written = sorted(
            (at, size, number)
            for point, size in zip(WRITES, sizes, strict=False)
            for at, number in zip(at_ns[stream.of(point)], stream.tag[stream.of(point)], strict=True)
        )
        at, size, number = np.array(written, np.int64).reshape(-1, 3).T
        node = next(each for each in kernel.facts.nodes if each.node == end.node)
        connection = Connection(
            port,
            ring.facts.nagle,
            node.congestion,
            at,
            np.cumsum(size),
            _came_ns(ring, place, number),
        )
        hop = f"hop {place + 1}"
        found[hop] = tcp_waits(f"TCP, {hop}", hop, kernel.recording, connection, kernel.placed)
    return found


def _came_ns(ring: Ring, place: int, number: Times) -> Times:
    """Return when messages came to the kernel at a hop's end, NEVER where it did not stamp, shape (n,)."""
    found = np.full(len(number), NEVER, np.int64)
    if ring.wire_hops and len(ring.wire_hops[place]):
        hop = ring.wire_hops[place]
        which = np.minimum(np.searchsorted(hop.number, number), len(hop) - 1)
        is_same = hop.number[which] == number
        found[is_same] = hop.received.tai_ns[which[is_same]]
    return found


def _ways(ring: Ring) -> list[Activity]:
    """Return by hop when messages were on their way for longer than usual; empty: nobody stamps."""
    found: list[Activity] = []
    for hop in ring.wire_hops:
        usual = int(np.median(hop.time_ns)) if len(hop) else 0
        longer = hop.time_ns > usual + LEAST_NS
        begin, end = hop.sent.tai_ns[longer] + usual, hop.received.tai_ns[longer]
        spans = merged(list(zip(begin.tolist(), end.tolist(), strict=True)))
        found.append(Activity(f"the way from {hop.sender} to {hop.receiver}", hop.name, *spans))
    return found


def _clock(ring: Ring, due: Times, lag_ns: Times) -> Activity:
    """Return when messages that were due waited until the source's own clock was so far."""
    waited = lag_ns > 0
    begin, end = due[waited], due[waited] + lag_ns[waited]
    spans = merged(list(zip(begin.tolist(), end.tolist(), strict=True)))
    return Activity(f"the clock of {ring.facts.ends[0].node}, corrected", PACE, *spans)


def _stays(
    ring: Ring,
    dues: tuple[Times, Times],
    kernels: Sequence[_Kernel],
    waits: Mapping[str, tuple[Times, Times]],
) -> list[Stay]:
    """Return where each message of the whole was: at each kernel, on each hop, and on the bench.

    At a program it is from when the one before has sent it, or from when it was due by the source's clock,
    until it is written, and then until the next one has read it. What waits in TCP needs no processor.
    """
    number = ring.whole.number
    hops = [_span(number, hop) for hop in ring.hops]
    found = [replace(each, node=hop.name) for each, hop in zip(hops, ring.hops, strict=True)]
    due, by_own_clock = (np.minimum(each, hops[0].begin_ns) for each in dues)
    found.append(Stay(PACE, due, by_own_clock))
    found.append(Stay(BENCH, due, np.maximum(hops[-1].end_ns, due)))
    sent = [_after(each.begin_ns, waits.get(hop.name)) for each, hop in zip(hops, ring.hops, strict=True)]
    for program, end in enumerate(ring.facts.ends):
        kernel = _kernel_of(kernels, end.node)
        if kernel is None:
            continue
        place = kernel.place_of(end.node)[0]
        before, behind = max(program - 1, 0), min(program, len(hops) - 1)
        u_ns = max(hops[before].u_ns, hops[behind].u_ns)
        if program == 0:
            found.append(Stay(place, by_own_clock, hops[0].begin_ns, u_ns))
        elif program < len(hops):
            begin = np.where(hops[before].end_ns > hops[before].begin_ns, sent[before], hops[behind].begin_ns)
            found.append(Stay(place, begin, hops[behind].begin_ns, u_ns))
        following = ring.facts.ends[min(program + 1, len(hops))].node
        if program in (0, len(hops)) or _place(kernels, following) != place:
            found.append(Stay(place, sent[behind], hops[behind].end_ns, u_ns))
    return found


def _after(written: Times, waits: tuple[Times, Times] | None) -> Times:
    """Return when what was written then was sent, by what its connection waited for, shape (n,)."""
    if waits is None or not len(waits[0]):
        return written
    begin, end = waits
    which = np.searchsorted(begin, written, side="right") - 1
    until = np.where(which >= 0, end[np.maximum(which, 0)], 0)
    return np.maximum(written, until)


def _span(number: Times, leg: Leg) -> Stay:
    """Return from when until when each message was on a hop; one without a place there was nowhere."""
    _, one, other = np.intersect1d(number, leg.number, assume_unique=True, return_indices=True)
    begin, end = (np.full(len(number), leg.sent.tai_ns[0] if len(leg) else 0, np.int64) for _ in range(2))
    begin[one], end[one] = leg.sent.tai_ns[other], leg.received.tai_ns[other]
    u_ns = float(np.median(leg.u_ns)) if len(leg) else 0.0
    return Stay("", begin, end, u_ns)
