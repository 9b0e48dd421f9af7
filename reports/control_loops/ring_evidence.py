# SPDX-License-Identifier: Apache-2.0
"""A ring of programs: the evidence.

The folder holds `ring.json` (this file's dataclasses), and of each program the files of `RecordedEnd`: the
answer of `bw-loop ring`, the stream of its points, and the exchanges with its machine's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reports.control_loops.load import LOAD_FILE, KnownLoad
from reports.errors import RecordError
from reports.record.codec import omit_none
from reports.record.document import read_document, write_document
from reports.timeline.recorded_end import RecordedEnd, require_plain
from reports.tools.answers import Reader, last_result

SCHEMA = "benchwright.control_ring/1"
FOLDER = "control_loops"
RING_FILE = "ring.json"
FIRST_PORT = 9650
"""A program of the ring listens at this one and its place: the source is 0."""
HOLD_FOLDER = "hold"
"""Beside `ring.json`: a ring in which a node holds messages by turns."""
NAGLE_FOLDER = "nagle"
"""Likewise: one in which small writes wait for what was written before."""


@dataclass(frozen=True)
class KnownHold:
    """One node holds each message of each second turn of so many before it writes it.

    Attributes:
        node: Its place in the ring: the source is 0.
    """

    node: int
    hold_us: int
    turn: int


@dataclass(frozen=True)
class KnownPoll:
    """One node looks for messages at the places of a grid of its own clock instead of waiting for them.

    Attributes:
        node: Its place in the ring: the source is 0.
        poll_us: From one look to the next.
    """

    node: int
    poll_us: int


@dataclass(frozen=True)
class KernelNode:
    """A node of the ring whose kernel was recorded.

    Attributes:
        cpus: That its programs may use; empty: all.
        congestion: TCP's congestion control there; empty: not known.
    """

    node: str
    cpus: tuple[int, ...] = ()
    congestion: str = ""


@dataclass(frozen=True)
class Emulator:
    """A thread of a kernel that is part of another node's machine: `vcpu0`, `main-loop`."""

    node: str
    name: str
    tid: int


@dataclass(frozen=True)
class RecordedKernel:
    """A kernel that was recorded meanwhile.

    Attributes:
        file: Its recording, by the trace clock `tai`.
        nodes: Of the ring, that it runs.
        emulators: Of other nodes of the ring.
    """

    file: str
    nodes: tuple[KernelNode, ...]
    emulators: tuple[Emulator, ...] = ()


@dataclass(frozen=True)
class RingFacts:
    """What `ring.json` holds.

    Attributes:
        target: Its kind.
        ends: The programs in their order: source, nodes, sink.
        writes: Of a message: 1, or 2: header, then content.
        nagle: Small writes wait until what was written before is acknowledged.
        size_bytes: Of a message, header and content.
        interval_us: From one message to the next.
        least_ns: Of each hop, what cables and switches take at least.
        hold: None: no node holds messages.
        load: Meanwhile; None: there was none.
        clock: What corrected the target's clock meanwhile; None: nothing that is known.
        kernels: That were recorded meanwhile; None: none.
        poll: None: all wait for their messages.
    """

    target: str
    ends: tuple[RecordedEnd, ...]
    transport: Literal["tcp", "udp"]
    writes: int
    nagle: bool
    size_bytes: int
    count: int
    interval_us: int
    tai_utc_s: int
    least_ns: tuple[int, ...]
    hold: KnownHold | None = omit_none()  # noqa: RUF009 - a field
    load: KnownLoad | None = omit_none()  # noqa: RUF009 - a field
    clock: str | None = omit_none()
    kernels: tuple[RecordedKernel, ...] | None = omit_none()
    poll: KnownPoll | None = omit_none()  # noqa: RUF009 - a field
    schema: str = SCHEMA

    @property
    def files(self) -> tuple[str, ...]:
        """Return the names of all files beside `ring.json`, each once."""
        names = [name for each in self.ends for name in each.files]
        kernels = [each.file for each in self.kernels or ()]
        return tuple(dict.fromkeys([*names, *([LOAD_FILE] if self.load else []), *kernels]))

    def is_corrected(self, end: RecordedEnd) -> bool:
        """Tell whether something corrects the clock of a program's machine meanwhile."""
        return self.clock is not None and end.node == self.ends[0].node

    @property
    def hops(self) -> int:
        """Return from how many programs to the next one a message goes."""
        return len(self.ends) - 1


@dataclass(frozen=True, slots=True)
class RingAnswer:
    """The answer of `bw-loop ring`; numbers are messages.

    Attributes:
        of: How many there were, by the last message of all.
        disordered: Came later than one with a higher number.
        broken: Datagrams that are no message.
        held_ns: How long it held messages: median of those that it did; None: it held none.
    """

    complete: bool
    of: int
    read: int
    written: int
    missing: int
    double: int
    disordered: int
    broken: int
    held_ns: int | None


def write_ring(folder: Path, found: RingFacts) -> Path:
    """Write `ring.json` and return its path."""
    return write_document(folder / RING_FILE, found)


def load_ring_facts(folder: Path) -> RingFacts:
    """Read `ring.json`; raises RecordError: names the key."""
    found = read_document(RingFacts, folder / RING_FILE, SCHEMA)
    require_plain(found.files, RING_FILE)
    if len(found.ends) < 2 or found.ends[0].node != found.ends[-1].node:
        raise RecordError(f"{RING_FILE}: ends: need source and sink, on one node")
    if len({each.events for each in found.ends}) < len(found.ends):
        raise RecordError(f"{RING_FILE}: ends: two have one stream")
    if len(found.least_ns) != found.hops or min(found.least_ns) < 0:
        raise RecordError(f"{RING_FILE}: least_ns: need one for each of {found.hops} hops, 0 and more")
    if min(found.size_bytes, found.count, found.interval_us) < 1:
        raise RecordError(f"{RING_FILE}: need size_bytes, count, interval_us >= 1")
    hold = found.hold
    if hold is not None and not (0 < hold.node < found.hops and hold.hold_us > 0 and hold.turn > 0):
        raise RecordError(f"{RING_FILE}: hold: needs a node between source and sink; hold_us, turn >= 1")
    poll = found.poll
    if poll is not None and not (0 < poll.node <= found.hops and poll.poll_us > 0):
        raise RecordError(f"{RING_FILE}: poll: needs a node behind the source; poll_us >= 1")
    _require_kernels(found)
    return found


def _require_kernels(found: RingFacts) -> None:
    """Raise RecordError, which names the key, where the recorded kernels are not those of a ring."""
    where, there = f"{RING_FILE}: kernels", {each.node for each in found.ends}
    kernels = found.kernels or ()
    names = [each.node for kernel in kernels for each in kernel.nodes]
    if not there.issuperset(names) or len(set(names)) < len(names):
        raise RecordError(f"{where}.nodes: {names}; each of {sorted(there)} may stand once")
    for kernel in kernels:
        if not kernel.nodes:
            raise RecordError(f"{where}.nodes: {kernel.file} is of none")
        for node in kernel.nodes:
            if min(node.cpus, default=0) < 0 or len(set(node.cpus)) < len(node.cpus):
                raise RecordError(f"{where}.nodes.cpus: {list(node.cpus)}; each 0 and more, once")
        for each in kernel.emulators:
            if each.node not in there or not each.name or each.tid < 1:
                raise RecordError(f"{where}.emulators: {each}; need a node of the ring, a name, tid >= 1")


def load_answer(folder: Path, end: RecordedEnd) -> RingAnswer:
    """Read the answer of a program; raises RecordError: names file and key."""
    spec: dict[str, tuple[type, ...]] = {"complete": (bool,)}
    numbers = "of", "read", "written", "missing", "double", "disordered", "broken"
    spec |= dict.fromkeys(numbers, (int,))
    reader = Reader(last_result(folder / end.answer), end.answer)
    held = reader.summary("held").quantile(0.5)
    return RingAnswer(held_ns=held.value_ns if held else None, **reader.fields(spec))
