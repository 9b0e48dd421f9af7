# SPDX-License-Identifier: Apache-2.0
"""The model of a bench and its file.

A bench file is a labgrid environment (its `targets:` say how each node is reached and powered) with one more
section, `benchwright:`, which says what each node is for. `labgrid-client -c FILE` works on it too.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from hw.edges import EdgesSpec, read_edges
from hw.errors import ConfigError
from hw.fields import Fields
from hw.oscilloscopes import OscilloscopeSpec, read_oscilloscopes
from hw.plug_in import plug_in_of
from hw.router import OlderImpairment, RouterSpec, read_older_impairment, read_router
from hw.strict_yaml import read_yaml
from hw.topology import TopologySpec, check_connected, read_topology

SCHEMA = "benchwright.bench/1"

LONGEST_VIRTUAL_NAME = 13
"""A virtual bench names interfaces after nodes: two characters before it, 15 in all."""

SWITCH = "switch"
"""Name of the node that is a virtual bench's switch."""


class NodeKind(StrEnum):
    """How commands reach a node."""

    LOCAL = "local"  # the machine that runs the suites
    NAMESPACE = "namespace"  # a network namespace of the virtual bench, on this machine
    LABGRID = "labgrid"  # a labgrid target of the same name, by SSH


@dataclass(frozen=True)
class NodeSpec:
    """A machine, or a namespace, on which native tools run."""

    name: str
    kind: NodeKind
    clock: str
    priority: int
    """SCHED_FIFO priority of the tools on this node; 0: ordinary scheduling."""
    cpus: tuple[int, ...] = ()
    """CPUs that its producers' threads are pinned to, by turns; empty: those that the tool finds."""


@dataclass(frozen=True)
class ClockSpec:
    """A distinct clock of the bench, and where two-way time transfer reaches it."""

    name: str
    node: str
    address: str
    port: int


@dataclass(frozen=True)
class TimecardSpec:
    """The clock on a target that its own clock is measured against."""

    clock: str
    """As `bw-clock` names it: `card`, `phc:/dev/ptp1`, `plugin:FILE`; FILE: see `hw.plug_in`."""
    bound_ns: int
    """The card's own uncertainty against the time server, from its certificate; 0: it states it itself."""
    synchronised_over: str
    """The network, or other way, by which it follows the time server."""


@dataclass(frozen=True)
class TimeServerSpec:
    """What targets synchronise with."""

    node: str
    address: str
    """On the test network."""
    interface: str


@dataclass(frozen=True)
class TargetSpec:
    """A device under test."""

    kind: str
    node: str
    test_address: str
    test_interface: str
    provisioning: str
    """Folder under `targets/` whose `provision/` scripts prepare it."""
    timecard: TimecardSpec | None = None
    counter_timecard: TimecardSpec | None = None
    """Of a target without a timecard: one for clocks that two-way transfer cannot ask; None: none."""
    ptp_clock: str = ""
    """Its PTP hardware clock, such as `/dev/ptp0`; empty: none."""
    edges: EdgesSpec | None = None
    """Its pins for timed edges; None: none."""


@dataclass(frozen=True)
class ProducerSpec:
    """One data producer of the pattern."""

    number: int
    node: str
    address: str


@dataclass(frozen=True)
class CaptureSpec:
    """Where packets to and from the target can be seen: a mirror port, or the switch itself."""

    node: str
    interface: str
    """Empty on a virtual bench: the switch's port of whichever target it is."""


@dataclass(frozen=True)
class WitnessSpec:
    """Where the stall witness runs: the machines whose stall is the bench's fault."""

    node: str
    cpus: tuple[int, ...]
    threshold_us: int


@dataclass(frozen=True)
class VirtualSpec:
    """What the project builds itself: namespaces, links and guests on this machine."""

    test_subnet: str
    control_subnet: str
    rate_mbps: int
    switch_buffer_bytes: int
    mtu_bytes: int = 1500
    """Of all links of the test network."""


@dataclass(frozen=True)
class BenchSpec:
    """A bench as its file describes it."""

    path: Path
    name: str
    simulated: bool
    reference_clock: str
    environment: str
    nodes: dict[str, NodeSpec]
    clocks: dict[str, ClockSpec]
    targets: dict[str, TargetSpec]
    producers: dict[int, ProducerSpec]
    router: RouterSpec | None
    """What delays and loses packets on links of the test network."""
    capture: CaptureSpec | None
    witness: WitnessSpec | None
    time_server: TimeServerSpec | None
    virtual: VirtualSpec | None
    oscilloscopes: dict[str, OscilloscopeSpec] = field(default_factory=dict[str, OscilloscopeSpec])
    wiring: dict[str, str] = field(default_factory=dict[str, str])
    """What is connected to what, with which cable, in words."""
    topology: TopologySpec | None = None
    """Switches and links of the test network; None: hardware latency is not known."""
    labgrid_targets: dict[str, Any] = field(default_factory=dict[str, Any])
    labgrid_imports: tuple[str, ...] = ()
    """Files, by absolute paths, and modules with drivers and resources of the site's own."""


def load_bench(path: Path) -> BenchSpec:
    """Read and check a bench file.

    Args:
        path: The YAML file.

    Raises:
        ConfigError: Names file, field and allowed range.
    """
    document = read_yaml(path)
    top = Fields(document, str(path), "")
    section = top.child("benchwright")
    assert section is not None
    labgrid = top.table_of("targets", optional=True)
    imports = _imports(path, top.texts("imports", None, default=()))
    for name in ("tools", "images", "paths", "options", "features"):
        if top.has(name):
            raise ConfigError(f"{path}: {name}: of labgrid's keys Benchwright uses targets and imports alone")
    top.finish()
    spec = replace(_read_section(path, section, document.get("targets") or {}), labgrid_imports=imports)
    _check_references(spec, set(labgrid))
    return spec


def _imports(path: Path, imports: Sequence[str]) -> tuple[str, ...]:
    """Return what labgrid imports for a bench: paths of files are relative to the bench file."""
    found: list[str] = []
    for each in imports:
        file = path.resolve().parent / Path(os.path.expandvars(each)).expanduser()
        if file.suffix == ".py" and not file.is_file():
            raise ConfigError(
                f"{path}: imports: {each}: no such file; must be a file NAME.py, or a module's name"
            )
        found.append(str(file) if file.suffix == ".py" else each)
    return tuple(found)


def _read_section(path: Path, section: Fields, labgrid_targets: dict[str, Any]) -> BenchSpec:
    section.text("schema", choices=(SCHEMA,))
    virtual = _virtual(section.child("virtual", optional=True))
    simulated = section.boolean("simulated")
    if virtual is not None and not simulated:
        raise ConfigError(f"{path}: benchwright.simulated: must be true on a bench with a virtual section")
    nodes = {name: _node(name, table) for name, table in section.table_of("nodes").items()}
    topology = section.child("topology", optional=True)
    router = topology.child("router", optional=True) if topology is not None else None
    spec = BenchSpec(
        path=path,
        name=section.name("name"),
        simulated=simulated,
        reference_clock=section.text("reference_clock"),
        environment=section.text("environment", ""),
        nodes=nodes,
        clocks={name: _clock(name, table) for name, table in section.table_of("clocks").items()},
        targets={name: _target(name, table) for name, table in section.table_of("targets").items()},
        producers=_producers(section),
        router=None,
        capture=_capture(section.child("capture", optional=True)),
        witness=_witness(section.child("witness", optional=True)),
        time_server=_time_server(section.child("time_server", optional=True)),
        virtual=virtual,
        oscilloscopes=read_oscilloscopes(section, simulated),
        wiring=section.texts_of("wiring"),
        topology=read_topology(topology, nodes, virtual is not None),
        labgrid_targets=labgrid_targets,
    )
    older = read_older_impairment(section.child("impairment", optional=True))
    section.finish()
    spec = replace(spec, router=read_router(router, spec.topology, virtual is not None))
    return spec if older is None else replace(spec, router=_older_router(spec, older))


def _older_router(spec: BenchSpec, older: OlderImpairment) -> RouterSpec:
    """Return the section `impairment` as a router: on a virtual bench it can be on any node's link."""
    if spec.router is not None:
        raise ConfigError(f"{spec.path}: benchwright.impairment: is topology.router now, which is there, too")
    producers = {producer.number: producer.node for producer in spec.producers.values()}
    others: list[str] = []
    if spec.virtual is not None:
        others = [node for node in _test_network(spec) if node not in producers.values()]
    elif older.time_server and spec.time_server is not None:
        others = [spec.time_server.node]
    return older.router(producers, others, spec.topology)


def _node(name: str, table: Fields) -> NodeSpec:
    spec = NodeSpec(
        name=table.check_name("(name)", name),
        kind=NodeKind(table.text("kind", choices=[kind.value for kind in NodeKind])),
        clock=table.text("clock"),
        priority=table.integer("priority", 0, 97, 50),
        cpus=table.integers("cpus", 0, 1023, ()),
    )
    table.finish()
    return spec


def _clock(name: str, table: Fields) -> ClockSpec:
    spec = ClockSpec(
        name, table.text("node"), _address(table, "address"), table.integer("port", 1, 65535, 19999)
    )
    table.finish()
    return spec


def _target(kind: str, table: Fields) -> TargetSpec:
    spec = TargetSpec(
        kind=kind,
        node=table.text("node"),
        test_address=_address(table, "test_address"),
        test_interface=table.text("test_interface"),
        provisioning=table.text("provisioning", kind),
        timecard=_timecard(table.child("timecard", optional=True)),
        counter_timecard=_timecard(table.child("counter_timecard", optional=True)),
        ptp_clock=table.text("ptp_clock", ""),
        edges=read_edges(table.child("edges", optional=True)),
    )
    table.finish()
    return spec


def _timecard(table: Fields | None) -> TimecardSpec | None:
    if table is None:
        return None
    clock = table.text("clock")
    plug_in = plug_in_of(clock)
    if plug_in is not None and not plug_in.is_on_node:
        try:
            plug_in.beside(Path(table.file))
        except ConfigError as error:
            raise ConfigError(f"{table.file}: {table.table}.clock: {error}") from error
    spec = TimecardSpec(
        clock, table.integer("bound_ns", 0, 1_000_000_000, 0), table.text("synchronised_over")
    )
    table.finish()
    return spec


def _time_server(table: Fields | None) -> TimeServerSpec | None:
    if table is None:
        return None
    spec = TimeServerSpec(table.text("node"), _address(table, "address"), table.text("interface"))
    table.finish()
    return spec


def _producers(section: Fields) -> dict[int, ProducerSpec]:
    producers: dict[int, ProducerSpec] = {}
    for name, table in section.table_of("producers").items():
        if not re.fullmatch(r"[1-9][0-9]{0,2}", name) or int(name) > 655:
            raise ConfigError(
                f"{table.file}: {table.table}: a producer's number must be in 1..655, without leading zeros"
            )
        producers[int(name)] = ProducerSpec(int(name), table.text("node"), _address(table, "address"))
        table.finish()
    return producers


def _capture(table: Fields | None) -> CaptureSpec | None:
    if table is None:
        return None
    spec = CaptureSpec(table.text("node"), table.text("interface", ""))
    table.finish()
    return spec


def _witness(table: Fields | None) -> WitnessSpec | None:
    if table is None:
        return None
    cpus = table.integers("cpus", 0, 1023)
    if not cpus:
        raise ConfigError(f"{table.file}: {table.table}.cpus: must name at least one CPU")
    spec = WitnessSpec(
        table.text("node"),
        cpus,
        table.integer("threshold_us", 10, 1_000_000, 2000),
    )
    table.finish()
    return spec


def _virtual(table: Fields | None) -> VirtualSpec | None:
    if table is None:
        return None
    spec = VirtualSpec(
        test_subnet=_network(table, "test_subnet"),
        control_subnet=_network(table, "control_subnet"),
        rate_mbps=table.integer("rate_mbps", 1, 100_000, 1000),
        switch_buffer_bytes=table.integer("switch_buffer_bytes", 10_000, 1_000_000_000, 4_000_000),
        mtu_bytes=table.integer("mtu_bytes", 1500, 9000, 1500),
    )
    table.finish()
    return spec


def _address(table: Fields, key: str) -> str:
    text = table.text(key)
    try:
        return str(ipaddress.IPv4Address(text))
    except ValueError as error:
        raise ConfigError(
            f"{table.file}: {table.table}.{key}: must be an IPv4 address, found {text!r}"
        ) from error


def _network(table: Fields, key: str) -> str:
    text = table.text(key)
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as error:
        raise ConfigError(
            f"{table.file}: {table.table}.{key}: must be an IPv4 network, found {text!r}"
        ) from error


def _check_references(spec: BenchSpec, labgrid_names: set[str]) -> None:
    def refer(where: str, name: str, among: object, what: str) -> None:
        names = sorted(str(item) for item in among)  # type: ignore[attr-defined]
        if name not in names:
            raise ConfigError(
                f"{spec.path}: benchwright.{where}: no {what} {name!r}; there are: {', '.join(names)}"
            )

    def be_here(where: str, node: str, why: str) -> None:
        if spec.nodes[node].kind is NodeKind.LABGRID:
            raise ConfigError(
                f"{spec.path}: benchwright.{where}: must be on this machine (kind local or namespace),"
                f" found {node!r}: {why}"
            )

    refer("reference_clock", spec.reference_clock, spec.clocks, "clock")
    for node in spec.nodes.values():
        if node.kind is NodeKind.LABGRID:
            refer(f"nodes.{node.name}", node.name, labgrid_names, "labgrid target")
        if node.kind is NodeKind.NAMESPACE and spec.virtual is None:
            raise ConfigError(
                f"{spec.path}: benchwright.nodes.{node.name}.kind: namespace needs a virtual section"
            )
    for clock in spec.clocks.values():
        refer(f"clocks.{clock.name}.node", clock.node, spec.nodes, "node")
    for target in spec.targets.values():
        refer(f"targets.{target.kind}.node", target.node, spec.nodes, "node")
        if target.edges is not None and spec.virtual is None:
            for role, pin in target.edges.pins.items():
                if pin.startswith("bench:"):
                    raise ConfigError(
                        f"{spec.path}: benchwright.targets.{target.kind}.edges.{role}: {pin} is a pin of a"
                        " virtual bench's guest; must be a ptp:, gpio: or tgpio-pps: pin"
                    )
    for producer in spec.producers.values():
        refer(f"producers.{producer.number}.node", producer.node, spec.nodes, "node")
        refer(f"nodes.{producer.node}.clock", spec.nodes[producer.node].clock, spec.clocks, "clock")
    for where, part in (
        (_router_section(spec), spec.router),
        ("capture", spec.capture),
        ("witness", spec.witness),
        ("time_server", spec.time_server),
    ):
        if part is not None:
            refer(f"{where}.node", part.node, spec.nodes, "node")
    if spec.virtual is not None:
        _check_virtual(spec, spec.virtual)
    if spec.topology is not None:
        check_connected(spec.path, spec.topology, _test_network(spec))
    reference = spec.clocks[spec.reference_clock].node
    be_here("reference_clock", reference, "the start of a replay is agreed on by the clock of this machine")
    if spec.capture is not None:
        be_here("capture.node", spec.capture.node, "captured packets are written to the run folder")
        if not spec.capture.interface and spec.virtual is None:
            raise ConfigError(
                f"{spec.path}: benchwright.capture.interface: must name the mirror port; only a virtual bench"
                " finds it by itself"
            )


def _router_section(spec: BenchSpec) -> str:
    is_older = spec.router is not None and not all(spec.router.interfaces)
    return "impairment" if is_older else "topology.router"


def _test_network(spec: BenchSpec) -> dict[str, str]:
    """Return the nodes that take part in the test network, and the field that says so of each."""
    found = {target.node: f"targets.{target.kind}.node" for target in spec.targets.values()}
    found |= {producer.node: f"producers.{producer.number}.node" for producer in spec.producers.values()}
    return found | ({spec.time_server.node: "time_server.node"} if spec.time_server is not None else {})


def _check_virtual(spec: BenchSpec, virtual: VirtualSpec) -> None:
    """Refuse long names, no switch, two producers on a link, and addresses out of place or of two owners."""
    for name in spec.nodes:
        if len(name) > LONGEST_VIRTUAL_NAME:
            raise ConfigError(
                f"{spec.path}: benchwright.nodes.{name}: must have at most {LONGEST_VIRTUAL_NAME} characters"
                " on a virtual bench"
            )
    if SWITCH not in spec.nodes:
        raise ConfigError(
            f"{spec.path}: benchwright.nodes.{SWITCH}: missing; a virtual bench has its switch there,"
            " kind namespace"
        )
    if spec.nodes[SWITCH].kind is not NodeKind.NAMESPACE:
        raise ConfigError(
            f"{spec.path}: benchwright.nodes.{SWITCH}.kind: must be namespace on a virtual bench, which has"
            f" its switch there, found {spec.nodes[SWITCH].kind.value!r}"
        )
    for name, endpoints in spec.router.links.items() if spec.router is not None else ():
        if endpoints[1] != SWITCH:
            raise ConfigError(
                f"{spec.path}: benchwright.topology.links.{name}.endpoints: must be a node and {SWITCH!r},"
                f" in this order, for the router to be plugged in, found {list(endpoints)}"
            )
    players: dict[str, int] = {}
    for producer in spec.producers.values():
        other = players.setdefault(producer.node, producer.number)
        if other != producer.number:
            raise ConfigError(
                f"{spec.path}: benchwright.producers.{producer.number}.node: must be a node of its own on a"
                f" virtual bench, found {producer.node!r} as producers.{other}.node"
            )
    test = {f"producers.{producer.number}.address": producer.address for producer in spec.producers.values()}
    test |= {f"targets.{target.kind}.test_address": target.test_address for target in spec.targets.values()}
    if spec.time_server is not None:
        test["time_server.address"] = spec.time_server.address
    control = {f"clocks.{clock.name}.address": clock.address for clock in spec.clocks.values()}
    for addresses, subnet in ((test, virtual.test_subnet), (control, virtual.control_subnet)):
        owners: dict[str, str] = {}
        for where, address in addresses.items():
            owner = owners.setdefault(address, where)
            if ipaddress.IPv4Address(address) not in ipaddress.IPv4Network(subnet):
                raise ConfigError(f"{spec.path}: benchwright.{where}: must be in {subnet}, found {address}")
            if owner != where:
                raise ConfigError(
                    f"{spec.path}: benchwright.{where}: must be its own, found {address} as {owner}"
                )
