# SPDX-License-Identifier: Apache-2.0
"""Benches with a single target, made from a bench file: one that a run builds, and one that outlives runs.

The first has all producers as namespaces, and nothing that a short run can do without. Of the second, one
bench, held here, has the target alone, switched on; another one has the same machine with an address, a key
and no power switch: to a run it is real. Its runs take place in the first one's switch, where the target's
networks are; the producers are addresses there.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from bench.lab.killed_run import Place
from hw.bench import load_bench
from hw.session import open_bench
from hw.virtual import network
from hw.virtual.bench_network import namespace_of

CONNECTION_TIMEOUT_S = 20.0
PRODUCER_NODE = {"kind": "namespace", "clock": "host", "priority": 50, "cpus": [0]}


class OneTarget:
    """What the bench files have in common."""

    def __init__(self, bench_file: Path, target: str) -> None:
        """Read a virtual bench.

        Args:
            bench_file: Its file.
            target: The one of its targets that is wanted.
        """
        spec = load_bench(bench_file)
        if spec.virtual is None:
            raise ValueError(f"{bench_file}: not a virtual bench")
        document: dict[str, Any] = yaml.safe_load(bench_file.read_text())
        section: dict[str, Any] = document["benchwright"]
        self.target = target
        self.node = spec.targets[target].node
        self.host = spec.clocks[spec.reference_clock].node
        self.prefix = ipaddress.IPv4Network(spec.virtual.test_subnet).prefixlen
        self.producers = {number: producer.address for number, producer in spec.producers.items()}
        self.nodes: dict[str, Any] = section["nodes"]
        self.entry: dict[str, Any] = document["targets"][self.node]
        self.virtual: dict[str, Any] = section["virtual"]
        self._section = section
        # A pin of a virtual guest is refused on a bench that says that its machines are real.
        self._target = {key: value for key, value in section["targets"][target].items() if key != "edges"}

    def text(self, suffix: str, entry: dict[str, Any], **rest: Any) -> str:
        """Return a bench file.

        Args:
            suffix: Of its name.
            entry: How the target is powered and reached.
            rest: Keys of `benchwright` that differ.
        """
        section: dict[str, Any] = {
            **{key: self._section[key] for key in ("schema", "simulated", "reference_clock")},
            "name": f"{self.target}-{suffix}",
            "clocks": {
                name: clock
                for name, clock in self._section["clocks"].items()
                if clock["node"] in (self.host, self.node)
            },
            "targets": {self.target: self._target},
            **rest,
        }
        return yaml.safe_dump({"targets": {self.node: entry}, "benchwright": section}, sort_keys=False)


def write_bench(bench_file: Path, target: str, folder: Path) -> Place:
    """Write a bench of one target, which each run builds, boots and takes down."""
    one = OneTarget(bench_file, target)
    file = folder / "built.yaml"
    nodes = {name: one.nodes[name] for name in (one.host, one.node)}
    producers: dict[int, Any] = {}
    for number, address in one.producers.items():
        nodes[f"p{number:02d}"] = PRODUCER_NODE
        producers[number] = {"node": f"p{number:02d}", "address": address}
    file.write_text(one.text("built", one.entry, nodes=nodes, producers=producers, virtual=one.virtual))
    return Place(file, target)


@contextmanager
def open_standing(bench_file: Path, target: str, folder: Path) -> Generator[Place]:
    """Switch a target on for the length of the context; return where runs that find it so take place."""
    one = OneTarget(bench_file, target)
    nodes = {name: one.nodes[name] for name in (one.host, one.node)}
    holder, runs = folder / "holder.yaml", folder / "standing.yaml"
    holder.write_text(one.text("holder", one.entry, nodes=nodes, producers={}, virtual=one.virtual))
    with open_bench(holder) as bench:
        bench.power_on([one.node])
        switch = namespace_of(bench.spec.name, one.host)
        for address in one.producers.values():
            place = ("address", "add", f"{address}/{one.prefix}", "dev", "br-test")
            network.run("ip", "-n", switch, *place)
        runs.write_text(standing_text(one, bench.folder / one.node, switch))
        yield Place(runs, target, switch)


def standing_text(one: OneTarget, keys: Path, switch: str) -> str:
    """Return the bench file of a machine that has nothing but its connection.

    Args:
        one: What is known of the machine.
        keys: Folder with the keys of this life of it.
        switch: Network namespace that it is reached from.
    """
    driver = next(name for name in one.entry["drivers"] if name.endswith("SSHDriver"))
    attributes = {
        "namespace": switch,
        "keyfile": str(keys / "login_key"),
        "known_hosts": str(keys / "known_hosts"),
        "connection_timeout": CONNECTION_TIMEOUT_S,
    }
    service = one.entry["resources"]["NetworkService"]
    entry = {"resources": {"NetworkService": service}, "drivers": {driver: attributes}}
    nodes = {one.host: {**one.nodes[one.host], "kind": "local"}, one.node: one.nodes[one.node]}
    producers = {number: {"node": one.host, "address": address} for number, address in one.producers.items()}
    return one.text("standing", entry, nodes=nodes, producers=producers)
