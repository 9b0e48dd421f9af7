# SPDX-License-Identifier: Apache-2.0
"""Programs for Windows, run with and without bw-accel --watch, on a disk of Windows of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from hw.tools import BUILD
from hw.virtual.windows_prefix import WINE_FOLDER, prefix_or_make, wine_environment
from tests.patience import HANG_S

Line = dict[str, Any]
WINDOWS_BUILD = BUILD / "win"
PROGRAMS = (
    Path("targets", "windows", "src", "bw-accel.exe"),
    Path("targets", "windows", "src", "bw-watch.dll"),
    Path("tests", "targets", "windows", "watched.exe"),
    Path("tests", "targets", "record", "delayed.exe"),
    Path("traffic-gen", "bw-traffic.exe"),
)
RECORD = "record.ndjson"
WATCH = ("bw-accel.exe", "--watch", RECORD)


class WindowsDisk:
    """A prefix of Wine with the programs in one folder, switched on while it is open."""

    def __init__(self, folder: Path) -> None:
        """Make it.

        Raises:
            CapabilityError: Wine is not installed.
        """
        disk = folder / "windows"
        shutil.copytree(prefix_or_make(), disk, symlinks=True)
        self.tools = disk / "drive_c" / "tools"
        self.tools.mkdir()
        for program in PROGRAMS:
            shutil.copy(WINDOWS_BUILD / program, self.tools)
        self._environment = wine_environment(disk)
        # Services begin with the first program and keep its streams, so that its output never ends.
        shell = [str(WINE_FOLDER / "wine64"), "C:\\windows\\system32\\cmd.exe"]
        nowhere = subprocess.DEVNULL
        ours = self._environment
        subprocess.run(
            [*shell, "/c", "exit"], env=ours, stdin=nowhere, stdout=nowhere, stderr=nowhere, check=True
        )
        self._on = subprocess.Popen(shell, env=ours, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere)

    def start(
        self, *argv: str, before: Callable[[], object] | None = None, debug: str = "-all"
    ) -> subprocess.Popen[str]:
        """Start a program in the folder of the programs.

        Args:
            argv: Its name and arguments.
            before: Called in the process before it begins.
            debug: What Wine says of its own, as WINEDEBUG has it.
        """
        return subprocess.Popen(
            [str(WINE_FOLDER / "wine64"), *argv],
            env={**self._environment, "WINEDEBUG": debug},
            cwd=self.tools,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=before,
            restore_signals=before is None,
        )

    def run(
        self, *argv: str, before: Callable[[], object] | None = None, debug: str = "-all"
    ) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; arguments as of `start`."""
        process = self.start(*argv, before=before, debug=debug)
        output, errors = process.communicate(timeout=HANG_S)
        return subprocess.CompletedProcess(argv, process.returncode, output, errors)

    def record(self, name: str = RECORD) -> tuple[Line, list[Line]]:
        """Return the first line of a record, and the others."""
        text = (self.tools / name).read_text()
        assert text.endswith("\n")
        lines = [json.loads(line) for line in text.splitlines()]
        return lines[0], lines[1:]

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Switch it off, with all that runs on it."""
        self._on.communicate(b"exit\r\n", timeout=HANG_S)
        argv = [str(WINE_FOLDER / "wineserver64"), "--kill"]
        subprocess.run(argv, env={**os.environ, **self._environment}, check=False, timeout=HANG_S)
