# SPDX-License-Identifier: Apache-2.0
"""A program that is told things and answers while it runs: lines of JSON over its stdin and stdout.

It lives no longer than the conversation: where this process ends, however that comes, the program reads the
end of its stdin.
"""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hw.answers import json_line, tail
from hw.errors import BenchError, OverdueError
from hw.preload import without_preload
from hw.protocols import READY_S

_LONGEST_LINE = 1 << 20
TELL_S = 30.0
"""How long a program may leave what it is told in its pipe, which holds 64 KiB of it."""
_LOOK_S = 0.5


class PipeConversation:
    """A conversation over two pipes, with a program here or with `ssh`, whose program is elsewhere."""

    def __init__(self, name: str, argv: Sequence[str], stem: Path) -> None:
        """Start the program.

        Args:
            name: For messages.
            argv: The command line, here.
            stem: What it answers is kept in `stem`.ndjson, what it complains of in `stem`.err.

        Raises:
            BenchError: It cannot be started.
        """
        self.name = name
        self._output, self._errors = stem.with_suffix(".ndjson"), stem.with_suffix(".err")
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        try:
            with self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [*argv],
                    bufsize=0,
                    env=without_preload(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
        except OSError as error:
            raise BenchError(f"{name}: {error.strerror}") from error
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        threading.Thread(target=self._read, name=name, daemon=True).start()

    def _read(self) -> None:
        """Take what it says to its end; a line that is no object, or is torn, is kept and means nothing."""
        assert self._process.stdout is not None
        with self._output.open("wb") as output:
            while line := self._process.stdout.readline(_LONGEST_LINE):
                output.write(line)
                output.flush()
                if line.endswith(b"\n") and (answer := json_line(line)) is not None:
                    self._answers.put(answer)
        self._process.wait()
        self._answers.put(None)

    def process_id(self) -> int:
        """Return the id of the program here that speaks."""
        return self._process.pid

    def tell(self, phase: str, parameters: Mapping[str, Any]) -> None:
        """Say which phase it is; a program that has ended does not hear it.

        Raises:
            OverdueError: It does not read, nor end.
        """
        words = json.dumps({"type": "phase", "name": phase, "parameters": parameters}, separators=(",", ":"))
        assert self._process.stdin is not None
        left, deadline = memoryview(words.encode() + b"\n"), time.monotonic() + TELL_S
        try:
            while left:
                try:
                    left = left[os.write(self._process.stdin.fileno(), left) :]
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        said = f"{self.name}: has not read in {TELL_S:g} s what phase {phase} is"
                        raise OverdueError(said) from None
                    select.select([], [self._process.stdin], [], _LOOK_S)
        except (OSError, ValueError):
            return  # its end is what is heard next, or it was stopped

    def hear(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next answer.

        Returns:
            None: it has ended.

        Raises:
            TimeoutError: It has said nothing so long.
        """
        try:
            answer = self._answers.get(timeout=max(0.0, timeout_s))
        except queue.Empty:
            raise TimeoutError(f"{self.name}: silent") from None
        if answer is None:
            self._answers.put(None)
        return answer

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Return when it has said that it is ready; raises BenchError."""
        deadline = time.monotonic() + timeout_s
        try:
            while (answer := self.hear(deadline - time.monotonic())) is not None:
                if answer.get("type") == "ready":
                    return
        except TimeoutError as error:
            raise BenchError(f"{self.name}: not ready after {timeout_s:g} s: {self.said()}") from error
        code = self._process.returncode
        raise BenchError(f"{self.name}: ended with exit code {code} before it was ready: {self.said()}")

    def said(self) -> str:
        """Return what it complained of last."""
        return tail(self._errors)

    def stop(self) -> None:
        """Say no more: it reads the end of its stdin."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except OSError:
            return  # what it had not read is lost

    def wait(self, timeout_s: float) -> int:
        """Return the exit code once it has ended; raise BenchError at the deadline."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{self.name}: still running after {timeout_s:g} s") from error

    def hang_up(self) -> None:
        """End what is here of it; a program elsewhere may go on until it reads the end of its stdin."""
        self.stop()
        self._process.kill()
        self._process.wait()

    def fetch(self) -> Path:
        """Return the file with its answers."""
        return self._output
