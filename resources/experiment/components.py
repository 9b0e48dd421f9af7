# SPDX-License-Identifier: Apache-2.0
"""What an experiment does at one point: nodes, components on them, what each does in each phase."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from hw.bench import BenchSpec, NodeKind
from hw.errors import ConfigError
from hw.fields import Fields
from resources.experiment.substitution import Scalar, is_scalar, text_of

START, WAIT, STOP, RUN = "start", "wait", "stop", "run"
OWN_ACTIONS = (START, WAIT, STOP, RUN)
"""Of every component: begin and become ready, come to its end, be ended, begin and come to its end."""
DEADLINE_MAX_S = 604_800.0
OUTPUT_MAX_MIB = 65_536
READY = re.compile(r"at-once|json|phases|line:.+|file:.+|(tcp|udp):([0-9]{1,5})")
COLLECT = "collect"
BROUGHT = "@"
"""Begins a word of a command that is a file of this machine."""
PRODUCER = "producer"


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
    """A program on a node.

    Attributes:
        name: In the file.
        node: Name of its machine, in the file.
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

    name: str
    node: str
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
    def has_phases(self) -> bool:
        """Tell whether it has phases of its own."""
        return self.ready == "phases"


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

    @property
    def longest_s(self) -> float:
        """Return how long a point takes at most, without what the bench needs for itself."""
        return sum(phase.deadline_s for phase in self.phases)


def read_experiment(table: Fields, bench: BenchSpec) -> ExperimentSpec:
    """Return what is done; every name in the table is replaced.

    Raises:
        ConfigError: Names file and key, and what is allowed.
    """
    for key in ("schema", "name", "bench"):
        table.text(key)
    for key in ("axes", "order", "repeats", "seed"):
        if table.has(key):
            table.any(key)
    nodes = read_nodes(table, bench)
    components = {name: _component(name, each, nodes) for name, each in table.table_of("components").items()}
    phases = tuple(_phase(each, components) for each in table.tables("phases"))
    after = tuple(_command(each) for each in table.tables("after", optional=True))
    table.finish()
    _check_course(table.file, components, phases)
    return ExperimentSpec(nodes, components, phases, after)


def read_nodes(table: Fields, bench: BenchSpec) -> dict[str, ExperimentNode]:
    """Return the machines of an experiment, each another one of the bench.

    Raises:
        ConfigError: The bench has no such machine, or none that is left.
    """
    tables = table.table_of("nodes")
    found: dict[str, ExperimentNode] = {}
    taken = {each.text("node") for each in tables.values() if each.has("node")}
    for name, each in tables.items():
        each.check_name("(name)", name)
        node = _named(each, bench) if each.has("node") else _wanted(each, bench, taken)
        taken.add(node)
        found[name] = ExperimentNode(
            name, node, _address(bench, node), each.text("kernel", ""), each.texts("tools", None, ())
        )
        each.finish()
    if not found:
        raise ConfigError(f"{table.file}: nodes: must name at least one")
    seen: dict[str, str] = {}
    for name, each in found.items():
        before = seen.setdefault(each.node, name)
        if before != name:
            raise ConfigError(f"{table.file}: nodes.{name}.node: must be another one than of nodes.{before}")
    return found


def _named(table: Fields, bench: BenchSpec) -> str:
    if table.has("kind"):
        raise ConfigError(f"{table.file}: {table.table}: must have node or kind, found both")
    return table.text("node", choices=sorted(bench.nodes))


def _wanted(table: Fields, bench: BenchSpec, taken: set[str]) -> str:
    kind = table.text("kind", choices=sorted({*bench.targets, PRODUCER}))
    if kind == PRODUCER:
        all_of_kind = [each.node for _, each in sorted(bench.producers.items())]
    else:
        all_of_kind = [bench.targets[kind].node]
    left = [node for node in all_of_kind if node not in taken]
    if not left:
        raise ConfigError(
            f"{table.file}: {table.table}.kind: bench {bench.name} has {len(all_of_kind)} of kind {kind!r},"
            " and all take part already"
        )
    return left[0]


def _address(bench: BenchSpec, node: str) -> str:
    for each in (*bench.producers.values(),):
        if each.node == node:
            return each.address
    for target in bench.targets.values():
        if target.node == node:
            return target.test_address
    server = bench.time_server
    return server.address if server is not None and server.node == node else ""


def _component(name: str, table: Fields, nodes: Mapping[str, ExperimentNode]) -> Component:
    table.check_name("(name)", name)
    tool = table.text("tool", "")
    ready = table.text("ready", "json" if tool else "at-once")
    found = READY.fullmatch(ready)
    if found is None or (found[2] is not None and not 1 <= int(found[2]) <= 65_535):
        raise ConfigError(
            f"{table.file}: {table.table}.ready: must be at-once, json, phases, line:TEXT, file:PATH,"
            f" tcp:PORT or udp:PORT, found {ready!r}"
        )
    component = Component(
        name,
        table.text("node", choices=sorted(nodes)),
        tool,
        _words(table, "arguments" if tool else "command"),
        table.texts("bring", None, ()),
        ready,
        table.integers("ok", 0, 255, ()),
        table.texts("files", None, ()),
        table.texts("points", None, ()),
        _words(table, "reset", optional=True),
        table.integer("output_mib", 1, OUTPUT_MAX_MIB, 64),
        table.integer("grace_ms", 0, 600_000, 2000),
    )
    table.finish()
    if not tool and not component.command:
        raise ConfigError(f"{table.file}: {table.table}.command: must begin with a program, found nothing")
    for file in component.files:
        if file.startswith("/") or ".." in file.split("/"):
            raise ConfigError(f"{table.file}: {table.table}.files: must lie in its folder, found {file!r}")
    if component.has_phases and component.points:
        raise ConfigError(f"{table.file}: {table.table}.points: must be left out where ready is phases")
    return component


def _words(table: Fields, key: str, *, optional: bool = False) -> tuple[str, ...]:
    """Return the words of a command; a number among them may stand as it is, or for an axis."""
    if optional and not table.has(key):
        return ()
    value = table.any(key)
    if not isinstance(value, list) or not all(map(is_scalar, cast("list[object]", value))):
        raise ConfigError(f"{table.file}: {table.table}.{key}: must be a list of words, found {value!r}")
    return tuple(text_of(each) for each in cast("list[Scalar]", value))


def _phase(table: Fields, components: Mapping[str, Component]) -> Phase:
    name = table.check_name("name", table.text("name"))
    deadline_s = table.number("deadline_s", 0.1, DEADLINE_MAX_S)
    inner = table.child("tasks")
    assert inner is not None
    tasks: list[Task] = []
    for component in inner.names():
        if component not in components:
            known = ", ".join(components)
            raise ConfigError(
                f"{table.file}: {inner.table}.{component}: no component of that name; there are: {known}"
            )
        tasks.append(_task(inner, component, components[component]))
    inner.finish()
    table.finish()
    if not tasks:
        raise ConfigError(f"{table.file}: {inner.table}: must have something to do")
    if name == COLLECT:
        raise ConfigError(f"{table.file}: {table.table}.name: {COLLECT} follows by itself, as the last phase")
    return Phase(name, deadline_s, tuple(tasks))


def _task(table: Fields, name: str, component: Component) -> Task:
    value = table.any(name)
    where = f"{table.file}: {table.table}.{name}"
    parameters: Mapping[str, Any] = {}
    until = None
    if isinstance(value, Mapping):
        inner = Fields(cast("Mapping[str, Any]", value), table.file, f"{table.table}.{name}")
        value = inner.any("do")
        if inner.has("parameters"):
            found = inner.any("parameters")
            if not isinstance(found, Mapping) or not component.has_phases:
                raise ConfigError(
                    f"{where}.parameters: must be a table, of a component whose ready is phases"
                )
            parameters = cast("Mapping[str, Any]", found)
        until = _threshold(inner.child("until", optional=True))
        inner.finish()
    actions = [value] if isinstance(value, str) else value
    if not isinstance(actions, list) or not actions:
        raise ConfigError(f"{where}: must be an action, a list of them, or a table with do, found {value!r}")
    words = cast("list[object]", actions)
    for action in words:
        if not isinstance(action, str) or not (action in OWN_ACTIONS or component.has_phases):
            allowed = "a phase of its own, or one of " if component.has_phases else "one of "
            raise ConfigError(f"{where}: must be {allowed}{', '.join(OWN_ACTIONS)}, found {action!r}")
        table.check_name(name, action)
    if until is not None and not (words == [RUN] or (len(words) == 1 and words[0] not in OWN_ACTIONS)):
        raise ConfigError(
            f"{where}.until: must stand beside do = 'run', or a phase of its own, found {actions!r}"
        )
    return Task(name, tuple(cast("list[str]", actions)), parameters, until)


def _threshold(table: Fields | None) -> Threshold | None:
    if table is None:
        return None
    found = Threshold(
        table.text_that_says("key"),
        table.number("at_most", 0, 1e18),
        table.number("every_s", 0, 3600, 0.0),
    )
    table.finish()
    return found


def _command(table: Fields) -> tuple[str, ...]:
    command = _words(table, "command")
    table.finish()
    if not command:
        raise ConfigError(f"{table.file}: {table.table}.command: must begin with a program, found nothing")
    return command


def _check_course(file: str, components: Mapping[str, Component], phases: tuple[Phase, ...]) -> None:
    """Refuse what can only fail: to wait for what was not started, to start twice, never to be used."""
    if not phases:
        raise ConfigError(f"{file}: phases: must have at least one")
    names = [phase.name for phase in phases]
    for number, name in enumerate(names, 1):
        if names.index(name) != number - 1:
            raise ConfigError(
                f"{file}: phases[{number}].name: must be another one than before, found {name!r}"
            )
    runs: dict[str, bool] = {}
    for number, phase in enumerate(phases, 1):
        for task in phase.tasks:
            where = f"{file}: phases[{number}].tasks.{task.component}"
            for action in task.actions:
                running = runs.get(task.component, False)
                if action in (START, RUN) and running:
                    raise ConfigError(f"{where}: {action}: it runs already")
                if action not in (START, RUN) and not running:
                    raise ConfigError(f"{where}: {action}: must come after start")
                runs[task.component] = action not in (WAIT, STOP, RUN)
    unused = [name for name in components if name not in runs]
    if unused:
        raise ConfigError(f"{file}: components.{unused[0]}: does nothing in any phase")


def machines_of(spec: ExperimentSpec, bench: BenchSpec) -> list[str]:
    """Return the bench's names of the machines that have power of their own."""
    return [each.node for each in spec.nodes.values() if bench.nodes[each.node].kind is NodeKind.LABGRID]
