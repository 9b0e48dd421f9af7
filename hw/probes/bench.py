# SPDX-License-Identifier: Apache-2.0
"""What a bench has, by its file, and whether the nodes of a hardware bench can be reached."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hw.bench import BenchSpec, load_bench
from hw.capability import Capability, State
from hw.drivers.labgrid_api import service_address
from hw.errors import BenchError, ConfigError
from hw.labgrid_file import open_labgrid
from hw.oscilloscopes import OscilloscopeSpec
from hw.router import RouterSpec
from hw.scratch import scratch_folder
from hw.virtual.prepare import has_guests

REACH_TIMEOUT_S = 2.0


def bench(path: Path) -> tuple[list[Capability], bool, frozenset[str]]:
    """Probe a bench.

    Returns:
        Its capabilities, whether the project builds it on this machine, and the keys of what it is then meant
        to be without: nothing that needs them is measured on it. All keys are there even if the file cannot
        be read.
    """
    try:
        spec = load_bench(path)
        with scratch_folder("doctor") as folder:
            # Opens nothing of the bench, and refuses what labgrid does not know.
            addresses = service_addresses(open_labgrid(spec, Path(folder)))
    except (ConfigError, BenchError) as error:
        wrong = isinstance(error, ConfigError)
        remedy = (
            "correct the bench file"
            if wrong
            else "start labgrid-coordinator, or set LG_COORDINATOR to the one that there is"
        )
        broken = [Capability("bench", State.MISSING, str(error), remedy, bad_input=wrong)]
        parts = [
            Capability(key, State.MISSING, "bench file not read")
            for key in ("targets", "topology", "impairment", "capture", "witness", "edges", "oscilloscopes")
        ]
        return broken + parts, False, frozenset()
    unreachable: dict[str, str] = {} if spec.virtual else reach(addresses)
    silent = reach(oscilloscope_addresses(spec.oscilloscopes))
    return (
        [
            *judge_bench(spec, unreachable),
            judge_edges(spec),
            judge_oscilloscopes(spec, silent),
        ],
        spec.virtual is not None,
        _without(spec),
    )


def _without(spec: BenchSpec) -> frozenset[str]:
    """Return the keys of what a virtual bench has no part for; somebody may still add it to a real one."""
    if spec.virtual is None:
        return frozenset()
    has = {
        "impairment": spec.router is not None,
        "edges": any(target.edges is not None for target in spec.targets.values()),
        "oscilloscopes": bool(spec.oscilloscopes),
        **dict.fromkeys(("qemu", "accelerator"), has_guests(spec)),
    }
    return frozenset(key for key, there in has.items() if not there)


def _interfaces(router: RouterSpec) -> str:
    known = [name for name in router.interfaces if name]
    return f"{'interface' if len(known) == 1 else 'interfaces'} {', '.join(known)}"


def oscilloscope_addresses(specs: dict[str, OscilloscopeSpec]) -> dict[str, tuple[str, int]]:
    """Return address and port of each oscilloscope that is there by itself."""
    return {name: spec.address for name, spec in specs.items() if spec.virtual is None}


def service_addresses(environment: Any) -> dict[str, tuple[str, int]]:
    """Return address and port of the service by which commands reach each labgrid target that has one.

    Args:
        environment: As `open_labgrid` returns it: what labgrid has made of the file, whatever its form.
    """
    targets: dict[str, Any] = {} if environment is None else environment.targets
    found = {name: service_address(target) for name, target in targets.items()}
    return {name: address for name, address in found.items() if address is not None}


def reach(addresses: dict[str, tuple[str, int]], timeout_s: float = REACH_TIMEOUT_S) -> dict[str, str]:
    """Connect to each service and close again; return, by name, why one does not answer."""

    def attempt(address: tuple[str, int]) -> str:
        try:
            socket.create_connection(address, timeout_s).close()
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            return f"{address[0]} port {address[1]}: {why}"
        return ""

    with ThreadPoolExecutor(max_workers=16) as pool:
        answers = dict(zip(addresses, pool.map(attempt, addresses.values()), strict=True))
    return {name: reason for name, reason in answers.items() if reason}


def judge_bench(spec: BenchSpec, unreachable: dict[str, str]) -> list[Capability]:
    """Judge the parts of a bench; `unreachable` says, by node, why it does not answer."""
    kind = "virtual, built on this machine" if spec.virtual else "hardware"
    counts = f"{len(spec.nodes)} nodes, {len(spec.clocks)} clocks, {len(spec.producers)} producers"
    words = [f"{spec.name} ({kind}): {counts}"]
    words += [f"{name} does not answer: {reason}" for name, reason in unreachable.items()]
    state = State.LIMITED if unreachable else State.OK
    remedy = "power the nodes; check their network and sshd" if unreachable else ""
    return [
        Capability("bench", state, "; ".join(words), remedy),
        _judge_targets(spec, unreachable),
        judge_topology(spec),
        _judge_part(
            "impairment",
            spec.router and f"netem on {spec.router.node}, {_interfaces(spec.router)}",
            "no known delay or loss can be put on a link",
        ),
        _judge_part(
            "capture",
            spec.capture
            and f"packets seen on {spec.capture.node}, {spec.capture.interface or 'port of the target'}",
            "no independent witness of the packets",
        ),
        _judge_part(
            "witness",
            spec.witness and f"stalls watched on {spec.witness.node}, processors {list(spec.witness.cpus)}",
            "a stall of the bench cannot be told from one of the target",
        ),
    ]


def judge_topology(spec: BenchSpec) -> Capability:
    """List switches and links of the test network."""
    if spec.topology is None:
        found = "none: the latency of cables and switches counts as the devices' software latency"
        return Capability("topology", State.MISSING, found, "add benchwright.topology to the bench file")
    words = [f"{name}: {said}" for name, said in spec.topology.words().items()]
    return Capability("topology", State.OK, "; ".join(words))


def judge_edges(spec: BenchSpec) -> Capability:
    """List the pins of the targets; what they really are, their own `doctor` says."""
    words = [
        f"{kind}: " + ", ".join(f"{role} {pin}" for role, pin in target.edges.pins.items())
        for kind, target in spec.targets.items()
        if target.edges is not None
    ]
    if words:
        return Capability("edges", State.OK, "; ".join(words))
    return Capability(
        "edges",
        State.MISSING,
        "no target has pins for timed edges",
        "add edges to a target of the bench file",
    )


def judge_oscilloscopes(spec: BenchSpec, silent: dict[str, str]) -> Capability:
    """List the oscilloscopes; `silent` says, by name, why one does not answer."""
    words: list[str] = []
    remedies: list[str] = []
    for name, scope in spec.oscilloscopes.items():
        kind = "virtual, runs while it is used" if scope.virtual is not None else scope.resource
        words.append(f"{name} ({kind})" + (f" does not answer: {silent[name]}" if name in silent else ""))
        if scope.limits is None:
            words.append(f"{name} has no limits: its results stay inconclusive")
            remedies.append(f"add limits of {name}, from its data sheet, to the bench file")
    if silent:
        remedies.insert(0, "switch the oscilloscope on; check its address and its socket server")
    if len(silent) == len(spec.oscilloscopes):
        found = "; ".join(words) or "none: edges are seen by nobody"
        remedy = "; ".join(remedies) or "add benchwright.oscilloscopes to the bench file"
        return Capability("oscilloscopes", State.MISSING, found, remedy)
    state = State.LIMITED if remedies else State.OK
    return Capability("oscilloscopes", state, "; ".join(words), "; ".join(remedies))


def _judge_targets(spec: BenchSpec, unreachable: dict[str, str]) -> Capability:
    words = [
        f"{kind}: {target.node} at {target.test_address}"
        + (" (does not answer)" if target.node in unreachable else "")
        for kind, target in spec.targets.items()
    ]
    reachable = [target for target in spec.targets.values() if target.node not in unreachable]
    if not spec.targets:
        return Capability(
            "targets", State.MISSING, "none", "add one under benchwright.targets of the bench file"
        )
    if not reachable:
        return Capability(
            "targets", State.MISSING, "; ".join(words), "power the targets; check their network and sshd"
        )
    return Capability(
        "targets", State.OK if len(reachable) == len(words) else State.LIMITED, "; ".join(words)
    )


def _judge_part(key: str, found: str | None, effect: str) -> Capability:
    if found:
        return Capability(key, State.OK, found)
    return Capability(key, State.MISSING, f"none: {effect}", f"add benchwright.{key} to the bench file")
