# SPDX-License-Identifier: Apache-2.0
"""A component that is told phases by a test, as a controller tells it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.patience import HANG_S


class Component:
    """A program whose stdin and stdout are a test's. Use with `with`."""

    def __init__(self, *argv: str | Path) -> None:
        """Start it."""
        self.process = subprocess.Popen(
            [*map(str, argv)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End it, if the test has not."""
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):  # what it has not read
                pipe.close()
        self.process.wait(HANG_S)

    def tell(self, name: str, parameters: object = None) -> None:
        """Say which phase it is."""
        self.write(
            json.dumps({"type": "phase", "name": name, "parameters": parameters or {}}, separators=(",", ":"))
        )

    def write(self, line: str) -> None:
        """Write a line, whatever it is."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        """Return its next answer."""
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def asked(self, name: str, parameters: object = None) -> dict[str, Any]:
        """Say which phase it is, and return the answer."""
        self.tell(name, parameters)
        return self.hear()

    def end(self) -> int:
        """Close its stdin; return its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(HANG_S)


def supervised(tool: Path, folder: Path, *program: str | Path, options: Sequence[str] = ()) -> Component:
    """Start `bw-phase run` with a program; it has said that it is ready."""
    component = Component(tool, "run", "--folder", folder, *options, "--", *program)
    assert component.hear()["type"] == "ready"
    return component
