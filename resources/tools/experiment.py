# SPDX-License-Identifier: Apache-2.0
"""An experiment: native tools on nodes that are ready together, measure in silence and are collected.

Every measurement of the bench is one: a replay, a clock against its reference, edges, round trips. What has
been measured so far is kept when it is broken off, and no tool outlives it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hw.answers import json_line, tail
from hw.errors import BenchError, MeasurementError
from hw.open_bench import Nodes
from hw.protocols import Job
from resources.tools.jobs import end_job

DONE, INVALID = 0, 4
"""Exit codes of a tool that came to its end; its answer says why it is invalid."""
HIGHEST_SIGNAL = 64
"""Of Linux; a crash of a Windows program has a code far from it."""
POWER_CHECK_S = 0.5
LOOK_S = 0.25
TOGETHER_S = 0.2


@dataclass(frozen=True)
class Answer:
    """What a tool has left behind.

    Attributes:
        name: Of the tool's job.
        code: Its exit code.
        path: Everything that it wrote.
        result: Its last line.
    """

    name: str
    code: int
    path: Path
    result: dict[str, Any]

    def require_done(self) -> Answer:
        """Return itself; raises MeasurementError where the tool failed, with the reasons that it gives."""
        if self.code not in (DONE, INVALID):
            reasons = "; ".join(self.result.get("invalid_reasons", [])) or "no reason"
            raise MeasurementError(f"{self.name} ended with exit code {self.code}: {reasons}")
        return self


class PhaseError(Exception):
    """A phase came to no end.

    Attributes:
        faults: Name of each task that failed at about the same time, and why, the first one first.
    """

    def __init__(self, faults: Sequence[tuple[str, Exception]]) -> None:
        """Say who failed, and why."""
        super().__init__("; ".join(f"{name}: {error}" for name, error in faults))
        self.faults = tuple(faults)


class Experiment:
    """Tools that measure together. Use with `with`: they are ended at its end, the last one first.

    Where it is left by an error or by Ctrl-C, what they have written until then is fetched.
    """

    def __init__(self, bench: Nodes) -> None:
        """Prepare; nothing is started.

        Args:
            bench: An open bench; the nodes are on.
        """
        self.bench = bench
        self._jobs: list[Job] = []
        self._keepers: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End all tools; after an error fetch what they have."""
        for job in reversed(self._jobs):
            end_job(job)
        if kind is not None:
            for job in self._jobs:
                with suppress(BenchError):
                    job.fetch()
            for keep in self._keepers:
                with suppress(BenchError):
                    keep()

    def add(self, job: Job) -> Job:
        """Take a tool that somebody else has started, and return it."""
        self._jobs.append(job)
        return job

    def keep(self, keeper: Callable[[], None]) -> None:
        """Let something be called after an error that fetches what no job's own answer holds."""
        self._keepers.append(keeper)

    def take_over(self, other: Experiment) -> None:
        """Take all tools of another experiment, which no longer ends them."""
        self._jobs += other._jobs
        self._keepers += other._keepers
        other._jobs, other._keepers = [], []

    def start(self, node: str, argv: Sequence[str], stem: Path) -> Job:
        """Start a tool on a node; it need not be ready yet.

        Args:
            node: Its name.
            argv: The command line.
            stem: Its answers go to `stem`.ndjson and `stem`.err.

        Raises:
            BenchError: It did not start.
        """
        return self.add(self.bench.node(node).start(argv, stem))

    def start_at_once(self, starts: Sequence[Callable[[], Job]]) -> list[Job]:
        """Start tools of different nodes, each of which takes its time; return when all are ready.

        Raises:
            BenchError: One did not start, or is not ready. Those that have are part of the experiment.
        """
        with ThreadPoolExecutor(len(starts)) as pool:
            starting = [pool.submit(start) for start in starts]
        for each in starting:
            if each.exception() is None:
                self.add(each.result())
        jobs = [each.result() for each in starting]
        self.wait_ready(jobs)
        return jobs

    def phase(
        self,
        tasks: Mapping[str, Callable[[], object]],
        deadline_s: float,
        look: Callable[[], Sequence[tuple[str, Exception]]] = tuple,
        abandon: Callable[[], None] = lambda: None,
        uninterrupted: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Do tasks at once; return when every one is done: a barrier.

        Args:
            tasks: What each has to do, by the name of who does it.
            deadline_s: All of it.
            look: Returns who else has failed meanwhile; called now and then.
            abandon: Makes tasks that go on end; called once where one has failed, or at Ctrl-C.
            uninterrupted: Makes the context in which tasks begin: of one whose thread is interrupted while it
                starts nobody would wait for the end.

        Raises:
            PhaseError: Somebody failed, or is not done in time (TimeoutError); all tasks have ended.
        """
        end_s = time.monotonic() + deadline_s
        with ThreadPoolExecutor(len(tasks)) as pool:
            faults: list[tuple[str, Exception]] = []
            going: dict[Future[object], str] = {}
            try:
                with uninterrupted():
                    going.update({pool.submit(task): name for name, task in tasks.items()})
                while going and not (faults := [*_failed(going, end_s - time.monotonic()), *look()]):
                    if time.monotonic() > end_s:
                        faults = [
                            (name, TimeoutError(f"not done after {deadline_s:g} s"))
                            for name in going.values()
                        ]
                        raise PhaseError(faults)
                if faults:
                    # Who lost the other end of a connection fails with it: all that fail now are told.
                    time.sleep(TOGETHER_S)
                    raise PhaseError([*faults, *_failed(going, 0.0), *look()])
            except BaseException:
                abandon()
                raise

    def wait_ready(self, jobs: Iterable[Job]) -> None:
        """Return when tools have said that they are ready; raises BenchError."""
        for job in jobs:
            job.wait_ready()

    def collect(self, job: Job, within_s: float) -> Answer:
        """Wait for a tool's end and return its answer, whatever its exit code says.

        Raises:
            BenchError: It did not end in time, or its node cannot be reached.
            MeasurementError: It left no result; the text says how it ended.
        """
        code = job.wait(within_s)
        path = job.fetch()
        try:
            return Answer(job.name, code, path, last_result(path))
        except MeasurementError as error:
            number = code - 128 if code > 128 else -code  # a shell's way to say it, and Python's
            killed = 0 < number <= HIGHEST_SIGNAL
            how = f"was killed by signal {number}" if killed else f"ended with exit code {code}"
            said = tail(path.with_suffix(".err"))
            raise MeasurementError(f"{job.name} {how} and left no result ({said})") from error


def _failed(going: dict[Future[object], str], left_s: float) -> list[tuple[str, Exception]]:
    """Wait a while for a task's end, take those that have ended away, and return those that failed."""
    ended, _ = wait(going, max(0.0, min(LOOK_S, left_s)), FIRST_COMPLETED)
    faults: list[tuple[str, Exception]] = []
    for each in ended:
        name = going.pop(each)
        error = each.exception()
        if isinstance(error, Exception):
            faults.append((name, error))
        elif error is not None:
            raise error
    return faults


def silence(bench: Nodes, end_s: float, nodes: Iterable[str]) -> None:
    """Sleep until a time of the monotonic clock. Nothing goes to a node meanwhile.

    Args:
        bench: An open bench.
        end_s: Until when.
        nodes: Those that measure.

    Raises:
        BenchError: One of them has lost its power.
    """
    while (left_s := end_s - time.monotonic()) > 0:
        time.sleep(min(POWER_CHECK_S, left_s))
        dead = [node for node in nodes if not bench.node(node).powered]
        if dead:
            raise BenchError(f"{dead[0]} lost its power while it measured")


def last_result(path: Path) -> dict[str, Any]:
    """Return the `result` object of a native tool's answers.

    Raises:
        MeasurementError: There is none: the tool did not come to its end.
    """
    lines = [line for line in path.read_text("utf-8", errors="replace").split("\n") if line.strip()]
    for line in reversed(lines):
        answer = json_line(line)  # None: a torn line of a tool that was killed
        if answer is not None and answer.get("type") == "result":
            return answer
    raise MeasurementError(f"{path.name}: no result: the tool did not come to its end")
