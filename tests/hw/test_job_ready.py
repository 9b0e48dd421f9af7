# SPDX-License-Identifier: Apache-2.0
"""A tool that says `ready` and ends between two looks of the one who waits for it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from hw.drivers.local import LocalJob
from hw.drivers.ssh import SshJob, SshNode
from hw.errors import BenchError
from hw.protocols import CommandResult

READY = '{"type":"ready","tool":"a tool"}\n'


class QuickNode:
    """A node whose tool has said nothing at the first look, and has ended at the next one."""

    def __init__(self, said: str) -> None:
        """Let the tool say `said` after the first look at its output."""
        self._said = said
        self._looks = 0

    def read(self, path: str) -> CommandResult:
        """Return a file of the node."""
        if path.endswith("/out"):
            self._looks += 1
            return CommandResult((), 0, self._said if self._looks > 1 else "", "")
        return CommandResult((), 0, "0" if path.endswith("/rc") else "", "")


class QuickProcess:
    """A process that writes its output at the moment at which it is asked whether it has ended."""

    returncode = 0

    def __init__(self, output: Path, said: str) -> None:
        """Let it write `said`."""
        self._output, self._said = output, said

    def poll(self) -> int:
        """Return that it has ended."""
        self._output.write_text(self._said)
        return 0


def remote(tmp_path: Path, said: str) -> Any:
    return SshJob(cast("SshNode", QuickNode(said)), "tool", "/run/x", tmp_path / "tool")


def local(tmp_path: Path, said: str) -> Any:
    output = tmp_path / "tool.ndjson"
    (tmp_path / "tool.err").touch()
    output.touch()
    process = cast("subprocess.Popen[bytes]", QuickProcess(output, said))
    return LocalJob("tool", process, output, tmp_path / "tool.err")


@pytest.mark.parametrize("job", [remote, local])
def test_quick_tool_was_ready(tmp_path: Path, job: Any) -> None:
    job(tmp_path, READY).wait_ready(1)


@pytest.mark.parametrize("job", [remote, local])
def test_tool_that_never_was_ready_is_told(tmp_path: Path, job: Any) -> None:
    with pytest.raises(BenchError, match="ended with exit code 0 before it was ready"):
        job(tmp_path, "").wait_ready(1)
