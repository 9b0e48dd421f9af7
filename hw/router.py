# SPDX-License-Identifier: Apache-2.0
"""The router of a bench as data: on which links of the test network it can be, and which way is which.

A bridge or a router between two subnets: who asks for a path does not know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hw.errors import CapabilityError, ConfigError
from hw.fields import Fields
from hw.topology import TopologySpec


@dataclass(frozen=True)
class PathDirection:
    """A link of the bench, and towards which of its two ends packets go."""

    link: str
    towards: str


@dataclass(frozen=True)
class RouterSpec:
    """The node with kernel netem."""

    node: str
    interfaces: tuple[str, str]
    """On its way out towards the first end of each of its links, and towards the second; empty: unknown."""
    links: Mapping[str, tuple[str, str]]
    """Those that it can be on, and their two ends."""

    def interface(self, path: PathDirection) -> str:
        """Return the interface on whose way out packets of a path are treated.

        Raises:
            ConfigError: It cannot be on the link, or the link has no such end.
            CapabilityError: The bench file names no interface for this direction.
        """
        if path.link not in self.links:
            found = f"must be one of {', '.join(self.links)}, found {path.link!r}"
            raise ConfigError(f"path.link: {found}")
        endpoints = self.links[path.link]
        if path.towards not in endpoints:
            raise ConfigError(f"path.towards: must be one of {', '.join(endpoints)}, found {path.towards!r}")
        interface = self.interfaces[endpoints.index(path.towards)]
        if not interface:
            raise CapabilityError(
                f"router {self.node}: its interface towards {path.towards} is not known;"
                " put benchwright.topology.router in the place of benchwright.impairment"
            )
        return interface

    def path(self, start: str, end: str, topology: TopologySpec | None) -> PathDirection | None:
        """Return the path of the router that packets from one node to another take; None: there is none.

        Args:
            start: Where they come from.
            end: Where they go to.
            topology: Of the bench; None: its links are those from a node to the switch.
        """
        if topology is None:
            endpoints = self.links.get(start)
            return PathDirection(start, endpoints[1]) if endpoints is not None else None
        at = start
        for link in topology.way(start, end):
            at = link.other(at)
            if link.name in self.links:
                return PathDirection(link.name, at)
        return None


def read_router(table: Fields | None, topology: TopologySpec | None, is_virtual: bool) -> RouterSpec | None:
    """Read `router` of the section `topology`.

    Args:
        table: `router`; None: there is none.
        topology: What else the section says.
        is_virtual: Whether the project plugs the router into links: then it can be on all by default.

    Raises:
        ConfigError: Names file, field and range.
    """
    if table is None or topology is None:
        return None
    node, interfaces = table.text("node"), table.texts("interfaces", None)
    every = list(topology.links)
    links = table.texts("links", every, every) if is_virtual else table.texts("links", every)
    table.finish()
    if len(interfaces) != 2 or interfaces[0] == interfaces[1] or not all(interfaces):
        found = f"must be two different ones, found {list(interfaces)}"
        raise ConfigError(f"{table.file}: {table.table}.interfaces: {found}")
    if not links:
        raise ConfigError(f"{table.file}: {table.table}.links: must name at least one link")
    endpoints = {name: topology.links[name].endpoints for name in links}
    return RouterSpec(node, (interfaces[0], interfaces[1]), endpoints)


@dataclass(frozen=True)
class OlderImpairment:
    """The section `impairment` of older bench files: the same router, known towards the target alone."""

    node: str
    interface: str
    producers: tuple[int, ...]
    """Producers whose link it can be on; empty: any."""
    time_server: bool
    """Whether it is on the link of the time server; on a virtual bench it can always be put there."""

    def router(
        self, producers: Mapping[int, str], others: Collection[str], topology: TopologySpec | None
    ) -> RouterSpec:
        """Return it as a router.

        Args:
            producers: Nodes of the producers, by number.
            others: Further nodes whose link it can be on.
            topology: Of the bench.
        """
        known = [node for number, node in producers.items() if not self.producers or number in self.producers]
        links: dict[str, tuple[str, str]] = {}
        for node in dict.fromkeys([*known, *others]):
            name, other = node, "switch"
            for link in topology.links.values() if topology is not None else ():
                if node in link.endpoints:
                    name, other = link.name, link.other(node)
            links[name] = (node, other)
        return RouterSpec(self.node, ("", self.interface), links)


def read_older_impairment(table: Fields | None) -> OlderImpairment | None:
    """Read the section `impairment`, which files of version 0.2.1 have; None: it is not there."""
    if table is None:
        return None
    spec = OlderImpairment(
        table.text("node"),
        table.text("interface"),
        table.integers("producers", 1, 655, ()),
        table.boolean("time_server", False),
    )
    table.finish()
    return spec
