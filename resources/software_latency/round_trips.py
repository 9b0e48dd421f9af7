# SPDX-License-Identifier: Apache-2.0
"""Round trips between the devices of a bench, one direction after the other: the token goes round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import BenchError
from hw.open_bench import OpenBench
from hw.protocols import Job
from reports.software_latency.evidence import (
    WITNESS,
    DeviceClock,
    Exchange,
    Injected,
    LabDevice,
    RoundTrips,
    write_round_trips,
)
from resources.clocks.lines import measure_clock_lines, serve_clocks
from resources.software_latency.devices import directions
from resources.software_latency.settings import RoundTripTimes
from resources.tools.experiment import Experiment
from resources.tools.fetched import fetch_known
from resources.tools.witness import add_witness

Progress = Callable[[str], None]

PORT = 9620
CLOCK_MEASURING_MS = 2500
STARTING_S = 8.0
"""What one direction may take beside its trips, on a busy machine."""
ENDING_S = 30.0


def measure_round_trips(
    bench: OpenBench,
    target: TargetSpec,
    devices: Sequence[LabDevice],
    times: RoundTripTimes,
    folder: Path,
    progress: Progress,
    injected: Injected | None = None,
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
        injected: A delay that is put into one device's software, whoever asks.
        pairs: Who asks whom; None: every pair, and the first three devices in both roles.

    Raises:
        BenchError: A node or a tool does not work.
        MeasurementError: A tool came to no result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spec = bench.spec
    bench.power_on([each.node for each in devices])
    addresses = {producer.node: producer.address for producer in spec.producers.values()}
    addresses[target.node] = target.test_address
    pairs = directions(devices) if pairs is None else pairs
    life_s = CLOCK_MEASURING_MS / 1000 + len(pairs) * (times.direction_s + STARTING_S) + 60
    exchanges: list[Exchange] = []
    with Experiment(bench) as experiment:
        clocks = _clocks(bench, devices, round(life_s * 1000), folder, experiment)
        witness = add_witness(experiment, folder / Path(WITNESS).stem, round(life_s * 1000))
        experiment.start_at_once(
            [partial(_echo, bench, each, addresses, life_s, folder, injected) for each in devices]
        )
        for number, (asker, reflector) in enumerate(pairs, start=1):
            progress(f"round trips {asker.name} to {reflector.name}: {number} of {len(pairs)}")
            name = f"{asker.name}-{reflector.name}"
            remote = bench.node(asker.node).fresh_folder("round-trips")
            argv = _asking(bench, asker, addresses[reflector.node], times, f"{remote}/{name}.csv", injected)
            job = experiment.start(asker.node, argv, folder / name)
            experiment.collect(job, times.direction_s + ENDING_S).require_done()
            fetch_known(bench.node(asker.node), remote, [f"{name}.csv"], folder)
            exchanges.append(
                Exchange(asker.name, reflector.name, f"{name}.ndjson", f"{name}.csv", hardware_ns=0)
            )
        if witness is not None:
            with suppress(BenchError):
                witness.stop()
                witness.wait(ENDING_S)
                witness.fetch()
    facts = RoundTrips(
        target.kind,
        times.size_bytes,
        times.interval_us,
        tuple(devices),
        clocks,
        tuple(exchanges),
        (injected,) if injected is not None else (),
    )
    write_round_trips(folder, facts)
    return facts


def _clocks(
    bench: OpenBench, devices: Sequence[LabDevice], life_ms: int, folder: Path, experiment: Experiment
) -> tuple[DeviceClock, ...]:
    """Measure the devices' clocks, so that the witness's pauses can be found in their trips."""
    spec = bench.spec
    names = sorted({spec.nodes[each.node].clock for each in devices} & set(spec.clocks))
    for job in serve_clocks(bench, dict.fromkeys([*names, spec.reference_clock]), life_ms, folder / "clocks"):
        experiment.add(job)
    lines = measure_clock_lines(bench, names, CLOCK_MEASURING_MS, folder / "clocks")
    found: list[DeviceClock] = []
    for each in devices:
        line = lines.get(spec.nodes[each.node].clock)
        if line is not None:
            found.append(
                DeviceClock(each.name, line.at_reference_tai_ns, line.offset_ns, line.rate_ppb, line.bound_ns)
            )
    return tuple(found)


def _delays(device: LabDevice, injected: Injected | None) -> list[str]:
    if injected is None or injected.device != device.name:
        return []
    return [
        "--delay-receive-us", str(injected.receive_us), "--delay-send-us", str(injected.send_us)
    ]  # fmt: skip


def _echo(
    bench: OpenBench,
    device: LabDevice,
    addresses: dict[str, str],
    life_s: float,
    folder: Path,
    injected: Injected | None,
) -> Job:
    argv = [bench.tool(device.node), "echo", "--listen", f"{addresses[device.node]}:{PORT}"]
    argv += ["--duration-ms", str(round(life_s * 1000)), "--priority", str(device.priority)]
    return bench.node(device.node).start([*argv, *_delays(device, injected)], folder / f"echo-{device.name}")


def _asking(
    bench: OpenBench,
    device: LabDevice,
    address: str,
    times: RoundTripTimes,
    series: str,
    injected: Injected | None,
) -> list[str]:
    argv = [bench.tool(device.node), "roundtrip", "--peer", f"{address}:{PORT}"]
    argv += ["--count", str(times.trips), "--interval-us", str(times.interval_us)]
    argv += ["--size-bytes", str(times.size_bytes), "--priority", str(device.priority), "--series", series]
    return [*argv, *_delays(device, injected)]
