# SPDX-License-Identifier: Apache-2.0
"""A page of the time service that follows this machine's clock, with errors that are made on purpose."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("tests", "traffic_gen", "timeservice")


@dataclass(frozen=True)
class Service:
    """A stand-in for bw-timed.

    Attributes:
        page: The file that it publishes on.
        process: It; killed, it leaves its page.
    """

    page: Path
    process: subprocess.Popen[str]

    def tell(self, command: str) -> None:
        """Give it a command: `step NS`, `offset NS`, `withdraw`."""
        assert self.process.stdin
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    @property
    def clock(self) -> str:
        """Return what bw-clock calls it."""
        return f"timeservice:{self.page}"


@contextlib.contextmanager
def service(build: Path, page: Path, *arguments: str) -> Generator[Service]:
    """Run it on a page; `arguments`: offset and bound in ns, TAI - UTC in s, rate in ppb."""
    program = build / FOLDER / "timeservice-follow"
    process = subprocess.Popen(
        [program, page, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield Service(page, process)
    finally:
        process.kill()
        process.communicate()
