# SPDX-License-Identifier: Apache-2.0
"""Kinds of load: their parameters, what they refuse, and the tools that make them.

Each tool ends by itself after the load's longest duration, also when nobody is left to end it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar
from uuid import uuid4

from hw.errors import CapabilityError, ConfigError
from hw.open_bench import Nodes
from resources.loads.counters import Counters

FOLDER = "/var/tmp"  # noqa: S108 - stress-ng makes files of random names in it
OWN_FOLDER = f"{FOLDER}/benchwright-load-"
"""Of one load alone: a number follows that nobody else draws."""
PORT = 9642
BLOCK_BYTES = 65_536
SLICES_HZ = 10
"""How often a second a disk gets its bytes."""
TIMEOUT_MS = 60_000
RECEIVER_MORE_S = 120
"""Of a receiver whose sender came late."""
LONGEST_S = 604_800
"""Of the tools of this project: a week."""


@dataclass(frozen=True)
class LoadTool:
    """A program of a load.

    Attributes:
        name: Its answers are in files of that name.
        argv: Its command line.
        says_ready: It says when it is, in the tools' NDJSON, and gives its own count at its end.
        follows: It ends once the tool that is ended before it has.
    """

    name: str
    node: str
    argv: Sequence[str]
    says_ready: bool = True
    follows: bool = False


@dataclass(frozen=True)
class LoadKind:
    """A load as it is asked for.

    Attributes:
        node: Which is loaded.
        duration_s: After this time it ends by itself.
    """

    kind: ClassVar[str]
    writes: ClassVar[bool] = False
    """It is there to write files."""
    node: str
    duration_s: int

    def facts(self) -> dict[str, Any]:
        """Return kind, node, duration and parameters."""
        return {"kind": self.kind, **asdict(self)}

    def require(self, bench: Nodes, _counters: Counters, /) -> None:
        """Refuse what the node or the bench has not.

        Raises:
            ConfigError: A parameter is out of its range.
            CapabilityError: The node or the bench lacks something; the text says what would be allowed.
        """
        if not 1 <= self.duration_s <= LONGEST_S:
            raise ConfigError(f"load {self.kind}: duration_s: {self.duration_s}; allowed: 1..{LONGEST_S}")
        if self.node not in bench.spec.nodes:
            known = ", ".join(sorted(bench.spec.nodes))
            raise ConfigError(f"load {self.kind}: node: {self.node!r}; allowed: {known}")

    def folder_on(self, _bench: Nodes, _counters: Counters, /) -> str:
        """Return the folder on the node that its tools write into; empty: they need none."""
        return ""

    def tools(self, _bench: Nodes, _folder: str, /) -> list[LoadTool]:
        """Return its tools, in the order in which they are started."""
        raise NotImplementedError


@dataclass(frozen=True)
class CpuLoad(LoadKind):
    """Busy processors, by stress-ng.

    Attributes:
        processors: How many; 0: all that a program may use there.
    """

    kind = "cpu"
    processors: int = 0

    def require(self, bench: Nodes, counters: Counters, /) -> None:
        """Refuse more processors than there are, and a node without stress-ng."""
        super().require(bench, counters)
        _require_processors(self, self.processors, counters)
        _require_stress(self, bench)

    def folder_on(self, bench: Nodes, counters: Counters, /) -> str:
        """Return a folder that stress-ng can write into."""
        return _folder(self, bench, counters)

    def tools(self, _bench: Nodes, folder: str, /) -> list[LoadTool]:
        """Return stress-ng."""
        return [_stress(self, folder, ["--cpu", str(self.processors)])]


@dataclass(frozen=True)
class DiskLoad(LoadKind):
    """Writes to a disk, by stress-ng; at a rate, each slice synced, by `bw-traffic work`.

    Attributes:
        rate_bytes_s: Bytes a second; 0: as fast as it goes.
    """

    kind = "disk"
    writes = True
    rate_bytes_s: int = 0

    def require(self, bench: Nodes, counters: Counters, /) -> None:
        """Refuse a rate that is none, and a node without stress-ng where it takes that."""
        super().require(bench, counters)
        if self.rate_bytes_s and not SLICES_HZ <= self.rate_bytes_s <= SLICES_HZ << 30:
            allowed = f"0 (as fast as it goes), {SLICES_HZ}..{SLICES_HZ << 30}"
            raise ConfigError(f"load disk: rate_bytes_s: {self.rate_bytes_s}; allowed: {allowed}")
        if not self.rate_bytes_s:
            _require_stress(self, bench)

    def folder_on(self, bench: Nodes, counters: Counters, /) -> str:
        """Return a folder on the disk."""
        return (_own_folder if self.rate_bytes_s else _folder)(self, bench, counters)

    def tools(self, bench: Nodes, folder: str, /) -> list[LoadTool]:
        """Return stress-ng, or `bw-traffic work`."""
        if not self.rate_bytes_s:
            return [_stress(self, folder, ["--hdd", "1", "--hdd-bytes", "64m"])]
        words = ["--jobs", "1", "--cpu-ms", "0", "--read-files", "0", "--write-files", "1", "--sync"]
        words += ["--write-bytes", str(self.rate_bytes_s // SLICES_HZ), "--rate-hz", str(SLICES_HZ)]
        return [_work(self, bench, folder, words)]


@dataclass(frozen=True)
class NetworkLoad(LoadKind):
    """TCP to the node, by `bw-traffic bulk`.

    Attributes:
        sender: Node that sends.
        address: Of the loaded node on the network that carries the load.
        rate_mbit: Mbit/s of payload; 0: as fast as it goes.
        block_bytes: Of a call.
    """

    kind = "network"
    sender: str = field(kw_only=True)
    address: str = field(kw_only=True)
    rate_mbit: int = 0
    block_bytes: int = BLOCK_BYTES

    def require(self, bench: Nodes, counters: Counters, /) -> None:
        """Refuse a sender that the bench has not, and a rate beyond a link of either node."""
        super().require(bench, counters)
        if self.sender not in bench.spec.nodes or self.sender == self.node:
            known = ", ".join(sorted(set(bench.spec.nodes) - {self.node}))
            raise ConfigError(f"load network: sender: {self.sender!r}; allowed: {known}")
        if not 1 <= self.block_bytes <= 1 << 20:
            raise ConfigError(f"load network: block_bytes: {self.block_bytes}; allowed: 1..{1 << 20}")
        link_mbit = _link_mbit(bench, (self.node, self.sender))
        if self.rate_mbit < 0 or (link_mbit is not None and self.rate_mbit > link_mbit):
            most = "" if link_mbit is None else f"..{link_mbit}, the slowest link's"
            raise CapabilityError(
                f"load network: rate_mbit: {self.rate_mbit}; allowed: 0 (as fast as it goes), 1{most}"
            )

    def tools(self, bench: Nodes, _folder: str, /) -> list[LoadTool]:
        """Return both ends, the receiver first."""
        place = f"[{self.address}]:{PORT}" if ":" in self.address else f"{self.address}:{PORT}"
        ends = ["--timeout-ms", str(TIMEOUT_MS), "--block-bytes", str(self.block_bytes), "--duration-ms"]
        longest_s = min(self.duration_s + RECEIVER_MORE_S, LONGEST_S)
        serve = [bench.tool(self.node), "bulk", "--serve", place, *ends, str(longest_s * 1000)]
        send = [bench.tool(self.sender), "bulk", "--peer", place, *ends, str(self.duration_s * 1000)]
        return [
            LoadTool("bulk-receiver", self.node, serve, follows=True),
            LoadTool("bulk-sender", self.sender, [*send, "--rate-mbit", str(self.rate_mbit)]),
        ]


@dataclass(frozen=True)
class CompileLikeLoad(LoadKind):
    """What a build does to a machine, by `bw-traffic work` as it is without options.

    Attributes:
        processors: Processes at once; 0: as many as processors.
    """

    kind = "compile-like"
    writes = True
    processors: int = 0

    def require(self, bench: Nodes, counters: Counters, /) -> None:
        """Refuse more processors than there are."""
        super().require(bench, counters)
        _require_processors(self, self.processors, counters)

    def folder_on(self, bench: Nodes, counters: Counters, /) -> str:
        """Return a folder on the disk."""
        return _own_folder(self, bench, counters)

    def tools(self, bench: Nodes, folder: str, /) -> list[LoadTool]:
        """Return `bw-traffic work`."""
        return [_work(self, bench, folder, ["--jobs", str(self.processors)])]


def kinds_of_load() -> dict[str, type[LoadKind]]:
    """Return the kinds of load, by their names."""
    return {each.kind: each for each in LoadKind.__subclasses__()}


def load_of(kind: str, node: str, duration_s: int, parameters: Mapping[str, int | str]) -> LoadKind:
    """Return a load by its words, as a file has them.

    Raises:
        ConfigError: There is no such kind, or not such a parameter of it; the text says which there are.
    """
    kinds = kinds_of_load()
    if kind not in kinds:
        raise ConfigError(f"load: must be one of {', '.join(kinds)}; found {kind!r}")
    own = {each.name: each for each in fields(kinds[kind]) if each.name not in ("node", "duration_s")}
    for name, value in parameters.items():
        if name not in own:
            raise ConfigError(f"load {kind}: {name}: no such parameter; allowed: {', '.join(own) or 'none'}")
        if str(own[name].type) != type(value).__name__:
            raise ConfigError(f"load {kind}: {name}: {value!r}; allowed: of type {own[name].type}")
    missing = [name for name, each in own.items() if each.kw_only and name not in parameters]
    if missing:
        raise ConfigError(f"load {kind}: {missing[0]}: missing")
    arguments: dict[str, Any] = {**parameters}
    return kinds[kind](node, duration_s, **arguments)


def _stress(load: LoadKind, folder: str, words: Sequence[str]) -> LoadTool:
    """Return stress-ng, which does not start without a folder that it can write into, whatever it does."""
    argv = ["stress-ng", *words, "--temp-path", folder, "--timeout", str(load.duration_s)]
    return LoadTool(f"stress-{load.kind}", load.node, argv, says_ready=False)


def _work(load: LoadKind, bench: Nodes, folder: str, words: Sequence[str]) -> LoadTool:
    argv = [bench.tool(load.node), "work", "--folder", folder, "--duration-ms", str(load.duration_s * 1000)]
    return LoadTool(f"work-{load.kind}", load.node, [*argv, *words])


def _own_folder(load: LoadKind, bench: Nodes, counters: Counters) -> str:
    """Return likewise a folder of this load alone."""
    folder = _folder(load, bench, counters)
    return f"{OWN_FOLDER}{uuid4().hex[:12]}" if folder == FOLDER else folder


def _folder(load: LoadKind, bench: Nodes, counters: Counters) -> str:
    """Return a folder on the disk; where that is not writable, or no Linux's, one of the node's tools."""
    return FOLDER if counters.is_writable(FOLDER) else bench.node(load.node).fresh_folder("load")


def _require_processors(load: LoadKind, asked: int, counters: Counters, /) -> None:
    there = counters.processors
    if asked < 0 or (there is not None and asked > there):
        most = "" if there is None else f"..{there}"
        raise CapabilityError(
            f"load {load.kind}: processors: {asked}; allowed of {load.node}: 0 (all of them), 1{most}"
        )


def _require_stress(load: LoadKind, bench: Nodes) -> None:
    found = bench.node(load.node).run(["sh", "-c", "command -v stress-ng"], check=False)
    if found.exit_code:
        allowed = "; disk with rate_bytes_s, network and compile-like need none"
        raise CapabilityError(f"load {load.kind}: {load.node} has no stress-ng: install it there{allowed}")


def _link_mbit(bench: Nodes, nodes: Sequence[str]) -> int | None:
    """Return the rate of the slowest link of some nodes; None: the bench file says none."""
    return min(_rates_mbit(bench, nodes), default=None)


def _rates_mbit(bench: Nodes, nodes: Sequence[str]) -> Iterator[int]:
    spec = bench.spec
    if spec.virtual is not None:
        yield spec.virtual.rate_mbps
    for link in spec.topology.links.values() if spec.topology is not None else ():
        if link.rate_mbps is not None and set(link.endpoints) & set(nodes):
            yield link.rate_mbps
