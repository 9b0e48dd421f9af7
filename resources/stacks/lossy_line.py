# SPDX-License-Identifier: Apache-2.0
"""A test network that loses frames, by the bench's own switch: at each port of a producer and of the target.

`bw-drop` takes frames away as they come to the switch, data and acknowledgements alike. A frame that a kernel
leaves to the card to cut (segmentation offload) would be lost as a whole, up to 64 KB: while frames are lost
the nodes cut by themselves, as they are on the wire.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hw.bench import SWITCH
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.protocols import Node
from hw.tools import local_tool
from reports.stacks.loss import KnownLoss, PortLoss
from resources.network_stack import interface_on
from resources.tools.experiment import Experiment

TOOL = "bw-drop"
ENDING_S = 15.0
OFFLOADS = {"tso": "tcp-segmentation-offload", "gso": "generic-segmentation-offload"}
"""Of ethtool: as it is set, and as it is shown."""
FRAMES_LOST_MIN = 20
"""Where so many were to be lost and none was, the line is not what was asked."""


def why_no_lossy_line(bench: OpenBench, nodes: Sequence[str]) -> str:
    """Return why a bench cannot have one; empty: it can. Its nodes are on."""
    if not bench.virtual.switch_ports(nodes):
        return "frames are lost by the switch of a bench that this machine makes; here is none"
    for name in nodes:
        if bench.node(name).run(["ethtool", "--version"], check=False).exit_code != 0:
            return f"{name} has no ethtool, by which it would cut segments by itself"
    return ""


@contextmanager
def lossy_line(
    experiment: Experiment, bench: OpenBench, nodes: Sequence[str], loss_ppm: int, seed: int, folder: Path
) -> Generator[Callable[[], KnownLoss], None, None]:
    """Lose frames while the context lasts.

    Args:
        experiment: It ends the tool if nobody else does.
        bench: An open bench; the nodes are on.
        nodes: The target's and those of the producers.
        loss_ppm: Of a million frames.
        seed: Of the chance; each port has its own of it.
        folder: What was lost goes here.

    Yields:
        What tells, behind the context, what was lost.

    Raises:
        CapabilityError: The bench's switch is no part of this machine, or a node cannot cut frames by itself.
        MeasurementError: Nothing was lost where much was to be.
    """
    if why := why_no_lossy_line(bench, nodes):
        raise CapabilityError(why)
    ports = bench.virtual.switch_ports(nodes)
    folder.mkdir(parents=True, exist_ok=True)
    found: list[KnownLoss] = []
    with ExitStack() as whole:
        for name in nodes:
            whole.enter_context(_cut_by_itself(bench.node(name), interface_on(bench, name)))
        argv = [str(local_tool(TOOL)), *ports, "--loss-ppm", str(loss_ppm), "--seed", str(seed)]
        job = experiment.add(bench.node(SWITCH).start(argv, folder / TOOL))
        job.wait_ready()
        yield lambda: found[0]
        job.stop()
        counts = experiment.collect(job, ENDING_S).require_done().result["interfaces"]
        lost = [PortLoss(port, counts[port]["seen"], counts[port]["dropped"]) for port in ports]
        found.append(KnownLoss(loss_ppm, seed, tuple(lost)))
        found[0].write(folder)
        if not found[0].dropped and found[0].seen * loss_ppm >= FRAMES_LOST_MIN * 1_000_000:
            raise MeasurementError(f"of {found[0].seen} frames none was lost, asked were {loss_ppm} ppm")


@contextmanager
def _cut_by_itself(node: Node, interface: str) -> Generator[None, None, None]:
    """Switch segmentation offloads off, and back on again."""
    shown = node.run(["ethtool", "-k", interface])
    on = [
        word
        for word, name in OFFLOADS.items()
        if re.search(rf"^{name}: on(?! \[fixed\])", shown.stdout, re.MULTILINE)
    ]
    _set(node, interface, on, "off")
    try:
        yield
    finally:
        if node.powered:
            _set(node, interface, on, "on")


def _set(node: Node, interface: str, words: Sequence[str], state: str) -> None:
    if words:
        node.run(["ethtool", "-K", interface, *(part for word in words for part in (word, state))])
