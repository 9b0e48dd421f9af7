# SPDX-License-Identifier: Apache-2.0
"""An open bench that plays its part: nodes and tools answer as told, and note what they are asked."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hw.errors import BenchError
from hw.protocols import READY_S, CommandResult


class FakeJob:
    """A tool that has said its lines; without an exit code it runs until it is stopped, which makes it 0."""

    def __init__(self, bench: FakeBench, node: str, argv: Sequence[str], stem: Path) -> None:
        self.name = stem.name
        self.argv = [*argv]
        self.node = node
        self.lines = bench.lines
        self.exit_code = bench.exit_code
        self._stem = stem
        self._bench = bench

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Be ready, unless the bench says that it is broken."""
        assert timeout_s > 0
        self._bench.log.append(f"ready {self.name}")
        if self.name == self._bench.broken:
            raise BenchError(f"{self.name}: not ready")

    def wait(self, timeout_s: float) -> int:
        """Return the exit code; raise BenchError where it runs on."""
        assert timeout_s >= 0
        if self.exit_code is None:
            raise BenchError(f"{self.name}: still running after {timeout_s:g} s")
        return self.exit_code

    def stop(self) -> None:
        """End."""
        self._bench.log.append(f"stop {self.name}")
        self.exit_code = self.exit_code or 0

    def fetch(self) -> Path:
        """Write the lines, and what it said besides, to this machine."""
        if self.name == self._bench.lost:
            raise BenchError(f"{self.name}: its node does not answer")
        self._bench.log.append(f"fetch {self.name}")
        self._stem.parent.mkdir(parents=True, exist_ok=True)
        self._stem.with_suffix(".err").write_text("it said this\n")
        answers = self._stem.with_suffix(".ndjson")
        answers.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return answers


class FakeNode:
    """A node that notes commands, tools and files; a command's answer is the bench's."""

    priority = 50
    powered = True

    def __init__(self, bench: FakeBench, name: str) -> None:
        self.name = name
        self.ran: list[list[str]] = []
        self.timeouts_s: list[float] = []
        self.there: dict[str, bytes] = {}
        self._bench = bench

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Answer as the bench says; a failure is a BenchError where it is checked."""
        assert timeout_s > 0
        self.ran.append([*argv])
        self.timeouts_s.append(timeout_s)
        result = CommandResult(tuple(argv), *self._bench.answer(self.name, self.ran[-1]))
        if check and result.exit_code:
            raise BenchError(f"{self.name}: {argv[0]}: exit code {result.exit_code}: {result.stderr}")
        return result

    def start(self, argv: Sequence[str], stem: Path) -> FakeJob:
        """Start a tool."""
        self._bench.jobs.append(FakeJob(self._bench, self.name, argv, stem))
        return self._bench.jobs[-1]

    def put(self, local: Path, remote: str) -> None:
        """Take a file."""
        self.there[remote] = local.read_bytes()

    def get(self, remote: str, local: Path) -> None:
        """Give a file; raise BenchError where there is none."""
        if remote not in self.there:
            raise BenchError(f"{remote}: no such file")
        local.write_bytes(self.there[remote])

    def bring(self, file: Path) -> str:
        """Return where a file would be."""
        return f"/brought/{file.name}"

    def fresh_folder(self, name: str) -> str:
        """Return where a folder would be."""
        return f"/fresh/{name}"

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder."""
        return [name.rpartition("/")[2] for name in self.there if name.rpartition("/")[0] == folder]


def _well(_node: str, _argv: Sequence[str]) -> tuple[int, str, str]:
    return 0, "", ""


class FakeBench:
    """A bench of any nodes.

    Args:
        spec: What its file says.
        answer: What a node says to a command: exit code, stdout, stderr.
        lines: What each tool writes.
        exit_code: Of each tool; None: it runs until it is stopped.
        broken: Name of the tool that is never ready.
        lost: Name of the tool whose answers cannot be fetched.
    """

    def __init__(
        self,
        spec: Any = None,
        *,
        answer: Callable[[str, Sequence[str]], tuple[int, str, str]] = _well,
        lines: Sequence[object] = ({"type": "result"},),
        exit_code: int | None = 0,
        broken: str = "",
        lost: str = "",
    ) -> None:
        self.spec = spec
        self.answer, self.lines, self.exit_code = answer, lines, exit_code
        self.broken, self.lost = broken, lost
        self.log: list[str] = []
        self.jobs: list[FakeJob] = []
        self.nodes: dict[str, FakeNode] = {}

    def node(self, name: str) -> FakeNode:
        """Return a node."""
        return self.nodes.setdefault(name, FakeNode(self, name))

    def tool(self, node: str, tool: str = "bw-traffic", *, dynamic: bool = False) -> str:
        """Return where a tool is on a node; note a dynamic one."""
        self.log.extend([f"{node} {tool}"] * dynamic)
        return f"/{node}/dynamic/{tool}" if dynamic else f"/{node}/{tool}"

    def library(self, node: str, library: str | Path) -> str:
        """Return where a library is on a node, and note it."""
        self.log.append(f"{node} {library}")
        return f"/{node}/{library}"
