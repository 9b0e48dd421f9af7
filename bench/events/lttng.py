# SPDX-License-Identifier: Apache-2.0
"""A session of LTTng-UST for one benchmark, set up as for a load that must lose nothing.

Buffers a user, none of them overwritten, 4 of 16 MiB a processor, so that all of a run has room; memory
mapped beforehand where the version can (LTTNG_UST_MAP_POPULATE_POLICY); no context fields.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from hw.errors import CapabilityError

SESSION = "bw-bench"
WAIT_S = 60


class Session:
    """A session daemon of its own, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        """Take a folder for the daemon's sockets and the traces."""
        self.environment = {
            **os.environ,
            "LTTNG_HOME": str(folder),
            "LTTNG_UST_MAP_POPULATE_POLICY": "cpu_possible",
        }
        self._folder = folder
        self._traces = 0

    def run(self, *argv: str) -> str:
        """Run a command with the session's environment; return its stdout."""
        return subprocess.run(
            argv, env=self.environment, check=True, text=True, capture_output=True, timeout=WAIT_S
        ).stdout

    def record(self, event: str, *argv: str) -> tuple[str, Path]:
        """Record an event of a program; return what that printed, and the trace."""
        self._traces += 1
        trace = self._folder / f"trace-{self._traces}"
        self.run("lttng", "create", SESSION, "--output", str(trace))
        try:
            self.run(
                "lttng", "enable-channel", "--userspace", "--subbuf-size=16M", "--num-subbuf=4", "numbers"
            )
            self.run("lttng", "enable-event", "--userspace", "--channel=numbers", event)
            self.run("lttng", "start")
            printed = self.run(*argv)
            self.run("lttng", "stop")
        finally:
            self.run("lttng", "destroy", SESSION)
        return printed, trace


@contextmanager
def session(folder: Path) -> Generator[Session]:
    """Give a session daemon until the block ends.

    Raises:
        CapabilityError: LTTng is not installed.
    """
    if shutil.which("lttng-sessiond") is None:
        raise CapabilityError("lttng-sessiond is missing: run `make setup`")
    folder.mkdir()
    made = Session(folder)
    with subprocess.Popen(
        ["lttng-sessiond", "--no-kernel", "--quiet"], env=made.environment, stderr=subprocess.DEVNULL
    ) as daemon:
        try:
            _wait_for(made)
            yield made
        finally:
            daemon.terminate()
            daemon.wait(WAIT_S)


def _wait_for(made: Session) -> None:
    """Wait until the daemon answers; a command would otherwise start another one."""
    for _ in range(WAIT_S * 10):
        done = subprocess.run(
            ["lttng", "--no-sessiond", "list"], env=made.environment, capture_output=True, check=False
        )
        if done.returncode == 0:
            return
        subprocess.run(["sleep", "0.1"], check=True)
    raise CapabilityError("lttng-sessiond does not answer")


def numbers_of(trace: Path) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the field `tag` of all events of a trace, in order, as babeltrace2 reads them."""
    text = subprocess.run(
        ["babeltrace2", "--no-delta", str(trace)], check=True, capture_output=True, text=True, timeout=600
    ).stdout
    return np.array(re.findall(r"tag = (-?\d+)", text), np.int64)
