# SPDX-License-Identifier: Apache-2.0
"""The test network of a bench as data: its switches and links, from which hardware latency follows.

A tree: between any two ends there is one way, so that a packet's way is known without asking a switch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields


class Forwarding(StrEnum):
    """When a switch begins to send a frame on, and so what its latency counts (RFC 1242, 3.8)."""

    STORE_AND_FORWARD = "store-and-forward"  # from the last bit in to the first bit out
    CUT_THROUGH = "cut-through"  # from the first bit in to the first bit out


class Medium(StrEnum):
    """What a cable is made of."""

    COPPER = "copper"
    FIBRE = "fibre"


PROPAGATION_NS_PER_M = {Medium.COPPER: (5.0, 0.7), Medium.FIBRE: (4.9, 0.1)}
"""Of a metre of cable, and by how much a cable may differ.

Copper: twisted pairs of categories 5e to 8, nominal velocity 0.66 to 0.78 of light's; IEEE 802.3, 40.7.2.4,
allows 570 ns of 100 m. Fibre: group index 1.467 (single-mode) to 1.496 (multimode) of data sheets.
"""


@dataclass(frozen=True)
class SwitchSpec:
    """What a switch adds to a frame's way, from its data sheet."""

    name: str
    forwarding: Forwarding
    latency_ns: int
    uncertainty_ns: int


@dataclass(frozen=True)
class LinkSpec:
    """A cable between two ends, nodes or switches."""

    name: str
    endpoints: tuple[str, str]
    rate_mbps: int | None
    """None: of a virtual bench, where a frame by itself passes at once."""
    length_m: float
    ns_per_m: float
    phy_latency_ns: int
    """Of the transceivers at both ends together, one sending, the other receiving."""
    uncertainty_ns: float
    """Of all that it adds to a frame's way."""

    def other(self, end: str) -> str:
        """Return the other end."""
        return self.endpoints[1] if end == self.endpoints[0] else self.endpoints[0]


@dataclass(frozen=True)
class TopologySpec:
    """Switches and links of the test network, by their names."""

    switches: Mapping[str, SwitchSpec]
    links: Mapping[str, LinkSpec]

    def way(self, start: str, end: str) -> tuple[LinkSpec, ...]:
        """Return the links from one end to another, in their order; empty: they are the same, or apart."""
        return self._way(start, end, "") or ()

    def _way(self, start: str, end: str, came_by: str) -> tuple[LinkSpec, ...] | None:
        if start == end:
            return ()
        for link in self.links.values():
            if start in link.endpoints and link.name != came_by:
                rest = self._way(link.other(start), end, link.name)
                if rest is not None:
                    return (link, *rest)
        return None

    def words(self) -> dict[str, str]:
        """Return each switch and each link in words, as they stand in a run's manifest."""
        found = {
            f"switch {each.name}": f"{each.forwarding}, {each.latency_ns} ± {each.uncertainty_ns} ns"
            for each in self.switches.values()
        }
        for each in self.links.values():
            said = "virtual"
            if each.rate_mbps is not None:
                said = f"{each.rate_mbps} Mbit/s, {each.length_m:g} m of {each.ns_per_m:g} ns/m, transceivers"
                said += f" {each.phy_latency_ns} ns, ± {each.uncertainty_ns:g} ns"
            found[f"link {each.name}"] = f"{' to '.join(each.endpoints)}: {said}"
        return found


def read_topology(table: Fields | None, nodes: Collection[str], is_virtual: bool) -> TopologySpec | None:
    """Read the section; None: the bench file has none, and hardware latency is unknown.

    Args:
        table: The section.
        nodes: Names of the bench's nodes.
        is_virtual: Whether the project builds the links.

    Raises:
        ConfigError: A value is out of range, a link leads to nothing, or the links are no tree.
    """
    if table is None:
        return None
    switches = {name: _switch(name, each) for name, each in table.table_of("switches", optional=True).items()}
    endpoints = sorted({*nodes, *switches})
    links = {name: _link(name, each, endpoints, is_virtual) for name, each in table.table_of("links").items()}
    table.finish()
    _check_tree(table, switches, links)
    return TopologySpec(switches, links)


def check_connected(file: Path, topology: TopologySpec, users: Mapping[str, str]) -> None:
    """Refuse a topology in which a node of the test network has no link, or no way to the others.

    Args:
        file: Of the bench, for messages.
        topology: Its section.
        users: Nodes of the test network, and the field that says so of each.

    Raises:
        ConfigError: Names file and field.
    """
    linked = {end for link in topology.links.values() for end in link.endpoints}
    first = next(iter(users), "")
    for node, field in users.items():
        where = f"{file}: benchwright.topology.links: must connect node {node!r} (benchwright.{field})"
        if node not in linked:
            raise ConfigError(f"{where}; no link has it as an end")
        if node != first and not topology.way(first, node):
            raise ConfigError(f"{where} with {first!r}; there is no way between them")


def _switch(name: str, table: Fields) -> SwitchSpec:
    spec = SwitchSpec(
        table.check_name("(name)", name),
        Forwarding(table.text("forwarding", choices=[each.value for each in Forwarding])),
        table.integer("latency_ns", 0, 1_000_000_000),
        table.integer("uncertainty_ns", 0, 1_000_000_000),
    )
    table.finish()
    return spec


def _link(name: str, table: Fields, known: list[str], is_virtual: bool) -> LinkSpec:
    table.rename("ends", "endpoints")
    endpoints = table.texts("endpoints", known)
    if len(endpoints) != 2 or endpoints[0] == endpoints[1]:
        found = f"must be two different ones, found {list(endpoints)}"
        raise ConfigError(f"{table.file}: {table.table}.endpoints: {found}")
    if is_virtual:
        rate_mbps, length_m = _no_cable(table), 0.0
    else:
        rate_mbps, length_m = table.integer("rate_mbps", 1, 1_000_000), table.number("length_m", 0, 100_000)
    medium = Medium(table.text("medium", Medium.COPPER, [each.value for each in Medium]))
    ns_per_m, differs_ns_per_m = PROPAGATION_NS_PER_M[medium]
    if table.has("ns_per_m"):
        ns_per_m, differs_ns_per_m = table.number("ns_per_m", 3.3, 10), 0.0
    spec = LinkSpec(
        table.check_name("(name)", name),
        (endpoints[0], endpoints[1]),
        rate_mbps,
        length_m,
        ns_per_m,
        table.integer("phy_latency_ns", 0, 1_000_000, 0),
        length_m * differs_ns_per_m + table.number("uncertainty_ns", 0, 1_000_000, 0),
    )
    table.finish()
    return spec


def _no_cable(table: Fields) -> None:
    """Refuse rate and length of a virtual bench's link: its shaper lets a frame by itself pass at once."""
    for key in ("rate_mbps", "length_m"):
        if table.has(key):
            raise ConfigError(
                f"{table.file}: {table.table}.{key}: must be left out on a bench with a virtual section:"
                " a frame by itself passes its links at once"
            )


def _check_tree(table: Fields, switches: Mapping[str, SwitchSpec], links: Mapping[str, LinkSpec]) -> None:
    """Refuse a second way between two ends, and a way through a node that is no switch."""
    parts: dict[str, str] = {}

    def part(end: str) -> str:
        while end in parts:
            end = parts[end]
        return end

    by_endpoints: dict[frozenset[str], str] = {}
    by_end: dict[str, str] = {}
    for link in links.values():
        where = f"{table.file}: {table.table}.links.{link.name}"
        one, other = link.endpoints
        twin = by_endpoints.setdefault(frozenset(link.endpoints), link.name)
        if twin != link.name:
            raise ConfigError(f"{where}.endpoints: must be others than those of link {twin!r}")
        for end in link.endpoints:
            before = by_end.setdefault(end, link.name)
            if before != link.name and end not in switches:
                raise ConfigError(
                    f"{where}.endpoints: {end!r} has link {before!r} already; only a switch can have more"
                    f" than one, list it under {table.table}.switches"
                )
        if part(one) == part(other):
            raise ConfigError(
                f"{where}.endpoints: must not close a loop: {one!r} and {other!r} are connected"
            )
        parts[part(one)] = part(other)
    for name in switches:
        if name not in by_end:
            raise ConfigError(f"{table.file}: {table.table}.switches.{name}: must have a link")
