# SPDX-License-Identifier: Apache-2.0
"""Stimulus and response between a producer's node and a target, recorded at both ends.

The clock of each end is asked all the while by the node of the reference clock, unless it is that clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hw.bench import TargetSpec
from hw.hardware_latency import round_trip
from hw.open_bench import OpenBench
from hw.protocols import Job
from reports.timeline.capability import TO_TARGET
from reports.timeline.legs_evidence import Card, KnownDelay, StimulusResponse, write_legs
from reports.timeline.recorded_end import RecordedEnd
from resources.clock_sync.command import clock_command
from resources.clock_sync.settings import SYSTEM_CLOCK
from resources.clock_sync.tai_utc import common_tai_utc_s
from resources.clock_sync.timecard import serve_timecards
from resources.clock_sync.trial import CLOCK_PRIORITY, FILTER_NS, timecard_of
from resources.timeline.clocks_asked import ENDING_S, LONGEST_MS, ask_clocks
from resources.timeline.recorded_program import (
    RecordedProgram,
    collect_recorded,
    producer_besides,
    start_recorded,
)
from resources.tools.experiment import Experiment
from resources.tools.witness import add_witness

PORT = 9640
POINTS = ("stimulus", "response")
TIMEOUT_MS = 10_000
"""How long an end waits for the other one: a machine may be away, and the client begins later."""
CARD = "card"
PAUSE_MAX_US = 20_000
"""Between readings of the card: a hundred a second take nothing from the target."""
WITNESS_MAX_MS = 86_400_000


@dataclass(frozen=True)
class Stimuli:
    """What is sent."""

    count: int
    interval_us: int
    size_bytes: int
    delay: KnownDelay | None = None

    def delay_words(self, is_server: bool) -> list[str]:
        """Return the options by which an end delays the leg that it sends."""
        if self.delay is None or is_server != (self.delay.leg == TO_TARGET):
            return []
        return ["--delay-send-us", str(self.delay.delay_us), "--delay-turn", str(self.delay.turn)]


@dataclass(frozen=True)
class _Lab:
    experiment: Experiment
    stimuli: Stimuli
    tai_utc_s: int
    folder: Path

    def start(self, name: str, node: str, words: Sequence[str]) -> RecordedProgram:
        """Start an end with its recorder; it is ready when this returns."""
        argv = ["stimulus", *words, *self.stimuli.delay_words(name == "server")]
        return start_recorded(
            self.experiment,
            name,
            node,
            POINTS,
            argv,
            self.folder,
            tai_utc_s=self.tai_utc_s,
            timeout_ms=TIMEOUT_MS,
        )

    def collect(self, end: RecordedProgram, within_s: float, exchanges: str | None) -> RecordedEnd:
        """Wait for an end, fetch what it has recorded, and return its part of the evidence."""
        return collect_recorded(self.experiment, end, within_s, exchanges, self.folder)


def measure_legs(
    bench: OpenBench, target: TargetSpec, stimuli: Stimuli, folder: Path, *, beside_card: bool = False
) -> StimulusResponse:
    """Send stimuli from a producer's node to the target and back, and write the evidence.

    Args:
        bench: An open bench.
        target: Where each is answered.
        stimuli: How many, and how often.
        folder: Evidence goes here.
        beside_card: The timecard in the target is read, too. It takes no part in the timeline.

    Raises:
        CapabilityError: The bench has no producer besides the target, a node cannot record, or the target has
            no timecard.
        BenchError: A node or a tool does not work.
        MeasurementError: A tool came to no result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spec = bench.spec
    producer = producer_besides(spec, target, "stimuli")
    nodes = [producer.node, target.node]
    bench.power_on([*nodes, spec.clocks[spec.reference_clock].node])
    tai_utc_s = common_tai_utc_s(bench, nodes, folder)
    card = timecard_of(target) if beside_card else None
    beside: list[Job] = []
    with ExitStack() as stack:
        experiment = stack.enter_context(Experiment(bench))
        if card is not None:
            stack.enter_context(serve_timecards(bench, [target.node], None, folder))
            beside.append(experiment.add(_compare(bench, target, card.clock, folder)))
            beside[0].wait_ready()
        asked = ask_clocks(experiment, nodes, folder)
        # It keeps this machine's processors awake on a virtual bench: a leg would have their wake-up in it.
        add_witness(experiment, folder / "witness", WITNESS_MAX_MS)
        lab = _Lab(experiment, stimuli, tai_utc_s, folder)
        words = ["--count", str(stimuli.count), "--interval-us", str(stimuli.interval_us)]
        words += ["--size-bytes", str(stimuli.size_bytes)]
        server = lab.start("server", producer.node, ["--serve", f"{producer.address}:{PORT}", *words])
        client = lab.start("client", target.node, ["--peer", f"{producer.address}:{PORT}"])
        within_s = stimuli.count * stimuli.interval_us / 1e6 + ENDING_S
        sent, answered = (
            lab.collect(each, within_s, asked.exchanges.get(each.node)) for each in (server, client)
        )
        asked.end()
        for job in beside:
            job.stop()
            experiment.collect(job, ENDING_S).require_done()
    found = StimulusResponse(
        target.kind,
        sent,
        answered,
        stimuli.size_bytes,
        stimuli.count,
        stimuli.interval_us,
        tai_utc_s,
        least_way_ns(bench, producer.node, target.node, stimuli.size_bytes),
        stimuli.delay,
        Card(f"{CARD}.ndjson", card.bound_ns) if card is not None else None,
    )
    write_legs(folder, found)
    return found


def _compare(bench: OpenBench, target: TargetSpec, card: str, folder: Path) -> Job:
    """Start holding the target's clock against its card, until it is stopped."""
    argv = clock_command(bench, target.node, "compare", device=SYSTEM_CLOCK, reference=card)
    argv += ["--read", "filtered", "--filter-ns", str(FILTER_NS), "--pause-max-us", str(PAUSE_MAX_US)]
    argv += ["--duration-ms", str(LONGEST_MS), "--priority", str(CLOCK_PRIORITY)]
    return bench.node(target.node).start(argv, folder / CARD)


def least_way_ns(bench: OpenBench, one: str, other: str, size_bytes: int) -> int:
    """Return what cables and switches between two nodes take at least, one way; 0: it is not known."""
    topology = bench.spec.topology
    if topology is None:
        return 0
    both = round_trip(topology, one, other, size_bytes)
    return max(0, (both.ns - sum(both.bounds_ns.values())) // 2)
