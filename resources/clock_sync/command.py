# SPDX-License-Identifier: Apache-2.0
"""How `bw-clock` is told on a node which clocks to read: what has to be loaded is brought there."""

from __future__ import annotations

from hw.open_bench import Nodes
from hw.plug_in import PREFIX, plug_in_of


def clock_command(bench: Nodes, node_name: str, verb: str, **clocks: str) -> list[str]:
    """Return the beginning of a command line of `bw-clock` on a node; its other options follow.

    Args:
        bench: An open bench; the node is on.
        node_name: Of the node.
        verb: `compare`, `latency`.
        clocks: Option → clock, as the bench file names it. A plug-in takes the dynamic build of the program,
            and its file is brought to the node where it is one of this machine.

    Raises:
        CapabilityError: The node can load nothing.
        ConfigError: A plug-in's file is missing.
    """
    there: list[str] = []
    loads = False
    for option, clock in clocks.items():
        plug_in = plug_in_of(clock)
        if plug_in is not None:
            loads = True
            if not plug_in.is_on_node:
                file = bench.library(node_name, plug_in.beside(bench.spec.path))
                clock = f"{PREFIX}{file}{plug_in.arguments}"
        there += [f"--{option}", clock]
    tool = bench.tool(node_name, "bw-clock", dynamic=True) if loads else bench.tool(node_name, "bw-clock")
    return [tool, verb, *there]
