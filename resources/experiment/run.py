# SPDX-License-Identifier: Apache-2.0
"""An experiment that runs: point by point, phase by phase, and every node left as it was."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from hw.bench import NodeKind
from hw.errors import BenchError, BenchwrightError, CapabilityError, MeasurementError
from hw.open_bench import OpenBench, PoweredNodes
from hw.tools import ROOT
from reports.run.provenance import OWN_NAME, commit_of, source_of
from resources.experiment.components import (
    COLLECT,
    ExperimentSpec,
    PathComponent,
    Phase,
    ProgramComponent,
    machines_of,
)
from resources.experiment.experiment_file import ExperimentFile
from resources.experiment.folder import ExperimentFolder
from resources.experiment.node_state import NodeState, end_marked, left_behind, state_of
from resources.experiment.parts import Part, PathPart, part_of
from resources.experiment.points import Point
from resources.experiment.program import NOT_WRITTEN
from resources.tools.experiment import Experiment, PhaseError

ENDING_S = 5.0
"""In which all others are stopped when one has failed."""
Progress = Callable[[str], None]


class _ComponentError(Exception):
    """Components that failed in a phase, and why."""

    def __init__(self, phase: str, faults: Sequence[tuple[Part, BenchwrightError]]) -> None:
        super().__init__(phase)
        self.phase = phase
        self.faults = faults

    def in_words(self) -> BenchwrightError:
        """Return it with component, node, phase and last words, which were fetched by now."""
        said = [
            f"{part.name} on {part.node}, phase {self.phase}: {error}\n{part.last_words()}"
            for part, error in self.faults
        ]
        worst = max((error for _, error in self.faults), key=lambda error: error.exit_code)
        return type(worst)("\n".join(said))


class ExperimentRun:
    """An experiment on an open bench."""

    def __init__(
        self,
        experiment: ExperimentFile,
        folder: ExperimentFolder,
        bench: OpenBench,
        progress: Progress,
        uninterrupted: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            experiment: What is done.
            folder: Where it is kept.
            bench: Open.
            progress: Called with a line of text now and then.
            uninterrupted: Makes contexts in which nodes are reset: a signal counts at their end.
        """
        self._uninterrupted = uninterrupted
        self._experiment = experiment
        self._folder = folder
        self._bench = bench
        self._progress = progress

    def power_on(self) -> None:
        """Power the nodes up, and refuse those that are not what the experiment wants.

        Raises:
            CapabilityError: One has another kernel, or lacks a tool.
            BenchError: One does not come up.
        """
        spec = self._experiment.as_written()
        self._bench.power_on(machines_of(spec, self._bench.spec))
        for name, each in spec.nodes.items():
            node = self._bench.node(each.node)
            if self._bench.spec.nodes[each.node].kind is NodeKind.LABGRID:
                end_marked(node, "")  # what an experiment has left whose controller was killed
            if each.kernel:
                kernel = node.run(["uname", "-r"]).stdout.strip()
                if each.kernel not in kernel:
                    raise CapabilityError(
                        f"node {name} ({each.node}): must have a kernel {each.kernel}, has {kernel}"
                    )
            for tool in each.tools:
                if node.run(["sh", "-c", 'command -v "$1"', "sh", tool], check=False).exit_code != 0:
                    raise CapabilityError(f"node {name} ({each.node}): must have {tool}, has not")

    def versions(self) -> dict[str, str]:
        """Return kernel and tools of each node, in words; of this software commit, or version and files."""
        found = {OWN_NAME: commit_of(ROOT) or source_of(ROOT) or "unknown"}
        spec = self._experiment.as_written()
        for name, each in spec.nodes.items():
            found[f"{name} kernel"] = self._bench.node(each.node).run(["uname", "-sr"]).stdout.strip()
        for name, component in spec.components.items():
            if isinstance(component, ProgramComponent) and component.tool:
                node = spec.nodes[component.node].node
                argv = [self._bench.tool(node, component.tool), "--version"]
                found[f"{name} {component.tool}"] = self._bench.node(node).run(argv).stdout.strip()
        return found

    def measure(self, points: Sequence[Point]) -> None:
        """Measure points, one after the other.

        Raises:
            BenchwrightError: One came to no end. What there was of it is kept, and its nodes were reset.
        """
        before = self._states()
        count = len(self._experiment.points)
        try:
            for point in points:
                self._progress(f"point {point.number} of {count}: {point.words}")
                spec = self._experiment.at(point)
                with self._folder.point(point) as folder:
                    try:
                        self._measure(spec, folder, before)
                        self._after(spec, folder)
                    except BenchwrightError as error:
                        raise type(error)(f"point {point.number}: {error}") from error
        finally:
            components = self._experiment.as_written().components.values()
            if any(isinstance(each, PathComponent) for each in components):
                self._bench.router().clear()

    def _measure(self, spec: ExperimentSpec, folder: Path, before: Mapping[str, NodeState]) -> None:
        fault: BaseException | None = None
        schedule = _Schedule(folder / "schedule.ndjson")
        experiment = Experiment(self._bench)
        parts = {
            name: part_of(spec, name, self._bench, experiment, self._folder.files, folder, self._folder.mark)
            for name in spec.components
        }
        try:
            with experiment:
                for phase in spec.phases:
                    self._progress(f"  {phase.name}")
                    self._go_through(experiment, phase, parts, schedule)
                schedule.begin(COLLECT)
                _finish(parts)
        except BaseException as error:  # noqa: BLE001 - Ctrl-C, too: nodes are reset, whatever comes
            fault = error  # raised again below
        with self._uninterrupted():
            schedule.begin(COLLECT)
            gone = self._gone(spec) if fault is not None else set[str]()
            lost, unfetched = self._end(parts, gone)
            left = self._reset(spec, parts, before, gone)
            schedule.end(COLLECT)
        if fault is not None and not isinstance(fault, Exception) and not left and not unfetched:
            raise fault  # Ctrl-C
        told = fault.in_words() if isinstance(fault, _ComponentError) else fault
        if told is not None:
            lost = [line for line in lost if not line.endswith(NOT_WRITTEN)]
        words = [*([str(told) or "broken off"] if told is not None else []), *lost, *unfetched, *left]
        if left:
            words.append("its nodes are not as they were")
        if left or unfetched:
            raise BenchError("\n".join(words)) from fault
        if told is not None and (not lost or not isinstance(told, BenchwrightError)):
            raise told from fault
        if lost:
            raise MeasurementError("\n".join(words)) from fault

    def _go_through(
        self, experiment: Experiment, phase: Phase, parts: Mapping[str, Part], schedule: _Schedule
    ) -> None:
        """Have every component do its task of a phase."""

        def do(name: str, action: Callable[[], None]) -> None:
            schedule.begin(phase.name, name)
            try:
                action()
            except BenchwrightError as error:
                schedule.end(phase.name, name, str(error))
                raise
            schedule.end(phase.name, name)

        tasks = {
            task.component: partial(do, task.component, partial(parts[task.component].do, task))
            for task in phase.tasks
        }
        idle = [part for name, part in parts.items() if name not in tasks]

        def told(name: str, error: Exception) -> tuple[Part, BenchwrightError]:
            part = parts[name]
            if isinstance(error, TimeoutError):
                lacks = f": {part.waits_for}" if part.waits_for else ""
                late = f"not done after {phase.deadline_s:g} s{lacks}"
                if part.node in self._bench.spec.nodes and not self._bench.node(part.node).is_reached():
                    return part, BenchError(f"{late}: its node does not answer any more")
                return part, MeasurementError(late)
            if not isinstance(error, BenchwrightError):
                raise error
            return part, error

        try:
            experiment.phase(
                tasks,
                phase.deadline_s,
                partial(self._look, idle),
                partial(_abandon, parts),
                self._uninterrupted,
            )
        except PhaseError as found:
            raise _ComponentError(phase.name, [told(*each) for each in found.faults]) from found

    def _look(self, idle: Sequence[Part]) -> list[tuple[str, Exception]]:
        """Return who has failed who was asked nothing, or whose node has lost its power."""
        faults: list[tuple[str, Exception]] = []
        for part in idle:
            try:
                part.look()
            except BenchwrightError as error:
                faults.append((part.name, error))
        return faults

    def _gone(self, spec: ExperimentSpec) -> set[str]:
        """Return the nodes that do not answer any more: they are asked once, and then nothing else."""
        nodes = (self._bench.node(each.node) for each in spec.nodes.values())
        return {node.name for node in nodes if not node.powered or not node.is_reached()}

    def _end(self, parts: Mapping[str, Part], gone: set[str]) -> tuple[list[str], list[str]]:
        """Stop all, and fetch what they have left.

        Args:
            parts: All.
            gone: Nodes that do not answer any more: nothing is asked of them; those found now are added.

        Returns:
            In words what could not be fetched: by the components' fault, and by the bench's.
        """
        _abandon(parts)
        deadline = time.monotonic() + ENDING_S
        for part in parts.values():
            part.wait_ended(max(0.0, deadline - time.monotonic()))
        lost, unfetched = list[str](), list[str]()
        for part in parts.values():
            said = f"{part.name} on {part.node}: what it wrote could not be fetched"
            if part.node in gone:
                unfetched.append(said)
                continue
            try:
                lost += part.collect()
            except BenchError as error:
                unfetched.append(f"{said}: {error}")
                if not self._bench.node(part.node).is_reached():
                    gone.add(part.node)
            except OSError as error:
                lost.append(f"{said}: {error}")
        return lost, unfetched

    def _states(self) -> dict[str, NodeState]:
        nodes = self._experiment.as_written().nodes.values()
        return {each.node: state_of(self._bench.node(each.node)) for each in nodes}

    def _reset(
        self,
        spec: ExperimentSpec,
        parts: Mapping[str, Part],
        before: Mapping[str, NodeState],
        gone: Collection[str],
    ) -> list[str]:
        """Reset every node, and return what it has that it had not."""
        left: list[str] = []
        for part in parts.values():
            if isinstance(part, PathPart):
                try:
                    left += part.reset()
                except BenchwrightError as error:
                    left.append(f"{part.name}: its path cannot be reset: {error}")
        for name, each in spec.nodes.items():
            if each.node in gone:
                left.append(f"node {name} ({each.node}): does not answer any more: not reset")
                continue
            try:
                node = self._bench.node(each.node)
                end_marked(node, self._folder.mark)
                for part in parts.values():
                    if part.node == each.node:
                        left += part.reset()
                found = left_behind(node, before[each.node])
                left += [f"node {name} ({each.node}): {line}" for line in found]
            except BenchError as error:
                left.append(f"node {name} ({each.node}): cannot be reset: {error}")
        return left

    def _after(self, spec: ExperimentSpec, folder: Path) -> None:
        """Have commands of this machine work on the folder of a point, in that folder."""
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        for command in spec.after:
            try:
                done = subprocess.run(
                    command,
                    cwd=folder,
                    env={**os.environ, "PYTHONPATH": path},
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                )
            except OSError as error:
                raise MeasurementError(f"after: {shlex.join(command)}: {error.strerror}") from error
            if done.returncode != 0:
                said = (done.stderr or done.stdout).strip()[-500:]
                raise MeasurementError(f"after: {shlex.join(command)}: exit code {done.returncode}: {said}")


def reset_nodes(experiment: ExperimentFile, bench: PoweredNodes) -> list[str]:
    """End what experiments have left on the machines of one, and return the machines' names.

    What lies in namespaces of this machine ended when the bench was opened.

    Raises:
        BenchError: A machine does not answer.
    """
    nodes = machines_of(experiment.as_written(), bench.spec)
    bench.power_on(nodes)
    for name in nodes:
        end_marked(bench.node(name), "")
    return nodes or ["namespaces"]


class _Schedule:
    """What happened when, a line each, on this machine's clock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, phase: str, component: str = "") -> None:
        self._add("begin", phase, component, "")

    def end(self, phase: str, component: str = "", failed: str = "") -> None:
        self._add("end", phase, component, failed)

    def _add(self, what: str, phase: str, component: str, failed: str) -> None:
        line: dict[str, Any] = {"utc_ns": time.time_ns(), "what": what, "phase": phase}
        if component:
            line["component"] = component
        if failed:
            line["failed"] = failed
        with suppress(OSError), self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def _finish(parts: Mapping[str, Part]) -> None:
    """Have every component come to its end, all at once; raises _ComponentError."""
    faults: list[tuple[Part, BenchwrightError]] = []

    def finish(part: Part) -> None:
        try:
            part.finish()
        except BenchwrightError as error:
            faults.append((part, error))

    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        list(pool.map(finish, parts.values()))
    if faults:
        raise _ComponentError(COLLECT, faults)


def _abandon(parts: Mapping[str, Part]) -> None:
    for part in parts.values():
        part.abandon()
