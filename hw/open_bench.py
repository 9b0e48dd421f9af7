# SPDX-License-Identifier: Apache-2.0
"""What suites, keywords and drivers ask of an open bench and of its parts, whoever holds it.

`hw.session.Bench` is one. Methods raise CapabilityError where the bench lacks what is asked for, and
BenchError where a machine of it does not do what it should.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from hw.bench import BenchSpec, TargetSpec
from hw.edges import EdgeRole
from hw.protocols import EdgeCapture, Node, Oscilloscope, Router, TimedOutput
from hw.virtual.machine_use import MachineUse


class Nodes(Protocol):
    """The nodes of an open bench, and native tools on them."""

    @property
    def spec(self) -> BenchSpec:
        """Return what the bench file says."""
        ...

    def node(self, name: str) -> Node:
        """Return a node that is on."""
        ...

    def tool(self, node_name: str, tool: str = "bw-traffic", *, dynamic: bool = False) -> str:
        """Return the path of a native tool on a node, copying it there first where need be.

        A dynamic one can load libraries, and has run on the node.
        """
        ...

    def library(self, node_name: str, library: str | Path) -> str:
        """Return the path of a shared library on a node: of the native tools by name, or any file by path."""
        ...


class PoweredNodes(Nodes, Protocol):
    """The nodes of an open bench as machines that are on or off."""

    def power_on(self, names: Iterable[str]) -> None:
        """Power up nodes, all at once; return when each answers over SSH."""
        ...

    def is_off(self, name: str) -> bool:
        """Tell whether a node is off, or has lost its power."""
        ...

    def power_off(self, name: str) -> None:
        """Cut the power of a node; harmless when it is off or has no switchable power."""
        ...

    def cut_power(self, name: str) -> None:
        """Take the power away from a node in the middle of its work; `power_on` gives it back."""
        ...

    def restart(self, name: str) -> None:
        """Have a node restart by itself in the middle of its work; return when it is not reached any more."""
        ...

    def begin_fault(self, name: str) -> None:
        """Let the fault that a node was opened with begin, where it was not there from the start."""
        ...

    def console(self, name: str) -> str:
        """Return what a guest or a board has said on its console, or an empty text where nobody listens."""
        ...

    def consoles(self, name: str) -> list[str]:
        """Return what a guest or a board has said since the bench was opened."""
        ...


class Instruments(Protocol):
    """The instruments of an open bench, by their names in the bench file."""

    def oscilloscope(self, name: str = "") -> Oscilloscope:
        """Return an oscilloscope, connected; whoever asks closes it."""
        ...

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return the facts of each instrument by name; identities of those opened so far."""
        ...

    def edge_port(self, scope_name: str = "") -> tuple[str, int] | None:
        """Return address and port where a virtual oscilloscope takes edges; None: a real instrument."""
        ...

    def timed_output(self, target: str, role: EdgeRole | str, folder: Path | None = None) -> TimedOutput:
        """Return an output pin of a target; its node must be on."""
        ...

    def edge_capture(self, target: str, role: EdgeRole | str, folder: Path | None = None) -> EdgeCapture:
        """Return an input pin of a target; its node must be on."""
        ...


class VirtualBench(Protocol):
    """What of an open bench is made by this machine: its guests and its switch; nothing where all is real."""

    def powered_guests(self) -> set[str]:
        """Return the nodes that are on and whose power is this machine's, to be cut at will; none is real."""
        ...

    def accelerator(self) -> str:
        """Return what runs the guests (`kvm`, `tcg`), or `none` on a bench that has none."""
        ...

    def give_way(self, name: str, other: str) -> None:
        """Let a virtual machine run on any CPU of this machine, but not before another one."""
        ...

    def take_back_way(self, name: str) -> None:
        """Let a virtual machine run again where its bench file says; harmless where it gave no way."""
        ...

    def pause(self, name: str, duration_s: float) -> None:
        """Stop a guest, with all its clocks, for so long; return when it goes on."""
        ...

    def emulating_threads(self, node_name: str) -> dict[str, int]:
        """Return the ids of this machine's threads that emulate a guest by name; empty: a real machine."""
        ...

    def target_account(self) -> Path | None:
        """Return the file of what targets that share this machine's CPUs run there; None: there are none."""
        ...

    def machine_use(self) -> MachineUse | None:
        """Return what has run on this machine so far; None: the target is a real one, or nobody knows."""
        ...

    def cpu_accounts(
        self, parts: Mapping[str, Collection[str]]
    ) -> AbstractContextManager[Mapping[str, Path]]:
        """Count what runs now on nodes with what targets run on the CPUs of this machine, by parts."""
        ...

    def timecard_page(self, node_name: str) -> Path | None:
        """Return the file of the page that this machine shares with a guest; None for a real machine."""
        ...

    def switch_ports(self, nodes: Sequence[str]) -> tuple[str, ...]:
        """Return the ports of the switch to which nodes are connected; none where it is a real switch."""
        ...

    def capture_ends(self, node_name: str, target: TargetSpec) -> tuple[str, ...]:
        """Return where packets from a node to a target are seen before and behind the impairment node."""
        ...


class OpenBench(PoweredNodes, Protocol):
    """An open bench: its nodes, its instruments and what of it is virtual."""

    @property
    def host(self) -> Node:
        """Return this machine, outside of all network namespaces; its tools end with this process."""
        ...

    @property
    def instruments(self) -> Instruments:
        """Return its instruments."""
        ...

    @property
    def virtual(self) -> VirtualBench:
        """Return what of it is virtual: no guests where all machines are real."""
        ...

    def described_by(self, spec: BenchSpec) -> OpenBench:
        """Return this bench as another description has it: the same nodes, on or off for both."""
        ...

    def router(self) -> Router:
        """Return the router of this bench."""
        ...
