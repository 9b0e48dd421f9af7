# SPDX-License-Identifier: Apache-2.0
"""Components that are no program: loads, events of a kernel, paths."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.path_schedule import follow
from hw.path_settings import PathSettings
from resources.experiment.components import (
    RUN,
    START,
    Component,
    ExperimentSpec,
    KernelComponent,
    LoadComponent,
    PathComponent,
    ProgramComponent,
    Task,
)  # fmt: skip
from resources.experiment.program import Program
from resources.loads.load import Load
from resources.tools.experiment import Experiment
from resources.tools.kernel_recorder import KernelRecorder, kernel_recorded


class Part(Protocol):
    """A component at one point, as a run sees it."""

    @property
    def name(self) -> str:
        """Return what the experiment calls it."""
        ...

    @property
    def node(self) -> str:
        """Return the bench's name of its machine."""
        ...

    @property
    def waits_for(self) -> str:
        """Return what a threshold lacks, in words; empty: nothing is known."""
        ...

    def do(self, task: Task) -> None:
        """Do its task of a phase; raises BenchwrightError."""
        ...

    def look(self) -> None:
        """Raise as `do` where it has failed without being asked."""
        ...

    def finish(self) -> None:
        """Come to a sound end after the last phase, where nothing has failed; raises as `do`."""
        ...

    def abandon(self) -> None:
        """End, without waiting for that."""
        ...

    def wait_ended(self, within_s: float) -> None:
        """Return when it has ended, or is given up."""
        ...

    def collect(self) -> list[str]:
        """Fetch what it has left; return the names of files that could not be."""
        ...

    def last_words(self) -> str:
        """Return what it said last, for messages."""
        ...

    def reset(self) -> list[str]:
        """Undo what it changed; return in words what failed."""
        ...


def part_of(
    spec: ExperimentSpec,
    name: str,
    bench: OpenBench,
    experiment: Experiment,
    files: Path,
    folder: Path,
    mark: str,
) -> Part:
    """Return a component as it runs at a point.

    Args:
        spec: Of the point.
        name: Of the component.
        bench: Open; the node is on.
        experiment: That ends its tools.
        files: Where files lie that its command brings.
        folder: Of the point.
        mark: What tells its processes from all others on the node.
    """
    component = spec.components[name]
    node = spec.nodes[component.node].node if component.node else ""
    if isinstance(component, ProgramComponent):
        return Program(component, node, spec.own_phases(name), bench, files, folder, mark)
    if isinstance(component, LoadComponent):
        return LoadPart(component, bench, experiment, folder)
    if isinstance(component, KernelComponent):
        return KernelPart(component, node, bench, folder)
    assert isinstance(component, PathComponent)
    return PathPart(component, bench, folder)


class _Part:
    """What these have in common: nothing of them runs by itself here."""

    waits_for = ""

    def __init__(self, component: Component, node: str) -> None:
        self.name = component.name
        self.node = node

    def look(self) -> None:
        """Nothing of it can fail unasked."""

    def finish(self) -> None:
        """Nothing is to be ended."""

    def abandon(self) -> None:
        """Nothing waits."""

    def wait_ended(self, within_s: float) -> None:
        """Nothing runs."""

    def collect(self) -> list[str]:
        """All is here already."""
        return []

    def last_words(self) -> str:
        """Return that it says nothing."""
        return "  no output"

    def reset(self) -> list[str]:
        """Nothing was changed."""
        return []


class LoadPart(_Part):
    """A load; what it achieved goes to `NAME/load.json` of the point."""

    def __init__(
        self, component: LoadComponent, bench: OpenBench, experiment: Experiment, folder: Path
    ) -> None:
        """Prepare; nothing is started."""
        super().__init__(component, component.load.node)
        self._load = Load(bench, component.load, folder / component.name)
        self._experiment = experiment
        self._runs = False

    def do(self, task: Task) -> None:
        """Start or end the load."""
        for action in task.actions:
            if action == START:
                self._load.start(self._experiment)
                self._runs = True
            else:
                self.finish()

    def finish(self) -> None:
        """End it, and keep what it achieved."""
        if self._runs:
            self._runs = False
            self._load.end()


class KernelPart(_Part):
    """Events of a kernel, in `NAME-kernel.gz` of the point; how many were lost in `NAME.json`."""

    def __init__(self, component: KernelComponent, node: str, bench: OpenBench, folder: Path) -> None:
        """Prepare; nothing is recorded."""
        super().__init__(component, node)
        self._component = component
        self._bench = bench
        self._folder = folder
        self._recorded = ExitStack()
        self._recorder: KernelRecorder | None = None

    def do(self, task: Task) -> None:
        """Begin to record, or end it and fetch what was recorded."""
        for action in task.actions:
            if action == START:
                self._begin()
            else:
                self.finish()

    def _begin(self) -> None:
        recorded = kernel_recorded(self._bench.node(self.node), self._component.kernel)
        try:
            self._recorder = self._recorded.enter_context(recorded)
        except CapabilityError as error:
            if not self._component.optional:
                raise
            _write(self._folder / f"{self.name}.json", {"refused": str(error)})

    def finish(self) -> None:
        """End it, and fetch what was recorded."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            lost = recorder.end(self._folder / f"{self.name}-kernel.gz")
            _write(
                self._folder / f"{self.name}.json",
                {"lost_events_by_cpu": {str(k): v for k, v in lost.items()}},
            )
            self._recorded.close()

    def collect(self) -> list[str]:
        """Fetch what was recorded until something failed."""
        self.finish()
        return []

    def reset(self) -> list[str]:
        """Leave nothing in tracefs."""
        self._recorded.close()
        return []


class PathPart(_Part):
    """What the router does to a path; what was really set goes to `NAME.json` of the point."""

    def __init__(self, component: PathComponent, bench: OpenBench, folder: Path) -> None:
        """Prepare; nothing is set."""
        super().__init__(component, "router")
        self._component = component
        self._bench = bench
        self._folder = folder
        self._is_set = False
        self._abandoned = threading.Event()

    def do(self, task: Task) -> None:
        """Set the path, follow its schedule, or have it do nothing again."""
        component = self._component
        for action in task.actions:
            if action not in (START, RUN):
                self.reset()
                continue
            self._is_set = True
            schedule = component.schedule if action == RUN else component.schedule[:1]
            changes = follow(self._bench.router(), [component.path], schedule, component.flows, self._sleep)
            said = [
                {**asdict(change), "asked": asdict(asked)}
                for change, (_, asked) in zip(changes, schedule, strict=True)
            ]
            _write(self._folder / f"{self.name}.json", {"changes": said})

    def _sleep(self, duration_s: float) -> None:
        if self._abandoned.wait(duration_s):
            raise MeasurementError("was ended with the others")

    def abandon(self) -> None:
        """Make no further change."""
        self._abandoned.set()

    def reset(self) -> list[str]:
        """Have the path do nothing."""
        if self._is_set:
            self._is_set = False
            self._bench.router().configure([self._component.path], PathSettings())
        return []


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")
