# SPDX-License-Identifier: Apache-2.0
"""A load as a component of an experiment: it is started, ended, and says what it achieved."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hw.answers import tail
from hw.errors import BenchError, MeasurementError
from hw.open_bench import Nodes
from hw.protocols import Job
from resources.loads.achieved import Achieved, Quantity, counted
from resources.loads.counters import Counters, read_counters
from resources.loads.kinds import OWN_FOLDER, LoadKind, LoadTool
from resources.tools.experiment import Experiment, last_result
from resources.tools.jobs import ENDING_S, end_job

ROUNDING_S = 0.5
"""By how much a tool may end before its duration: stress-ng counts whole seconds."""
NS_PER_S = 1_000_000_000


class Load:
    """A load of a node. Nothing goes to the node between `start` and `end`."""

    def __init__(self, bench: Nodes, what: LoadKind, folder: Path) -> None:
        """Prepare; nothing is started.

        Args:
            bench: An open bench; the nodes are on.
            what: The load.
            folder: What its tools say, and what it achieved, goes here.
        """
        self.what = what
        self._bench = bench
        self._folder = folder
        self._started: list[tuple[LoadTool, Job]] = []
        self._before = Counters()
        self._begin_s = 0.0
        self._place = ""

    def start(self, experiment: Experiment) -> None:
        """Read the node's counters and start the load, which the experiment ends where nobody else does.

        Raises:
            ConfigError: A parameter is out of its range; nothing was started.
            CapabilityError: The node or the bench lacks what the load takes; nothing was started.
            BenchError: A node cannot be reached, or a tool is not ready.
        """
        node = self._bench.node(self.what.node)
        self._before = read_counters(node)
        self.what.require(self._bench, self._before)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._place = self.what.folder_on(self._bench, self._before)
        experiment.keep(self._clean)
        tools = self.what.tools(self._bench, self._place)
        self._begin_s = time.monotonic()
        for tool in tools:
            job = experiment.start(tool.node, tool.argv, self._folder / tool.name)
            self._started.append((tool, job))
            if tool.says_ready:
                job.wait_ready()

    def end(self) -> Achieved:
        """End the load, read the counters again, and write and return what it achieved.

        Raises:
            MeasurementError: It had ended before it should, so that nobody knows how long it was there.
            BenchError: A node cannot be reached.
        """
        codes = [_code(job) for _, job in self._started]
        lasted_s = time.monotonic() - self._begin_s
        for tool, job in reversed(self._started):
            if tool.follows:
                with suppress(BenchError):
                    job.wait(ENDING_S)
            end_job(job)
        after = read_counters(self._bench.node(self.what.node))
        own = {tool.name: _own_count(job) for tool, job in self._started}
        self._clean()
        self._require_lasted(codes, lasted_s)
        over_s = lasted_s
        if self._before.uptime_s is not None and after.uptime_s is not None:
            over_s = after.uptime_s - self._before.uptime_s
        written = self._place if self.what.writes else ""
        quantities = counted(self._before, after, self.what.node, over_s, written)
        for tool, _ in self._started:
            _add_own(quantities, tool, own[tool.name])
        ended = "asked" if None in codes else "by itself"
        found = Achieved(self.what.facts(), round(over_s, 2), ended, **quantities)
        found.write(self._folder)
        return found

    def _require_lasted(self, codes: Sequence[int | None], lasted_s: float) -> None:
        """Raise MeasurementError where a tool had ended too early; of several, for one that failed itself."""
        early = [
            (tool, job, code)
            for (tool, job), code in zip(self._started, codes, strict=True)
            if code is not None and (code or lasted_s < self.what.duration_s - ROUNDING_S)
        ]
        if not early:
            return
        tool, job, code = max(early, key=lambda each: each[2] != 0)
        said = tail((self._folder / tool.name).with_suffix(".err"))
        raise MeasurementError(
            f"load {self.what.kind} on {self.what.node}: {job.name} had ended with exit code {code} after"
            f" {lasted_s:.0f} s at most, of {self.what.duration_s} s ({said})"
        )

    def _clean(self) -> None:
        """Remove what a killed tool has left in the folder that is the load's alone."""
        if self._place.startswith(OWN_FOLDER):
            self._bench.node(self.what.node).run(["rm", "-rf", self._place], check=False)


def _code(job: Job) -> int | None:
    """Return the exit code of a job that has ended; None: it runs."""
    try:
        return job.wait(0)
    except BenchError:
        return None


def _own_count(job: Job) -> dict[str, Any]:
    """Return what a tool has counted itself; nothing of one that does not, or was killed."""
    with suppress(BenchError, MeasurementError):
        return last_result(job.fetch())
    return {}


def _add_own(quantities: dict[str, Quantity], tool: LoadTool, own: dict[str, Any]) -> None:
    """Let a tool's own count stand for what it knows better than the node, or the node not at all."""
    source = f"own count of {tool.name} on {tool.node}"
    if "role" in own:
        name = "sent_bit_s" if own["role"] == "sender" else "received_bit_s"
        took_s = own["duration_ns"] / NS_PER_S
        rate_bit_s = round(own["bytes"] * 8 / took_s) if took_s else None
        quantities[name] = Quantity(rate_bit_s, source if took_s else f"{source}: nothing was moved")
    if "written_bytes" in own:
        quantities["written_bytes"] = Quantity(own["written_bytes"], f"{source}, to files")
        for name, value in (("cpu_s", round(own["cpu_ns"] / NS_PER_S, 2)), ("forks", own["processes"])):
            if quantities[name].value is None:
                quantities[name] = Quantity(value, source)
