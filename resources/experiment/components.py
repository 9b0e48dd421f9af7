# SPDX-License-Identifier: Apache-2.0
"""What an experiment does at one point: nodes, components on them, what each does in each phase."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from hw.bench import BenchSpec, NodeKind
from hw.path_settings import Flow, PathSettings
from hw.router import PathDirection
from resources.loads.kinds import LoadKind
from resources.tools.kernel_recorder import KernelEvents

START, WAIT, STOP, RUN = "start", "wait", "stop", "run"
"""What components do: begin and become ready, come to the end, be ended, begin and come to the end."""
COLLECT = "collect"
BROUGHT = "@"
"""Begins a word of a command that is a file of this machine."""


@dataclass(frozen=True)
class ExperimentNode:
    """A machine that takes part.

    Attributes:
        name: In the file.
        node: In the bench's file.
        address: On the test network; empty: it has none.
        kernel: What `uname -r` has to hold; empty: any.
        tools: Programs that have to be there.
    """

    name: str
    node: str
    address: str
    kernel: str = ""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Component:
    """What takes part on a node.

    Attributes:
        name: In the file.
        node: Name of its machine, in the file; empty: the router's.
    """

    actions: ClassVar[tuple[str, ...]] = (START, STOP)
    """What it can do in a phase."""
    has_phases: ClassVar[bool] = False
    name: str
    node: str

    @property
    def words(self) -> str:
        """Return what it is, for a plan."""
        raise NotImplementedError


@dataclass(frozen=True)
class ProgramComponent(Component):
    """A program on a node.

    Attributes:
        tool: Native tool that begins its command line; empty: `command` begins with a program.
        command: Words; one that begins with `@` is a file of this machine, brought to the node.
        bring: Files of this machine that lie beside those of its command.
        ready: When it is; `phases`: it has phases of its own.
        ok: Exit codes besides 0 that are no failure.
        files: That it leaves in its folder, and that are collected; may hold `*`.
        points: Events of the program that are recorded.
        reset: Command that undoes what the program changes on its node.
        output_mib: What it may write to stdout and stderr.
        grace_ms: From SIGTERM to SIGKILL.
    """

    actions: ClassVar[tuple[str, ...]] = (START, WAIT, STOP, RUN)
    tool: str
    command: tuple[str, ...]
    bring: tuple[str, ...] = ()
    ready: str = "at-once"
    ok: tuple[int, ...] = ()
    files: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    output_mib: int = 64
    grace_ms: int = 2000

    @property
    def brought(self) -> tuple[str, ...]:
        """Return the files of this machine that it needs on its node."""
        named = (word.removeprefix(BROUGHT) for word in self.command if word.startswith(BROUGHT))
        return (*named, *self.bring)

    @property
    def has_phases(self) -> bool:  # type: ignore[override]
        """Tell whether it has phases of its own."""
        return self.ready == "phases"

    @property
    def words(self) -> str:
        """Return its command line; a file that is brought stands there by its name alone."""
        words = [
            BROUGHT + Path(word.removeprefix(BROUGHT)).name if word.startswith(BROUGHT) else word
            for word in self.command
        ]
        return f"{shlex.join([*([self.tool] if self.tool else []), *words])}, ready {self.ready}"


@dataclass(frozen=True)
class LoadComponent(Component):
    """A load of a node (docs/loads.md).

    Attributes:
        load: What it is; its nodes are the bench's.
    """

    load: LoadKind

    @property
    def words(self) -> str:
        """Return the load in words."""
        facts = self.load.facts()
        said = [f"{key} = {value!r}" for key, value in facts.items() if key not in ("kind", "node")]
        return f"load {self.load.kind}, {', '.join(said)}"


@dataclass(frozen=True)
class KernelComponent(Component):
    """Events of a node's kernel.

    Attributes:
        kernel: Which are recorded.
        optional: A node that cannot record goes without; why is kept.
    """

    kernel: KernelEvents
    optional: bool = False

    @property
    def words(self) -> str:
        """Return the events in words."""
        full = "the newest" if self.kernel.overwrite else "the first"
        said = f"{full} {self.kernel.buffer_kb} KiB a CPU of {', '.join(self.kernel.events)}"
        return said + (", where the node can" if self.optional else "")


@dataclass(frozen=True)
class PathComponent(Component):
    """What the router does to the packets from one node to another.

    Attributes:
        path: The link of it that they take.
        schedule: Times in s from its start, and the settings from then on; `start` sets the first alone.
        flows: Packets that alone are treated; none: all.
    """

    actions: ClassVar[tuple[str, ...]] = (START, RUN, STOP)
    path: PathDirection
    schedule: tuple[tuple[float, PathSettings], ...]
    flows: tuple[Flow, ...] = ()

    @property
    def words(self) -> str:
        """Return the settings in words."""
        said = [f"from {at_s:g} s: {_set(settings)}" for at_s, settings in self.schedule]
        flows = f", of {'; '.join(map(_set, self.flows))}" if self.flows else ""
        return f"link {self.path.link} towards {self.path.towards}{flows}, {'; '.join(said)}"


def _set(settings: object) -> str:
    """Return what differs from the default, in words."""
    default = {each.name: each.default for each in fields(settings)}  # type: ignore[arg-type]
    said = [f"{name} = {value}" for name, value in vars(settings).items() if value != default[name]]
    return ", ".join(said) or "nothing"


@dataclass(frozen=True)
class Threshold:
    """What a number has to come down to.

    Attributes:
        key: Of the component's last answer.
        at_most: Its magnitude, then.
        every_s: Time between two looks.
    """

    key: str
    at_most: float
    every_s: float


@dataclass(frozen=True)
class Task:
    """What a component does in a phase.

    Attributes:
        component: Its name.
        actions: One after the other: `start`, `wait`, `stop`, `run`, or a phase of its own.
        parameters: Of a phase of its own.
        until: Repeat it until a number is small enough.
    """

    component: str
    actions: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    until: Threshold | None = None


@dataclass(frozen=True)
class Phase:
    """What happens at once; the next one begins when every component has done its task."""

    name: str
    deadline_s: float
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class ExperimentSpec:
    """An experiment at one point."""

    nodes: Mapping[str, ExperimentNode]
    components: Mapping[str, Component]
    phases: tuple[Phase, ...]
    after: tuple[tuple[str, ...], ...]
    """Commands of this machine for the folder of a point when it is complete."""

    def own_phases(self, component: str) -> frozenset[str]:
        """Return the phases of its own that a component is asked for."""
        actions = (
            task.actions for phase in self.phases for task in phase.tasks if task.component == component
        )
        return frozenset(action for each in actions for action in each) - {START, WAIT, STOP, RUN}

    @property
    def longest_s(self) -> float:
        """Return how long a point takes at most, without what the bench needs for itself."""
        return sum(phase.deadline_s for phase in self.phases)


def machines_of(spec: ExperimentSpec, bench: BenchSpec) -> list[str]:
    """Return the bench's names of the machines that have power of their own."""
    return [each.node for each in spec.nodes.values() if bench.nodes[each.node].kind is NodeKind.LABGRID]
