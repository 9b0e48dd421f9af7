# SPDX-License-Identifier: Apache-2.0
"""Nodes, components and phases of the file of an experiment, at one point: every name in it is replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, cast

from hw.bench import BenchSpec
from hw.errors import CapabilityError, ConfigError
from hw.fields import FieldError, Fields
from hw.path_settings import Distribution, Flow, GilbertElliott, PathSettings, RandomLoss
from hw.router import PathDirection
from resources.experiment.components import (
    COLLECT,
    RUN,
    START,
    STOP,
    WAIT,
    Component,
    ExperimentNode,
    ExperimentSpec,
    KernelComponent,
    LoadComponent,
    PathComponent,
    Phase,
    ProgramComponent,
    Task,
    Threshold,
)  # fmt: skip
from resources.experiment.substitution import Scalar, is_scalar, text_of
from resources.loads.kinds import LONGEST_S, kinds_of_load, load_of
from resources.tools.kernel_recorder import KernelEvents

DEADLINE_MAX_S = 604_800.0
OUTPUT_MAX_MIB = 65_536
BUFFER_MAX_KB = 1_000_000
READY = re.compile(r"at-once|json|phases|line:.+|file:.+|(tcp|udp):([0-9]{1,5})")
PRODUCER = "producer"


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
    components = {
        name: _component(name, each, nodes, bench) for name, each in table.table_of("components").items()
    }
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
        raise FieldError(table.file, "nodes", "must name at least one")
    seen: dict[str, str] = {}
    for name, each in found.items():
        before = seen.setdefault(each.node, name)
        if before != name:
            raise FieldError(table.file, f"nodes.{name}.node", f"must be another one than of nodes.{before}")
    return found


def _named(table: Fields, bench: BenchSpec) -> str:
    if table.has("kind"):
        raise table.fault("", "must have node or kind, found both")
    return table.text("node", choices=sorted(bench.nodes))


def _wanted(table: Fields, bench: BenchSpec, taken: set[str]) -> str:
    kind = table.text("kind", choices=sorted({*bench.targets, PRODUCER}))
    if kind == PRODUCER:
        all_of_kind = [each.node for _, each in sorted(bench.producers.items())]
    else:
        all_of_kind = [bench.targets[kind].node]
    left = [node for node in all_of_kind if node not in taken]
    if not left:
        raise table.fault(
            "kind", f"bench {bench.name} has {len(all_of_kind)} of kind {kind!r}, and all take part already"
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


def _component(name: str, table: Fields, nodes: Mapping[str, ExperimentNode], bench: BenchSpec) -> Component:
    table.check_name("(name)", name)
    kinds = {"load": _load, "kernel": _kernel, "path": _path}
    named = [key for key in (*kinds, "tool", "command") if table.has(key)]
    if len(named) != 1:
        raise table.fault(
            "", f"must have one of tool, command, {', '.join(kinds)}; found {', '.join(named) or 'none'}"
        )
    read = kinds.get(named[0])
    component = read(name, table, nodes, bench) if read is not None else _program(name, table, nodes)
    table.finish()
    return component


def _node(table: Fields, nodes: Mapping[str, ExperimentNode]) -> str:
    return table.text("node", choices=sorted(nodes))


def _program(name: str, table: Fields, nodes: Mapping[str, ExperimentNode]) -> ProgramComponent:
    tool = table.text_that_says("tool") if table.has("tool") else ""
    ready = table.text("ready", "json" if tool else "at-once")
    found = READY.fullmatch(ready)
    if found is None or (found[2] is not None and not 1 <= int(found[2]) <= 65_535):
        raise table.fault(
            "ready",
            f"must be at-once, json, phases, line:TEXT, file:PATH, tcp:PORT or udp:PORT, found {ready!r}",
        )
    component = ProgramComponent(
        name,
        _node(table, nodes),
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
    if not tool and not component.command:
        raise table.fault("command", "must begin with a program, found nothing")
    for file in component.files:
        if not file or "/" in file:
            raise table.fault("files", f"must be names in its folder, without /, found {file!r}")
    if component.has_phases and component.points:
        raise table.fault("points", "must be left out where ready is phases")
    return component


def _load(name: str, table: Fields, nodes: Mapping[str, ExperimentNode], _bench: BenchSpec) -> LoadComponent:
    """Read a load; nodes in it are the experiment's, its address is by default that of the node."""
    node = nodes[_node(table, nodes)]
    inner = table.child("load")
    assert inner is not None
    kinds = kinds_of_load()
    kind, duration_s = inner.text("kind", choices=sorted(kinds)), inner.integer("duration_s", 1, LONGEST_S)
    parameters: dict[str, int | str] = {}
    for each in fields(kinds[kind]):
        if each.name == "sender":
            parameters["sender"] = nodes[inner.text("sender", choices=sorted(nodes))].node
        elif each.name == "address":
            parameters["address"] = inner.text("address", node.address)
        elif each.name not in ("node", "duration_s") and inner.has(each.name):
            parameters[each.name] = inner.integer(each.name, 0, 2**63 - 1)
    inner.finish()
    try:
        load = load_of(kind, node.node, duration_s, parameters)
    except ConfigError as error:
        raise inner.fault("", str(error)) from error
    return LoadComponent(name, node.name, load)


def _kernel(
    name: str, table: Fields, nodes: Mapping[str, ExperimentNode], _bench: BenchSpec
) -> KernelComponent:
    events = table.texts("kernel", None)
    if not events:
        raise table.fault("kernel", "must name at least one event, GROUP/NAME")
    what = KernelEvents(
        events,
        table.integer("buffer_kb", 4, BUFFER_MAX_KB, 8192),
        overwrite=table.boolean("overwrite", False),
        name=f"kernel-{name}",
    )
    return KernelComponent(name, _node(table, nodes), what, table.boolean("optional", False))


def _path(name: str, table: Fields, nodes: Mapping[str, ExperimentNode], bench: BenchSpec) -> PathComponent:
    inner = table.child("path")
    assert inner is not None
    start, end = (nodes[inner.text(key, choices=sorted(nodes))].node for key in ("from", "to"))
    inner.finish()
    if bench.router is None:
        raise CapabilityError(
            f"{table.file}: {inner.table}: bench {bench.name} has no router; add benchwright.topology.router"
            f" to {bench.path}"
        )
    path = bench.router.path(start, end, bench.topology)
    if path is None:
        links = ", ".join(bench.router.links)
        raise inner.fault("", f"must lead over a link of the router: {links}")
    schedule = [(0.0, _settings(table))]
    for each in table.tables("changes", optional=True):
        schedule.append((each.number("at_s", 0.001, DEADLINE_MAX_S), _settings(each)))
        each.finish()
        if schedule[-1][0] <= schedule[-2][0]:
            raise each.fault("at_s", f"must come after {schedule[-2][0]:g}, found {schedule[-1][0]:g}")
    flows = tuple(_of_keys(each, Flow, {}) for each in table.tables("flows", optional=True))
    return PathComponent(name, "", path, tuple(schedule), flows)


def _settings(table: Fields) -> PathSettings:
    inner = table.child("settings")
    assert inner is not None
    taken: dict[str, Any] = {}
    if inner.has("loss"):
        loss = inner.child("loss")
        assert loss is not None
        taken["loss"] = _of_keys(loss, RandomLoss if loss.has("percent") else GilbertElliott, {})
    if inner.has("jitter_distribution"):
        name = inner.text("jitter_distribution", choices=[each.value for each in Distribution])
        taken["jitter_distribution"] = Distribution(name)
    return _of_keys(inner, PathSettings, taken)


T = TypeVar("T")


def _of_keys(table: Fields, kind: Callable[..., T], taken: Mapping[str, Any]) -> T:
    """Return a dataclass of numbers and texts whose names are the table's keys."""
    found = dict(taken)
    for each in fields(cast("Any", kind)):
        if each.name in taken or not table.has(each.name):
            continue
        if str(each.type) == "str":
            found[each.name] = table.text(each.name)
        elif "int" in str(each.type):
            found[each.name] = table.integer(each.name, 0, 2**63 - 1)
        else:
            found[each.name] = table.number(each.name, 0, 1e18)
    table.finish()
    try:
        return kind(**found)
    except TypeError as error:
        needed = ", ".join(each.name for each in fields(cast("Any", kind)))
        raise table.fault("", f"must have {needed}") from error
    except ConfigError as error:
        raise table.fault("", str(error)) from error


def _words(table: Fields, key: str, *, optional: bool = False) -> tuple[str, ...]:
    """Return the words of a command; a number among them may stand as it is, or for an axis."""
    if optional and not table.has(key):
        return ()
    value = table.any(key)
    if not isinstance(value, list) or not all(map(is_scalar, cast("list[object]", value))):
        raise table.fault(key, f"must be a list of words, found {value!r}")
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
            raise inner.fault(component, f"no component of that name; there are: {known}")
        tasks.append(_task(inner, component, components[component]))
    inner.finish()
    table.finish()
    if not tasks:
        raise inner.fault("", "must have something to do")
    if name == COLLECT:
        raise table.fault("name", f"{COLLECT} follows by itself, as the last phase")
    return Phase(name, deadline_s, tuple(tasks))


def _task(table: Fields, name: str, component: Component) -> Task:
    value = table.any(name)
    parameters: Mapping[str, Any] = {}
    until = None
    if isinstance(value, Mapping):
        inner = Fields(cast("Mapping[str, Any]", value), table.file, f"{table.table}.{name}")
        value = inner.any("do")
        if inner.has("parameters"):
            found = inner.any("parameters")
            if not isinstance(found, Mapping) or not component.has_phases:
                raise table.fault(
                    f"{name}.parameters", "must be a table, of a component whose ready is phases"
                )
            parameters = cast("Mapping[str, Any]", found)
        until = _threshold(inner.child("until", optional=True))
        inner.finish()
    actions = [value] if isinstance(value, str) else value
    if not isinstance(actions, list) or not actions:
        raise table.fault(name, f"must be an action, a list of them, or a table with do, found {value!r}")
    words = cast("list[object]", actions)
    for action in words:
        if not isinstance(action, str) or not (action in component.actions or component.has_phases):
            allowed = "a phase of its own, or one of " if component.has_phases else "one of "
            raise table.fault(name, f"must be {allowed}{', '.join(component.actions)}, found {action!r}")
        table.check_name(name, action)
    is_repeatable = words == [RUN] or (len(words) == 1 and words[0] not in component.actions)
    if until is not None and not (isinstance(component, ProgramComponent) and is_repeatable):
        raise table.fault(
            f"{name}.until", f"must stand beside do = 'run', or a phase of its own, found {actions!r}"
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
        raise table.fault("command", "must begin with a program, found nothing")
    return command


def _check_course(file: str, components: Mapping[str, Component], phases: tuple[Phase, ...]) -> None:
    """Refuse what can only fail: to wait for what was not started, to start twice, never to be used."""
    if not phases:
        raise FieldError(file, "phases", "must have at least one")
    names = [phase.name for phase in phases]
    for number, name in enumerate(names, 1):
        if names.index(name) != number - 1:
            raise FieldError(
                file, f"phases[{number}].name", f"must be another one than before, found {name!r}"
            )
    runs: dict[str, bool] = {}
    for number, phase in enumerate(phases, 1):
        for task in phase.tasks:
            where = f"phases[{number}].tasks.{task.component}"
            for action in task.actions:
                running = runs.get(task.component, False)
                if action in (START, RUN) and running:
                    raise FieldError(file, where, f"{action}: it runs already")
                if action not in (START, RUN) and not running:
                    raise FieldError(file, where, f"{action}: must come after start")
                runs[task.component] = action not in (WAIT, STOP, RUN)
    _check_paths(file, components, phases)
    unused = [name for name in components if name not in runs]
    if unused:
        raise FieldError(file, f"components.{unused[0]}", "does nothing in any phase")


def _check_paths(file: str, components: Mapping[str, Component], phases: tuple[Phase, ...]) -> None:
    """Refuse two settings of one way out of the router at a time."""
    active: dict[PathDirection, str] = {}
    for number, phase in enumerate(phases, 1):
        for task in phase.tasks:
            component = components[task.component]
            if not isinstance(component, PathComponent):
                continue
            other = active.get(component.path)
            if other is not None and other != component.name:
                raise FieldError(
                    file,
                    f"phases[{number}].tasks.{component.name}",
                    f"{other} treats this path, stop it first",
                )
            active[component.path] = component.name
            if task.actions[-1] == STOP:
                del active[component.path]
