# SPDX-License-Identifier: Apache-2.0
"""Round trips between the devices of a bench, in short turns: the token goes round many times.

All directions are measured over the same time, so that what changes meanwhile, in a device or in the machine
that emulates it, changes for all of them, and sums of round trips are held against each other turn by turn.
A turn begins at an instant that each device knows by its own clock, whose line the bench has measured before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import BenchError, MeasurementError
from hw.open_bench import OpenBench
from hw.protocols import Job
from reports.software_latency.evidence import (
    WITNESS,
    DeviceClock,
    Exchange,
    InjectedDelay,
    LabDevice,
    RoundTrips,
    Turns,
    read_trips,
    write_round_trips,
)
from reports.software_latency.trips import TRIPS_MIN
from resources.clock_sync.lines import ClockLine, measure_clock_lines, serve_clocks
from resources.clock_sync.tai_utc import common_tai_utc_s
from resources.software_latency.devices import directions, producers_of, simulated_machines, twins_of
from resources.software_latency.hardware import hardware_between
from resources.software_latency.icmp import icmp_between
from resources.software_latency.settings import RUN_UP_TRIPS, RoundTripTimes
from resources.tools.experiment import Experiment, silence
from resources.tools.fetched import fetch_known
from resources.tools.witness import add_witness

Progress = Callable[[str], None]

PORT = 9620
CLOCK_MEASURING_MS = 2500
LEAD_S = 4.0
"""From here to the first turn. A device that is not ready by then misses the turns before it is."""
ENDING_S = 30.0
HEARD_SHARE = 0.75
"""A direction whose last reply came before that share of the turns is silent."""
NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class _Lab:
    """What every device of one measurement is started with."""

    bench: OpenBench
    addresses: Mapping[str, str]
    ports: Mapping[str, int]
    lines: Mapping[str, ClockLine]
    times: RoundTripTimes
    tai_utc_s: int
    folder: Path
    delayed: InjectedDelay | None
    remote: dict[str, str] = field(default_factory=dict[str, str])
    """Folder of each direction's series, on its asker."""

    def where(self, device: LabDevice) -> str:
        """Return where a device's echo listens."""
        return f"{self.addresses[device.node]}:{self.ports[device.name]}"


def measure_round_trips(
    bench: OpenBench,
    target: TargetSpec,
    devices: Sequence[LabDevice],
    times: RoundTripTimes,
    folder: Path,
    progress: Progress,
    delayed: InjectedDelay | None = None,
    pairs: Sequence[tuple[LabDevice, LabDevice]] | None = None,
) -> RoundTrips:
    """Make round trips between devices and write the evidence.

    Args:
        bench: An open bench.
        target: The first of the devices.
        devices: At least three; each has an address on the test network.
        times: How many trips.
        folder: Evidence goes here.
        progress: Called with a line of text now and then.
        delayed: A delay for the twin of one of the devices, which is measured besides, and so is its control;
            without `twin_of` for the echo of one of them.
        pairs: Who asks whom; None: see `directions`.

    Raises:
        BenchError: A node or a tool does not work.
        MeasurementError: A tool came to no result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spec = bench.spec
    twins = twins_of(delayed, devices)
    pairs = directions(devices, twins, simulated_machines(spec)) if pairs is None else pairs
    devices = [*devices, *twins]
    nodes = list(dict.fromkeys(each.node for each in devices))
    bench.power_on(nodes)
    addresses = {producer.node: producer.address for producer in spec.producers.values()}
    addresses[target.node] = target.test_address
    all_s = times.all_s(len(pairs))
    life_s = CLOCK_MEASURING_MS / 1000 + LEAD_S + all_s + 60
    with Experiment(bench) as experiment:
        lines = _lines(bench, nodes, round(life_s * 1000), folder, experiment)
        tai_utc_s = common_tai_utc_s(bench, nodes, folder)
        ports = {each.name: PORT + place for place, each in enumerate(devices)}
        lab = _Lab(bench, addresses, ports, lines, times, tai_utc_s, folder, delayed)
        witness = add_witness(
            experiment,
            folder / Path(WITNESS).stem,
            round(life_s * 1000),
            target=bench.virtual.target_account(),
        )
        echoes = experiment.start_at_once([partial(_echo, lab, each, life_s) for each in devices])
        first_tai_ns = time.time_ns() + lab.tai_utc_s * NS_PER_S + round(LEAD_S * NS_PER_S)
        jobs = experiment.start_at_once(
            [partial(_ask, lab, pair, place, len(pairs), first_tai_ns) for place, pair in enumerate(pairs)]
        )
        progress(f"round trips in {len(pairs)} directions, {times.turns} turns each: {all_s:.0f} s")
        silence(bench, time.monotonic() + LEAD_S + all_s, nodes)
        exchanges = [_collected(lab, experiment, job, pair) for job, pair in zip(jobs, pairs, strict=True)]
        injected = [
            _put(experiment, echo, delayed)
            for each, echo in zip(devices, echoes, strict=True)
            if delayed is not None and delayed.twin_of and each.name == delayed.device
        ]
        if witness is not None:
            with suppress(BenchError):
                witness.stop()
                witness.wait(ENDING_S)
                witness.fetch()
    clocks = {each.name: _clock(each, lines[spec.nodes[each.node].clock]) for each in devices}
    turns = Turns(first_tai_ns, times.turn_trips, times.every_us(len(pairs)), times.turns)
    if times.icmp_echoes:
        progress(f"{times.icmp_echoes} ICMP echoes between each two devices")
    facts = RoundTrips(
        target.kind,
        times.size_bytes,
        times.interval_us,
        tuple(devices),
        tuple(clocks.values()),
        tuple(_heard_to_the_end(folder, each, clocks[each.asker], turns) for each in exchanges),
        tuple(injected),
        turns,
        icmp_between(bench, pairs, addresses, times, folder),
        producers_of(spec, target, times.size_bytes),
        times.hold_us,
        tuple(each.name for each in twins) or None,
    )
    write_round_trips(folder, facts)
    return facts


def _lines(
    bench: OpenBench, nodes: Sequence[str], life_ms: int, folder: Path, experiment: Experiment
) -> Mapping[str, ClockLine]:
    """Measure the devices' clocks: they say when a turn begins, and where the machine's pauses are."""
    spec = bench.spec
    names = sorted({spec.nodes[node].clock for node in nodes})
    for job in serve_clocks(bench, dict.fromkeys([*names, spec.reference_clock]), life_ms, folder / "clocks"):
        experiment.add(job)
    return measure_clock_lines(bench, names, CLOCK_MEASURING_MS, folder / "clocks")


def _heard_to_the_end(folder: Path, exchange: Exchange, clock: DeviceClock, turns: Turns) -> Exchange:
    """Return an exchange; one whose replies end before the last quarter of the turns is silent."""
    if exchange.silent:
        return exchange
    turn = read_trips(folder, exchange, clock, None, turns).turn
    assert turn is not None
    last = int(turn.max()) + 1
    if last > turns.count * HEARD_SHARE:
        return exchange
    why = f"{exchange.reflector} answered {exchange.asker} until turn {last} of {turns.count}, then no more"
    return replace(exchange, silent=why)


def _clock(device: LabDevice, line: ClockLine) -> DeviceClock:
    return DeviceClock(device.name, line.at_reference_tai_ns, line.offset_ns, line.rate_ppb, line.bound_ns)


def _common(lab: _Lab, device: LabDevice) -> list[str]:
    """Return the options that both ends have; where a device runs is part of what it takes."""
    cpus = lab.bench.spec.nodes[device.node].cpus
    place = ["--cpu", str(cpus[0])] if cpus else []
    return ["--priority", str(device.priority), "--tai-utc-s", str(lab.tai_utc_s), *place]


def _echo(lab: _Lab, device: LabDevice, life_s: float) -> Job:
    argv = [lab.bench.tool(device.node), "echo"]
    argv += ["--listen", lab.where(device)]
    argv += ["--duration-ms", str(round(life_s * 1000)), "--hold-us", str(lab.times.hold_us)]
    argv += _common(lab, device)
    delayed = lab.delayed
    if delayed is not None and device.name in (delayed.device, delayed.control):
        argv += ["--delay-receive-us", str(delayed.receive_us), "--delay-send-us", str(delayed.send_us)]
        argv += ["--delays-in-residence"] if device.name == delayed.control else []
    return lab.bench.node(device.node).start(argv, lab.folder / f"echo-{device.name}")


def _put(experiment: Experiment, echo: Job, delayed: InjectedDelay) -> InjectedDelay:
    """End the twin's echo and return the delay as it was; unknown, where the echo came to no end."""
    echo.stop()
    try:
        answer = experiment.collect(echo, ENDING_S).require_done().result
    except MeasurementError:
        return delayed
    put_ns = int(answer["delayed_receive_mean_ns"]) + int(answer["delayed_send_mean_ns"])
    return replace(delayed, put_ns=put_ns)


def _name(pair: tuple[LabDevice, LabDevice]) -> str:
    return "-".join(each.name for each in pair)


def _ask(lab: _Lab, pair: tuple[LabDevice, LabDevice], place: int, directions: int, first_tai_ns: int) -> Job:
    """Start asking: a turn after those of the directions before it, on the grid of all."""
    (asker, reflector), times = pair, lab.times
    line = lab.lines[lab.bench.spec.nodes[asker.node].clock]
    first_local_ns = line.local_ns(first_tai_ns + place * times.slot_us * 1000)
    every_us = times.every_us(directions)
    node = lab.bench.node(asker.node)
    lab.remote[_name(pair)] = node.fresh_folder(f"round-trips-{_name(pair)}")
    series = f"{lab.remote[_name(pair)]}/{_name(pair)}.csv"
    argv = [
        lab.bench.tool(asker.node),
        "roundtrip",
        "--peer",
        f"{lab.addresses[reflector.node]}:{lab.ports[reflector.name]}",
    ]
    turn_trips = RUN_UP_TRIPS + times.turn_trips
    argv += ["--count", str(times.turns * turn_trips), "--interval-us", str(times.interval_us)]
    argv += ["--first-tai-ns", str(first_local_ns), "--turn-trips", str(turn_trips)]
    argv += ["--turn-run-up", str(RUN_UP_TRIPS)]
    argv += ["--turn-every-us", str(round(every_us * (1 + line.rate_ppb / 1e9)))]
    argv += ["--size-bytes", str(times.size_bytes), "--series", series, *_common(lab, asker)]
    return node.start(argv, lab.folder / _name(pair))


def _collected(lab: _Lab, experiment: Experiment, job: Job, pair: tuple[LabDevice, LabDevice]) -> Exchange:
    """Return a direction with its files; a silent one says why."""
    (asker, reflector), name = pair, _name(pair)
    silent = ""
    try:
        answer = experiment.collect(job, ENDING_S).require_done()
        sent, received = int(answer.result["sent"]), int(answer.result["received"])
        if received < TRIPS_MIN:
            silent = f"{reflector.name} answered {received} of {sent} requests of {asker.name}"
    except MeasurementError as error:
        silent = f"{asker.name} asked {reflector.name} to no end: {error}"
    node = lab.bench.node(asker.node)
    with suppress(BenchError) if silent else nullcontext():
        fetch_known(node, lab.remote[name], [f"{name}.csv"], lab.folder)
    hardware_ns, bounds = hardware_between(lab.bench.spec.topology, asker, reflector, lab.times.size_bytes)
    return Exchange(
        asker.name, reflector.name, f"{name}.ndjson", f"{name}.csv", hardware_ns, bounds, silent or None
    )
