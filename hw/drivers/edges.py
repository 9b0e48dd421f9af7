# SPDX-License-Identifier: Apache-2.0
"""Timed edges by `bw-edge` on a node: pulses of an output, instants of an input's edges."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hw.answers import json_line, tail
from hw.edges import CapturedEdges
from hw.errors import BenchError, CapabilityError
from hw.protocols import Job, Node

ENDING_S = 10.0
EXIT_OK, EXIT_MISSING, EXIT_INVALID = 0, 3, 4


@dataclass(frozen=True)
class EdgePin:
    """A pin of a node, and where the tool's answers go."""

    node: Node
    tool: str
    """Path of `bw-edge` on the node."""
    pin: str
    clock: str
    stem: Path
    """Answers lie beside it, each run with a number of its own."""


class _ToolRuns:
    """Runs of `bw-edge` with one pin, one after the other."""

    def __init__(self, where: EdgePin) -> None:
        self.pin = where.pin
        self.clock = where.clock
        self._where = where
        self._started = 0
        self._job: Job | None = None

    def _start(self, verb: str, *options: str) -> Job:
        """Start a verb; the caller waits for it."""
        if self._job is not None:
            raise BenchError(f"{self._job.name}: pin {self.pin} is in use; stop it first")
        self._started += 1
        where = self._where
        where.stem.parent.mkdir(parents=True, exist_ok=True)
        stem = where.stem.with_name(f"{where.stem.name}-{self._started}")
        # Where no pin makes an edge by itself software does: at the priority of the node's tools.
        first = ["chrt", "--fifo", str(where.node.priority)] if where.node.priority else []
        job = where.node.start([*first, where.tool, verb, "--pin", where.pin, *options], stem)
        job.name = f"{Path(where.tool).name} {verb} on {where.node.name}"
        return job

    def _wait_ready(self, job: Job) -> None:
        try:
            job.wait_ready()
        except BenchError as error:
            with suppress(BenchError):
                if job.wait(1.0) == EXIT_MISSING:
                    raise CapabilityError(f"pin {self.pin}: {error}") from error
                raise
            job.stop()
            raise

    def _end(self, job: Job, timeout_s: float) -> dict[str, object]:
        """Wait for the end of a run and return its result; that of an invalid one says why it is."""
        code = job.wait(timeout_s)
        answer = job.fetch()
        result = _last_result(answer)
        if code in (EXIT_OK, EXIT_INVALID) and result is not None:
            return result
        kind = CapabilityError if code == EXIT_MISSING else BenchError
        raise kind(
            f"{job.name}: pin {self.pin}: exit code {code}"
            f"{'' if code else ' without a result'}: {tail(answer.with_suffix('.err'))}"
        )


class ToolTimedOutput(_ToolRuns):
    """An output that `bw-edge output` drives; hw.protocols.TimedOutput."""

    def start_periodic(self, period_ns: int, start_ns: int | None = None) -> int:
        """Make pulses, one a period, until `stop`; return the instant of one of them."""
        start = "next" if start_ns is None else str(start_ns)
        job = self._start("output", "--periodic", "--start-ns", start, "--period-ns", str(period_ns))
        self._wait_ready(job)
        self._job = job
        ready = _lines(job.fetch())[0]
        return _integer(job, ready, "start_ns")

    def stop(self) -> dict[str, object]:
        """Make no more pulses; return the tool's result, {} where none were being made."""
        job, self._job = self._job, None
        if job is None:
            return {}
        job.stop()
        return self._end(job, ENDING_S)


class ToolEdgeCapture(_ToolRuns):
    """An input that `bw-edge capture` reads; hw.protocols.EdgeCapture."""

    def start(self, count: int, duration_ms: int) -> None:
        """Begin to note instants; return when it does."""
        job = self._start("capture", "--count", str(count), "--duration-ms", str(duration_ms))
        self._wait_ready(job)
        self._job = job

    def collect(self, timeout_s: float) -> CapturedEdges:
        """Wait for the end that was agreed on and return what was seen."""
        job, self._job = self._job, None
        if job is None:
            raise BenchError(f"pin {self.pin}: nothing is being captured; start it first")
        try:
            return self._captured(job, self._end(job, timeout_s))
        except BenchError:
            job.stop()
            raise

    def stop(self) -> CapturedEdges:
        """End early and return what was seen so far; nothing where it was not started."""
        job, self._job = self._job, None
        if job is None:
            return CapturedEdges((), 0)
        job.stop()
        return self._captured(job, self._end(job, ENDING_S))

    def _captured(self, job: Job, result: dict[str, object]) -> CapturedEdges:
        edges: list[tuple[int, int]] = []
        captures = result.get("captures")
        for item in cast("list[object]", captures) if isinstance(captures, list) else [None]:
            pair = cast("list[object]", item) if isinstance(item, list) else []
            if len(pair) != 2 or not all(type(number) is int for number in pair):
                raise BenchError(f"{job.name}: captures: must be pairs of integers, found {item!r}")
            edges.append(cast("tuple[int, int]", tuple(pair)))
        return CapturedEdges(tuple(edges), _integer(job, result, "count"), result, job.fetch())


def _lines(answer: Path) -> list[dict[str, object]]:
    """Return the complete lines of a tool's answers that are objects."""
    lines: list[dict[str, object]] = []
    for line in answer.read_text(errors="replace").splitlines(keepends=True):
        found = json_line(line) if line.endswith("\n") else None
        if found is not None:
            lines.append(found)
    return lines


def _last_result(answer: Path) -> dict[str, object] | None:
    lines = _lines(answer)
    return lines[-1] if lines and lines[-1].get("type") == "result" else None


def _integer(job: Job, line: dict[str, object], key: str) -> int:
    value = line.get(key)
    if type(value) is not int:
        raise BenchError(f"{job.name}: {key}: must be an integer, found {value!r}")
    return value
