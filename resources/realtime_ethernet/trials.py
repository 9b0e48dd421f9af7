# SPDX-License-Identifier: Apache-2.0
"""Trials of single messages between a producer's node and a target, through one network stack.

An echo and a sink stand on one CPU of the target, the echo at the node's priority, the sink at none; for
messages of more than one frame two more. In each
round every trial is made once; the two of a pair, without and with a bulk receiver beside, change places from
round to round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from hw.bench import ProducerSpec, TargetSpec
from hw.errors import BenchError, CapabilityError
from hw.open_bench import Nodes, OpenBench
from hw.protocols import Job, Node
from reports.realtime_ethernet.evidence import (
    ALONE,
    BESIDE,
    LATENCY,
    RING,
    RTDIP,
    THROUGHPUT,
    UDP,
    Messages,
    TracedTrial,
    Trial,
    write_messages,
)
from resources.network_stack import NetworkStack
from resources.realtime_ethernet.settings import SIZE_RANGE_BYTES, MessageTimes
from resources.tools.experiment import Experiment
from resources.tools.jobs import end_job
from resources.tools.kernel_recorder import SCHEDULING, KernelEvents, kernel_recorded
from resources.tools.witness import add_witness

TOOL = "bw-rtdip"
ECHO_PORT, SINK_PORT = 7790, 7791
PROBE_PORT, SOURCE_PORT = 7792, 7793
FRAGMENTS_ECHO_PORT, FRAGMENTS_SINK_PORT = 7794, 7795
STARTING_S = 20.0
BULK_LEAD_S = 0.1
"""The bulk receiver is at work before the probe begins."""
BULK_MS = WITNESS_MAX_MS = 86_400_000
"""Both are stopped when they are no longer needed."""
TIMEOUT_MS = 500
RUN_UP = 1
"""Round trips before each probe that do not count: beside a bulk receiver no way lies idle either."""
FRAGMENTS = ("--fragments",)
EACH = ("--each",)
LOW = ("--packets", "low", "--priority", "0")
TRACED_INTERVAL_US = 5_000
TRACE_BUFFER_KB = 24_576
"""Of about 33 bytes an event, seven hundred thousand: five seconds of a native target beside the bulk
receiver, and so a thousand trips."""
STEAL = 7
"""Place in the first line of /proc/stat, of eight that make up all time."""

Progress = Callable[[str], None]


class _StolenTime:
    """What a node's host takes of it from trial to trial, each of which begins where the last one ended."""

    def __init__(self, node: Node) -> None:
        """Begin now; raises BenchError as `stolen_and_all_ticks`."""
        self._node = node
        self._before = self._ticks()

    def since_the_last(self) -> tuple[int, int]:
        """Return the ticks that were stolen, and all, since this was last asked."""
        before, self._before = self._before, self._ticks()
        stolen, ticks = (end - begin for begin, end in zip(before, self._before, strict=True))
        return max(0, stolen), ticks

    def _ticks(self) -> tuple[int, int]:
        return stolen_and_all_ticks(self._node.run(["cat", "/proc/stat"]).stdout, self._node.name)


@dataclass(frozen=True)
class _Lab:
    """What all trials have in common.

    Attributes:
        peers: Of the target, by port, as the tools are told.
        probe: Where round trips begin.
        bulk: Where the bulk receiver's messages come from.
        stolen: Of the target.
    """

    experiment: Experiment
    stack: NetworkStack
    target: TargetSpec
    times: MessageTimes
    folder: Path
    peers: Mapping[int, str]
    probe: ProducerSpec
    bulk: ProducerSpec
    stolen: _StolenTime

    def sender(self, verb: str, producer: ProducerSpec, own_port: int, to_port: int) -> list[str]:
        """Return the command line of a program that sends to a port of the target."""
        node = producer.node
        argv = [self.experiment.bench.tool(node, TOOL), verb, "--peer", self.peers[to_port]]
        return [*argv, *local_arguments(self.stack, self.experiment.bench, node, producer.address, own_port)]

    def latency(self, size_bytes: int, trips: int, interval_us: int, run_up: int = 0) -> list[str]:
        """Return the command line of round trips at the node's priority."""
        priority = self.experiment.bench.node(self.probe.node).priority
        port = FRAGMENTS_ECHO_PORT if _in_fragments(size_bytes) else ECHO_PORT
        argv = self.sender("latency", self.probe, PROBE_PORT, port)
        argv += ["--count", str(trips), "--interval-us", str(interval_us), "--size-bytes", str(size_bytes)]
        argv += ["--run-up", str(run_up), *_fragments(size_bytes)]
        return [*argv, "--timeout-ms", str(TIMEOUT_MS), "--priority", str(priority)]

    def source(self, size_bytes: int, duration_ms: int) -> list[str]:
        """Return the command line of windows of messages at no priority."""
        port = FRAGMENTS_SINK_PORT if _in_fragments(size_bytes) else SINK_PORT
        argv = self.sender("source", self.bulk, SOURCE_PORT, port)
        argv += ["--size-bytes", str(size_bytes), "--duration-ms", str(duration_ms)]
        return [*argv, *_fragments(size_bytes), *LOW]


def _in_fragments(size_bytes: int) -> bool:
    """Say whether a message is of more than one frame, whatever the MTU: it goes to ends of its own."""
    return size_bytes > SIZE_RANGE_BYTES[1]


def _fragments(size_bytes: int) -> tuple[str, ...]:
    return FRAGMENTS if _in_fragments(size_bytes) else ()


def over_of(stack: NetworkStack) -> str:
    """Return by what a stack carries single messages."""
    return RTDIP if stack.message_arguments else UDP


def local_arguments(stack: NetworkStack, bench: Nodes, node: str, address: str, port: int) -> list[str]:
    """Return by what a program takes its own end: a port of RTDiP, or an address of UDP."""
    if over_of(stack) == RTDIP:
        return ["--local", str(port), *stack.words_on(bench, node, stack.message_arguments)]
    return ["--local", f"{address}:{port}"]


def stolen_and_all_ticks(text: str, where: str) -> tuple[int, int]:
    """Return the time that the machine's host has taken, and all time, of all processors (/proc/stat).

    Raises:
        BenchError: It does not say so.
    """
    words = text.split("\n", 1)[0].split()
    if words[:1] != ["cpu"] or len(words) <= STEAL + 1:
        raise BenchError(f"{where}: /proc/stat has no line `cpu` with eight numbers")
    ticks = [int(word) for word in words[1 : STEAL + 2]]
    return ticks[STEAL], sum(ticks)


def last_cpu(text: str, where: str) -> int:
    """Return the last CPU that a process may run on, by its /proc/PID/status; raises BenchError."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "Cpus_allowed_list":
            return int(value.strip().replace("-", ",").rpartition(",")[2])
    raise BenchError(f"{where}: /proc/self/status has no Cpus_allowed_list")


def measure_messages(
    bench: OpenBench,
    target: TargetSpec,
    stack: NetworkStack,
    interface: str,
    times: MessageTimes,
    folder: Path,
    progress: Progress,
) -> Messages:
    """Make all trials of all rounds and write the evidence.

    Args:
        bench: An open bench; the stack is on, target and producers, too.
        target: Where echo and sink are.
        stack: Through which messages go.
        interface: Of the target on the test network.
        times: How many messages.
        folder: Evidence goes here.
        progress: Called with a line of text now and then.

    Raises:
        CapabilityError: The bench has fewer than two producers, or the stack is loaded into bw-traffic alone.
        BenchError: A node or a tool does not work.
        MeasurementError: A tool came to no result.
    """
    if stack.preload:
        raise CapabilityError(
            f"network stack {stack.name} is loaded into bw-traffic alone:"
            " single messages would go by the kernel's"
        )
    producers = list(bench.spec.producers.values())
    if len(producers) < 2:
        raise CapabilityError(f"bench {bench.spec.name}: needs two producers, has {len(producers)}")
    folder.mkdir(parents=True, exist_ok=True)
    node = bench.node(target.node)
    cpu = last_cpu(node.run(["cat", "/proc/self/status"]).stdout, target.node)
    whom = target.test_address
    if over_of(stack) == RTDIP:
        whom = node.run(["cat", f"/sys/class/net/{interface}/address"]).stdout.strip()
    mark = "/" if over_of(stack) == RTDIP else ":"
    peers = {port: f"{whom}{mark}{port}" for _, port, _, _ in _ends(times, node.priority)}
    trials: list[Trial] = []
    with Experiment(bench) as experiment:
        probe, bulk, *_ = producers
        lab = _Lab(experiment, stack, target, times, folder, peers, probe, bulk, _StolenTime(node))
        # It keeps this machine's processors awake on a virtual bench.
        add_witness(experiment, folder / "witness", WITNESS_MAX_MS)
        _start_ends(lab, node, cpu)
        lab.stolen.since_the_last()
        for number in range(times.rounds):
            progress(f"round {number + 1} of {times.rounds}, stack {stack.name}")
            for kind, size_bytes in _trials_of(times, number):
                trials.append(_make(lab, number, kind, size_bytes))
        traced = None
        if times.traced_trips:
            progress(f"one trial with a trace, stack {stack.name}")
            traced = _trace(lab, node, cpu)
    found = Messages(
        target.kind, stack.name, over_of(stack), cpu, times.bulk_bytes, tuple(trials), traced=traced
    )
    write_messages(folder, found)
    return found


def _trials_of(times: MessageTimes, number: int) -> list[tuple[str, int]]:
    """Return kind and size of each trial of a round, in their order."""
    pair = [(ALONE, times.probe_bytes), (BESIDE, times.probe_bytes)]
    large = times.fragment_sizes_bytes
    latency = [(LATENCY, size) for size in (*times.sizes_bytes, *large)]
    throughput = [(THROUGHPUT, size) for size in (*times.throughput_sizes_bytes, *large)]
    return [*latency, *throughput, *(pair if number % 2 == 0 else reversed(pair))]


def _ends(times: MessageTimes, priority: int) -> list[tuple[str, int, int, tuple[str, ...]]]:
    """Return verb, port, priority and further words of what stands on the target."""
    ends: list[tuple[str, int, int, tuple[str, ...]]] = [
        ("echo", ECHO_PORT, priority, ()),
        ("sink", SINK_PORT, 0, ()),
    ]
    if times.fragment_sizes_bytes:
        ends += [
            ("echo", FRAGMENTS_ECHO_PORT, priority, FRAGMENTS),
            ("sink", FRAGMENTS_SINK_PORT, 0, FRAGMENTS),
        ]
    return ends


def _start_ends(lab: _Lab, node: Node, cpu: int) -> None:
    experiment, target = lab.experiment, lab.target
    tool = experiment.bench.tool(target.node, TOOL)
    jobs: list[Job] = []
    for verb, port, priority, further in _ends(lab.times, node.priority):
        argv = [
            tool,
            verb,
            *local_arguments(lab.stack, experiment.bench, target.node, target.test_address, port),
        ]
        argv += ["--cpu", str(cpu), "--priority", str(priority), *further]
        argv += lab.stack.words_on(experiment.bench, target.node, lab.stack.message_receive_arguments)
        stem = f"{verb}-fragments" if further else verb
        jobs.append(experiment.start(target.node, argv, lab.folder / stem))
    experiment.wait_ready(jobs)


def _make(lab: _Lab, number: int, kind: str, size_bytes: int) -> Trial:
    times = lab.times
    stem = f"{number:03d}-{kind}-{size_bytes}"
    bulk_stem = ""
    if kind == THROUGHPUT:
        words = lab.source(size_bytes, times.throughput_ms)
        _run(lab, lab.bulk.node, words, stem, times.throughput_ms, times.throughput_ms)
    elif kind == LATENCY:
        _trips(lab, stem, size_bytes, times.trips, times.interval_us)
    else:
        bulk_stem = f"{stem}-bulk" if kind == BESIDE else ""
        with _bulk_receiver(lab, bulk_stem) if bulk_stem else nullcontext():
            _trips(lab, stem, size_bytes, times.probes, times.probe_interval_us, RUN_UP)
    stolen, ticks = lab.stolen.since_the_last()
    name = f"{stem}.ndjson"
    return Trial(number, kind, size_bytes, name, f"{bulk_stem}.ndjson" if bulk_stem else "", stolen, ticks)


@contextmanager
def _bulk_receiver(lab: _Lab, stem: str) -> Generator[None, None, None]:
    """Keep the bulk receiver at work while the context lasts, and keep what its source says."""
    bulk = lab.experiment.start(lab.bulk.node, lab.source(lab.times.bulk_bytes, BULK_MS), lab.folder / stem)
    lab.experiment.wait_ready([bulk])
    time.sleep(BULK_LEAD_S)
    yield
    bulk.stop()
    lab.experiment.collect(bulk, STARTING_S).require_done()


def _trace(lab: _Lab, node: Node, cpu: int) -> TracedTrial:
    """Make one more trial beside the bulk receiver, with a trace of the echo's CPU.

    Raises:
        BenchError: A node or a tool does not work.
        MeasurementError: A tool came to no result.
    """
    times, stem = lab.times, f"traced-{lab.times.probe_bytes}"
    try:
        with kernel_recorded(node, KernelEvents(SCHEDULING, TRACE_BUFFER_KB, (cpu,))) as recorder:
            with _bulk_receiver(lab, f"{stem}-bulk"):
                _trips(lab, stem, times.probe_bytes, times.traced_trips, TRACED_INTERVAL_US, RUN_UP, EACH)
            file = f"{stem}{RING}"
            dropped = recorder.end(lab.folder / file)[cpu]
    except CapabilityError as error:
        return TracedTrial(str(error))
    return TracedTrial("", f"{stem}.ndjson", file, dropped)


def _trips(
    lab: _Lab,
    stem: str,
    size_bytes: int,
    trips: int,
    interval_us: int,
    run_up: int = 0,
    further: tuple[str, ...] = (),
) -> None:
    argv = [*lab.latency(size_bytes, trips, interval_us, run_up), *further]
    least_ms = trips * interval_us / 1000
    _run(lab, lab.probe.node, argv, stem, least_ms, max(least_ms, trips * TIMEOUT_MS))


def _run(lab: _Lab, node: str, argv: list[str], stem: str, least_ms: float, most_ms: float) -> None:
    """Run a tool to its end, and ask nobody before it may have come; raises as `Experiment.collect`."""
    job = lab.experiment.start(node, argv, lab.folder / stem)
    try:
        time.sleep(least_ms / 1000)
        lab.experiment.collect(job, (most_ms - least_ms) / 1000 + STARTING_S).require_done()
    finally:
        end_job(job)
