# SPDX-License-Identifier: Apache-2.0
"""A component that runs: its program under `bw-phase` on its node, told of each phase, and what it leaves."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from hw.answers import json_line, tail
from hw.errors import BenchError, CapabilityError, ConfigError, MeasurementError, OverdueError
from hw.open_bench import Nodes
from hw.protocols import Conversation
from resources.experiment.components import BROUGHT, RUN, START, STOP, WAIT, ProgramComponent, Task
from resources.tools.fetched import plain_names

SUPERVISOR, RECORDER = "bw-phase", "bw-events"
LISTEN_S = 1.0
"""One whose node does not answer is given up after it; all others answer, or end, at once."""
SAID_LINES, SAID_BYTES = 12, 2000
OWN_FILES = ("out", "err")
RESET_S = 10.0
END_S = 10.0
"""From SIGKILL to the end of its supervisor, and of the connection."""
NOT_WRITTEN = "it has written no such file"
EVENTS = "events"


class Program:
    """A component of an experiment at one point."""

    def __init__(
        self,
        component: ProgramComponent,
        node: str,
        phases: Collection[str],
        bench: Nodes,
        files: Path,
        folder: Path,
        mark: str,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            component: What it is.
            node: Of the bench.
            phases: Of its own that it is asked for.
            bench: Open; the node is on.
            files: Where files lie that its command brings, by their names.
            folder: Of the point: what it leaves goes there.
            mark: What tells its processes from all others on the node.
        """
        self.component = component
        self.node = node
        self._phases = phases
        self._registered: Sequence[str] = ()
        self._bench = bench
        self._files = files
        self._folder = folder
        self._mark = mark
        self._conversation: Conversation | None = None
        self._remote = ""
        self._is_abandoned = False
        self._starts = 1
        self._repeats = False
        self.has_failed = False
        self.waits_for = ""
        """What a threshold lacks, in words."""

    @property
    def name(self) -> str:
        """Return what the experiment calls it."""
        return self.component.name

    def do(self, task: Task) -> None:
        """Do what it has to do in a phase; return when that is done.

        Raises:
            MeasurementError: It failed, or was abandoned; the text says how.
            BenchError: Its node does not work.
            CapabilityError: Its node cannot run it.
            ConfigError: It is to do a phase that it has not registered.
        """
        if task.until is not None:
            self._until(task)
            return
        for action in task.actions:
            self._act(action, task.parameters)

    def _until(self, task: Task) -> None:
        """Repeat until the number is small enough; the deadline of the phase ends it."""
        assert task.until is not None
        wanted, action = task.until, task.actions[0]
        self._repeats = True  # what the last run leaves counts
        while True:
            values = self._act(action, task.parameters)
            if action == RUN:
                values = _last_object(self._fetched("out"))
                self._hang_up()
            value = values.get(wanted.key)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise MeasurementError(
                    f"the last line that it wrote is no JSON object with a number {wanted.key!r}"
                )
            self.waits_for = f"|{wanted.key}| was {value:g} last, not {wanted.at_most:g} at most"
            if abs(value) <= wanted.at_most:
                return
            self._sleep(wanted.every_s)

    def _act(self, action: str, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        if action == RUN:
            self._start()
            return self._told(WAIT, {})
        if action == START:
            return self._start()
        return self._told(action, {} if action in (WAIT, STOP) else parameters)

    def _start(self) -> Mapping[str, Any]:
        node = self._bench.node(self.node)
        if self._remote and not self._repeats:
            self._keep_earlier()
        self._remote = node.fresh_folder(f"experiment-{self.node}-{self.name}")
        try:
            argv = [self._bench.tool(self.node, SUPERVISOR), "run", "--folder", self._remote]
        except CapabilityError as error:
            raise CapabilityError(
                f"{SUPERVISOR}, which runs components, is not built for this node"
            ) from error
        component = self.component
        argv += ["--ready", component.ready, "--mark", self._mark]
        argv += ["--output-mib", str(component.output_mib), "--grace-ms", str(component.grace_ms)]
        if component.ok:
            argv += ["--ok", ",".join(map(str, component.ok))]
        self._conversation = node.converse(
            [*argv, "--", *self._command()], self._folder / f"{self.name}-phases"
        )
        self._conversation.wait_ready()
        before, self.waits_for = self.waits_for, f"it was not ready by {component.ready}"
        values = self._told(START, {})
        self.waits_for = before
        if lacks := sorted(set(self._phases) - set(self._registered)):
            has = ", ".join(self._registered) or "none"
            raise ConfigError(f"has registered no phase {', '.join(lacks)}; it has {has}")
        return values

    def _keep_earlier(self) -> None:
        """Keep what an earlier start has left: it is started anew."""
        if self._conversation is not None:
            self._hang_up()
        lost = self.collect()
        if lost:
            raise MeasurementError("; ".join(lost))
        self._starts += 1

    def _command(self) -> list[str]:
        component, node = self.component, self._bench.node(self.node)
        for name in component.brought:
            node.put(self._files / Path(name).name, f"{self._remote}/{Path(name).name}")
        words = [
            f"{self._remote}/{Path(word.removeprefix(BROUGHT)).name}" if word.startswith(BROUGHT) else word
            for word in component.command
        ]
        command = [self._bench.tool(self.node, component.tool), *words] if component.tool else words
        if component.points:
            recorder = [self._bench.tool(self.node, RECORDER), "record", "--output", EVENTS]
            command = [
                *recorder,
                *(word for each in component.points for word in ("--points", each)),
                "--",
                *command,
            ]
        return command

    def _told(
        self, phase: str, parameters: Mapping[str, Any], within_s: float = math.inf
    ) -> Mapping[str, Any]:
        """Tell it of a phase and return the values of its answer; raises OverdueError."""
        if self._conversation is None:
            raise MeasurementError("was not started")
        deadline_s = time.monotonic() + within_s
        self._conversation.tell(phase, parameters)
        while True:
            answer = self._heard(LISTEN_S)
            if answer is not None and answer.get("type") == "ready":
                phases: Any = answer.get("phases")
                listed = cast("list[object]", phases) if isinstance(phases, list) else []
                self._registered = [str(each) for each in listed]
                continue
            if answer is not None and answer.get("phase") != phase:
                raise MeasurementError(f"answered {answer.get('phase')!r} in phase {phase}")
            if answer is not None and answer.get("type") == "done":
                values: Any = answer.get("values")
                return cast("Mapping[str, Any]", values) if isinstance(values, dict) else {}
            if self._is_abandoned:
                raise MeasurementError("was ended with the others")
            if time.monotonic() > deadline_s:
                raise OverdueError(f"no answer to {phase} within {within_s:g} s")

    def look(self) -> None:
        """Raise as `do` where it has failed without being asked; for one that is asked nothing now."""
        if self._conversation is not None and not self.has_failed and not self._is_abandoned:
            self._heard(0.0)

    def _heard(self, timeout_s: float) -> Mapping[str, Any] | None:
        """Return an answer; None: it is silent. Raises where the answer is that it failed, or is no more."""
        assert self._conversation is not None
        try:
            answer = self._conversation.hear(timeout_s)
        except TimeoutError:
            return None
        if answer is not None and answer.get("type") != "failed":
            return answer
        self.has_failed = True
        if answer is not None:
            raise MeasurementError(str(answer.get("reason", "no reason")))
        if self._is_abandoned:
            raise MeasurementError("was ended with the others")
        raise MeasurementError(f"{SUPERVISOR} was ended: {self._conversation.said()}")

    def _sleep(self, duration_s: float) -> None:
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            if self._is_abandoned:
                raise MeasurementError("was ended with the others")
            time.sleep(min(LISTEN_S, max(0.0, end_s - time.monotonic())))

    def finish(self) -> None:
        """End it where it still runs; raises as `do`."""
        if self._conversation is None or self.has_failed:
            return
        try:
            self._told(STOP, {}, self._ends_within_s)
        except OverdueError as error:
            self.has_failed = True
            lost = "" if self._bench.node(self.node).is_reached() else ": its node does not answer any more"
            raise OverdueError(f"{error}{lost}") from error

    def abandon(self) -> None:
        """End its program, whatever it does, without waiting for that."""
        self._is_abandoned = True
        if self._conversation is not None:
            self._conversation.stop()

    def wait_ended(self, within_s: float) -> None:
        """Return when its program has ended, or is given up here: its node does not answer."""
        if self._conversation is None:
            return
        try:
            self._conversation.wait(within_s)
        except BenchError:
            self._conversation.hang_up()

    def _hang_up(self) -> None:
        """End a run of several, whose program has ended."""
        assert self._conversation is not None
        self._conversation.stop()
        self._conversation.wait(self._ends_within_s)
        self._conversation = None

    @property
    def _ends_within_s(self) -> float:
        return self.component.grace_ms / 1000 + END_S

    def collect(self) -> list[str]:
        """Fetch what it has left, and return the names of files that could not be.

        Raises:
            BenchError: Its node does not answer; the text names the file.
        """
        if not self._remote:
            return []
        node = self._bench.node(self.node)
        there = node.files(self._remote)
        lost = [f"{self.name}: {name}: it has removed it" for name in OWN_FILES if name not in there]
        for name in OWN_FILES:
            if name in there:
                self._fetched(name)
        wanted = [name for name in there if name not in OWN_FILES and self._is_wanted(name)]
        for name in wanted:
            if not plain_names([name]):
                lost.append(f"{self.name}: {name!r}: its name must be of letters, digits, '_', '.' and '-'")
                continue
            try:
                node.get(f"{self._remote}/{name}", self._folder / f"{self._prefix}-{name}")
            except (BenchError, OSError) as error:
                if isinstance(error, OverdueError) or not node.is_reached():
                    raise
                lost.append(f"{self.name}: {name}: {error}")
        lost += [
            f"{self.name}: {each}: {NOT_WRITTEN}"
            for each in self.component.files
            if not any(fnmatchcase(name, each) for name in wanted)
        ]
        if EVENTS in there and self.component.points:
            for name in plain_names(node.files(f"{self._remote}/{EVENTS}")):
                node.get(f"{self._remote}/{EVENTS}/{name}", self._folder / f"{self._prefix}-{name}")
        return lost

    def _is_wanted(self, name: str) -> bool:
        return any(fnmatchcase(name, each) for each in self.component.files)

    @property
    def _prefix(self) -> str:
        """Return what names of its files begin with; of a second start `NAME.2`."""
        return self.name if self._starts == 1 else f"{self.name}.{self._starts}"

    def _fetched(self, name: str) -> Path:
        local = self._folder / f"{self._prefix}.{name}"
        self._bench.node(self.node).get(f"{self._remote}/{name}", local)
        return local

    def last_words(self) -> str:
        """Return the end of what it wrote, as far as that was fetched."""
        said = [
            f"  {name}: {line}"
            for name in OWN_FILES
            if (path := self._folder / f"{self._prefix}.{name}").exists()
            for line in tail(path, SAID_BYTES).splitlines()[-SAID_LINES:]
        ]
        return "\n".join(said) or "  no output"

    def reset(self) -> list[str]:
        """Undo what it changed on its node, and remove its folder there; return in words what failed."""
        if not self._remote:
            return []
        node, failed = self._bench.node(self.node), list[str]()
        if self.component.reset:
            words = shlex.join(self.component.reset)
            try:
                done = node.run(self.component.reset, timeout_s=RESET_S, check=False)
            except BenchError as error:
                failed.append(f"{self.name}: reset: {error}")
            else:
                if done.exit_code != 0:
                    said = (done.stderr or done.stdout).strip()[-300:]
                    failed.append(f"{self.name}: reset: {words}: exit code {done.exit_code}: {said}")
        node.run(["rm", "-rf", self._remote])
        return failed


def _last_object(path: Path) -> Mapping[str, Any]:
    """Return the last object that a program wrote; empty: none."""
    for line in reversed(path.read_text("utf-8", errors="replace").splitlines()):
        if (found := json_line(line)) is not None:
            return found
    return {}
