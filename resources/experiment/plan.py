# SPDX-License-Identifier: Apache-2.0
"""The plan of an experiment in words: who does what when, at which points, how long it takes at most."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from resources.experiment.components import Component, ExperimentSpec, Phase, ProgramComponent, Task
from resources.experiment.experiment_file import ExperimentFile
from resources.experiment.points import Order

COLLECT_WORDS = "stop what still runs, fetch what was written, reset the nodes"


def plan_text(experiment: ExperimentFile) -> str:
    """Return the plan. Of one experiment it is the same on every machine, and of its resolved file."""
    commands = experiment.commands()
    specs = {point.number: _with_names(experiment.at(point), commands) for point in experiment.points}
    first = specs[experiment.points[0].number]
    longest_s = sum(spec.longest_s for spec in specs.values())
    count = len(experiment.points)
    head = f"experiment {experiment.name}: {count} point{'s' if count > 1 else ''}"
    lines = [
        f"{head}, at most {_duration(longest_s)}, besides boots and collection",
        f"bench {experiment.bench.name}",
        "",
        "nodes",
        *(f"  {each.name}: {each.node}{_wants(each.kernel, each.tools)}" for each in first.nodes.values()),
    ]
    for spec in _different(specs):
        numbers = [number for number, each in specs.items() if each == spec]
        of_all = len(numbers) == count
        lines += ["", "phases" if of_all else f"phases of point {_ranges(numbers)}"]
        for number, phase in enumerate(spec.phases, 1):
            lines += _phase(number, phase, spec.components)
        lines += [f"  {len(spec.phases) + 1} collect", f"      {COLLECT_WORDS}"]
        lines += [f"  after: {shlex.join(command)}" for command in spec.after]
    order = Order(experiment.table.get("order", Order.GIVEN))
    seed = f", seed {experiment.table.get('seed', 0)}" if order is Order.SHUFFLED else ""
    lines += ["", f"points, order {order}{seed}"]
    lines += [f"  {point.number:>{len(str(count))}}  {point.words}" for point in experiment.points]
    return "\n".join(lines) + "\n"


def _with_names(spec: ExperimentSpec, commands: Mapping[str, tuple[str, ...]]) -> ExperimentSpec:
    """Return what is done, names of axes in its commands: often one for all points."""
    components = {
        name: replace(each, command=commands[name]) if isinstance(each, ProgramComponent) else each
        for name, each in spec.components.items()
    }
    return replace(spec, components=components)


def _different(specs: Mapping[int, ExperimentSpec]) -> Sequence[ExperimentSpec]:
    found: list[ExperimentSpec] = []
    for spec in specs.values():
        if spec not in found:
            found.append(spec)
    return found


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers in words: 1-3, 5."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _wants(kernel: str, tools: Sequence[str]) -> str:
    wanted = [f"kernel {kernel}"] if kernel else []
    wanted += [f"tool {tool}" for tool in tools]
    return f", must have {', '.join(wanted)}" if wanted else ""


def _phase(number: int, phase: Phase, components: Mapping[str, Component]) -> list[str]:
    lines = [f"  {number} {phase.name}, at most {_duration(phase.deadline_s)}"]
    for task in phase.tasks:
        component = components[task.component]
        where = f" on {component.node}" if component.node else ""
        lines.append(f"      {task.component}{where}: {_task(task, component)}")
    return lines


def _task(task: Task, component: Component) -> str:
    said = ", then ".join(task.actions)
    if task.parameters:
        said += " with " + ", ".join(f"{key} = {value!r}" for key, value in task.parameters.items())
    if task.until is not None:
        said += f" until |{task.until.key}| is at most {task.until.at_most:g}"
        said += f", every {task.until.every_s:g} s" if task.until.every_s else ""
    if {"start", "run"} & {*task.actions}:
        said += f": {component.words}"
    return said


def _duration(duration_s: float) -> str:
    if duration_s < 60:
        return f"{duration_s:g} s"
    minutes, seconds = divmod(round(duration_s), 60)
    hours, minutes = divmod(minutes, 60)
    said = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    return said if hours else f"{said} {seconds} s"
