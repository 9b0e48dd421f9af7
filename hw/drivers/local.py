# SPDX-License-Identifier: Apache-2.0
"""Nodes on this machine: the host itself, and network namespaces of the virtual bench."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from hw.answers import json_line, tail
from hw.drivers.conversation import PipeConversation
from hw.errors import BenchError, OverdueError
from hw.preload import without_preload
from hw.protocols import READY_S, CommandResult

WORK_FOLDER = Path("/run/benchwright/replay")


class LocalJob:
    """A native tool that runs as a child of this process."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], output: Path, errors: Path) -> None:
        """Watch a started process whose stdout goes to `output` and stderr to `errors`."""
        self.name = name
        self._process = process
        self._output = output
        self._errors = errors

    def process_id(self) -> int:
        """Return the tool's process id: what stands before it in its command line becomes the tool."""
        return self._process.pid

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Return when the tool has said `ready`."""
        deadline = time.monotonic() + timeout_s
        while not says_ready(self._output):
            if self._process.poll() is not None:
                if says_ready(self._output):  # a quick one was ready, and ended, between the two looks
                    return
                raise BenchError(
                    f"{self.name}: ended with exit code {self._process.returncode} before it was ready: "
                    + tail(self._errors)
                )
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name}: not ready after {timeout_s:g} s: {tail(self._errors)}")
            time.sleep(0.02)

    def wait(self, timeout_s: float) -> int:
        """Return the exit code of the tool."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{self.name}: still running after {timeout_s:g} s") from error

    def stop(self) -> None:
        """Ask the tool to end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the tool, whatever it does."""
        self._process.kill()
        self._process.wait()

    def fetch(self) -> Path:
        """Return the file with the tool's answers."""
        return self._output


class LocalNode:
    """Runs commands on this machine, in a network namespace where one is given."""

    def __init__(
        self, name: str, clock: str, priority: int, namespace: str = "", work_folder: Path = WORK_FOLDER
    ) -> None:
        """Describe the node; nothing is created.

        Args:
            name: Name of the node in the bench file.
            clock: Name of the clock that it stamps with.
            priority: SCHED_FIFO priority of its tools, 0 for none.
            namespace: Network namespace; empty: this process's own.
            work_folder: Where its tools' files go; of an open bench, which removes it.
        """
        self.name = name
        self.clock = clock
        self.priority = priority
        self.powered = True
        self.work_folder = str(work_folder)
        self._prefix = ["ip", "netns", "exec", namespace] if namespace else []

    def is_reached(self) -> bool:
        """Tell that it answers: it is this machine."""
        return True

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run a command to its end."""
        command = [*self._prefix, *argv]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise OverdueError(f"{self.name}: {' '.join(argv)}: timed out after {timeout_s:g} s") from error
        except OSError as error:
            raise BenchError(f"{self.name}: {' '.join(argv)}: {error.strerror}") from error
        completed = CommandResult(tuple(argv), done.returncode, done.stdout, done.stderr)
        if check:
            require_success(self.name, completed)
        return completed

    def start(self, argv: Sequence[str], stem: Path) -> LocalJob:
        """Start a native tool."""
        output, errors = stem.with_suffix(".ndjson"), stem.with_suffix(".err")
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                [*self._prefix, *argv],
                env=without_preload(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        return LocalJob(
            f"{Path(argv[0]).name} {argv[1] if len(argv) > 1 else ''} on {self.name}", process, output, errors
        )

    def converse(self, argv: Sequence[str], stem: Path) -> PipeConversation:
        """Start a program that is told things."""
        name = f"{Path(argv[0]).name} {argv[1] if len(argv) > 1 else ''} on {self.name}"
        return PipeConversation(name, [*self._prefix, *argv], stem)

    def put(self, local: Path, remote: str) -> None:
        """Copy a file within this machine."""
        if Path(remote).resolve() != local.resolve():
            Path(remote).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(local, remote)

    def get(self, remote: str, local: Path) -> None:
        """Copy a file within this machine."""
        self.put(Path(remote), str(local))

    def bring(self, file: Path) -> str:
        """Return the file's path: it is here."""
        return str(file)

    def fresh_folder(self, name: str) -> str:
        """Make an empty folder for a tool's files; return its path."""
        folder = Path(self.work_folder, name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return str(folder)

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none where there is no folder."""
        return sorted(path.name for path in Path(folder).iterdir()) if Path(folder).is_dir() else []


def require_success(node: str, completed: CommandResult) -> None:
    """Raise BenchError unless the command's exit code is 0."""
    if completed.exit_code != 0:
        detail = completed.stderr.strip() or completed.stdout.strip() or "no output"
        raise BenchError(
            f"{node}: {' '.join(completed.argv)}: exit code {completed.exit_code}: {detail[-500:]}"
        )


def says_ready(output: Path) -> bool:
    """Tell whether the first line of a tool's answers is a complete `ready`."""
    try:
        with output.open("rb") as lines:
            first = lines.readline()
    except FileNotFoundError:
        return False
    if not first.endswith(b"\n"):
        return False
    answer = json_line(first)
    return answer is not None and answer.get("type") == "ready"
