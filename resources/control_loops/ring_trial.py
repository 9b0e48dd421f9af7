# SPDX-License-Identifier: Apache-2.0
"""Messages round a ring: source and sink on the target, nodes on producers, each recorded.

The clock of each machine is asked all the while by the node of the reference clock, unless it is that clock.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from hw.bench import BenchSpec, NodeKind, TargetSpec
from hw.errors import CapabilityError
from hw.open_bench import OpenBench
from reports.control_loops.ring_evidence import FIRST_PORT, KnownHold, KnownPoll, RingFacts, write_ring
from resources.clock_sync.tai_utc import common_tai_utc_s
from resources.control_loops.loads import end_load, load_of_loop, start_load
from resources.control_loops.ring_kernels import record_kernels
from resources.timeline.clocks_asked import ENDING_S, ask_clocks
from resources.timeline.recorded_program import RecordedProgram, collect_recorded, start_recorded
from resources.timeline.stimulus_trial import WITNESS_MAX_MS, least_way_ns
from resources.tools.experiment import Experiment
from resources.tools.witness import add_witness

TOOL = "bw-loop"
POINTS = ("ring",)

NODES = 3
"""Between source and sink: four machines, as in the paper (3.3)."""
THIRD_TO_FOURTH = slice(2, 4)
"""Of the places of a ring: between them the paper's bulk data go."""
STARTING_S = 60
"""How long programs may take until the first message, beside a load that began before them."""
TIMEOUT_MS = 20_000
"""How long a program waits for its neighbours: a machine may be away."""


@dataclass(frozen=True)
class RingMessages:
    """What goes round.

    Attributes:
        writes: Of a message: 1, or 2: header, then content.
        nagle: Small writes wait until what was written before is acknowledged.
        hold: Of one node; None: none holds messages.
        poll: Likewise; None: all wait for their messages.
        udp: As datagrams; else over TCP.
        kernel_stamps: The kernels stamp coming and going, where they can.
        nodes: Programs between source and sink.
        load: Kind of the load meanwhile; empty: none.
        load_mbit: Of a network's, in Mbit/s of payload.
        clock: What corrects the target's clock meanwhile, for the evidence; empty: nothing.
        kernel_events: Who has the processors of all machines is recorded, where their kernels permit it.
    """

    count: int
    interval_us: int
    size_bytes: int
    writes: int
    nagle: bool = False
    hold: KnownHold | None = None
    poll: KnownPoll | None = None
    udp: bool = False
    kernel_stamps: bool = True
    nodes: int = NODES
    load: str = ""
    load_mbit: int = 0
    clock: str = ""
    kernel_events: bool = False

    def words(self, place: int, last: int) -> list[str]:
        """Return the options of the program at a place of the ring."""
        found = ["--udp"] if self.udp else []
        found += ["--kernel-stamps"] if self.kernel_stamps else []
        if place == 0:
            found += ["--count", str(self.count), "--interval-us", str(self.interval_us)]
            found += ["--size-bytes", str(self.size_bytes)]
        if place < last:
            found += ["--writes", str(self.writes), *(["--nagle"] if self.nagle else [])]
        if self.hold is not None and self.hold.node == place:
            found += ["--hold-us", str(self.hold.hold_us), "--hold-turn", str(self.hold.turn)]
        if self.poll is not None and self.poll.node == place:
            found += ["--poll-us", str(self.poll.poll_us)]
        return found


def ring_nodes(spec: BenchSpec, target: TargetSpec, nodes: int = NODES) -> list[tuple[str, str]]:
    """Return node and address of each program in its order; the first and the last are the target's.

    Producers that are machines of their own come first: their clocks differ.

    Raises:
        CapabilityError: The bench has too few producers besides the target.
    """
    producers = [each for _, each in sorted(spec.producers.items()) if each.node != target.node]
    own = [each for each in producers if spec.nodes[each.node].kind is NodeKind.LABGRID]
    between = [*own, *(each for each in producers if each not in own)][:nodes]
    if len(between) < nodes:
        raise CapabilityError(
            f"bench {spec.name}: {len(between)} producers besides {target.node}: a ring needs {nodes}"
        )
    end = (target.node, target.test_address)
    return [end, *((each.node, each.address) for each in between), end]


def measure_ring(bench: OpenBench, target: TargetSpec, messages: RingMessages, folder: Path) -> RingFacts:
    """Send messages from the target round a ring of producers and back to it, and write the evidence.

    Args:
        bench: An open bench.
        target: Where source and sink are.
        messages: What goes round.
        folder: Evidence goes here.

    Raises:
        CapabilityError: The bench has too few producers, or a node cannot record.
        BenchError: A node or a tool does not work.
        MeasurementError: A tool came to no result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spec = bench.spec
    places = ring_nodes(spec, target, messages.nodes)
    nodes = list(dict.fromkeys(node for node, _ in places))
    bench.power_on([*nodes, spec.clocks[spec.reference_clock].node])
    tai_utc_s = common_tai_utc_s(bench, nodes, folder)
    within_s = messages.count * messages.interval_us / 1e6 + ENDING_S
    lasts_s = math.ceil(within_s) + STARTING_S
    what = load_of_loop(messages.load, lasts_s, target.node, places[THIRD_TO_FOURTH], messages.load_mbit)
    with ExitStack() as stack:
        kernels = record_kernels(stack, bench, nodes) if messages.kernel_events else None
        experiment = stack.enter_context(Experiment(bench))
        asked = ask_clocks(experiment, nodes, folder)
        add_witness(experiment, folder / "witness", WITNESS_MAX_MS)
        load = start_load(bench, experiment, what, folder)
        begun = _start(experiment, places, messages, tai_utc_s, folder)
        ends = [
            collect_recorded(experiment, each, within_s, asked.exchanges.get(each.node), folder)
            for each in begun
        ]
        known = end_load(load, folder)
        asked.end()
        recorded = kernels.end(folder) if kernels else None
    found = RingFacts(
        target.kind,
        tuple(ends),
        "udp" if messages.udp else "tcp",
        messages.writes,
        messages.nagle,
        messages.size_bytes,
        messages.count,
        messages.interval_us,
        tai_utc_s,
        tuple(
            least_way_ns(bench, one, other, messages.size_bytes) if one != other else 0
            for (one, _), (other, _) in pairwise(places)
        ),
        messages.hold,
        known,
        messages.clock or None,
        recorded,
        messages.poll,
    )
    write_ring(folder, found)
    return found


def _start(
    experiment: Experiment,
    places: Sequence[tuple[str, str]],
    messages: RingMessages,
    tai_utc_s: int,
    folder: Path,
) -> list[RecordedProgram]:
    """Start all programs, the sink first: each finds the next one there. Return them in their order."""
    last = len(places) - 1
    begun: list[RecordedProgram] = []
    for place in range(last, -1, -1):
        node, address = places[place]
        words = ["ring", *messages.words(place, last)]
        if place:
            words += ["--from", f"{address}:{FIRST_PORT + place}"]
        if place < last:
            words += ["--to", f"{places[place + 1][1]}:{FIRST_PORT + place + 1}"]
        begun.append(
            start_recorded(
                experiment,
                _name(place, last),
                node,
                POINTS,
                words,
                folder,
                TOOL,
                tai_utc_s=tai_utc_s,
                timeout_ms=TIMEOUT_MS,
            )
        )
    return begun[::-1]


def _name(place: int, last: int) -> str:
    return "source" if place == 0 else "sink" if place == last else f"node-{place}"
