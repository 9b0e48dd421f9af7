# SPDX-License-Identifier: Apache-2.0
"""Tools of this machine that the kernel ends with the process that started them, even if that is killed."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from hw.drivers.local import LocalJob, LocalNode
from hw.errors import BenchError
from hw.preload import without_preload
from hw.tools import ROOT


def start_owned(name: str, argv: Sequence[str], stem: Path) -> LocalJob:
    """Start a tool, in the folder of the project, that does not outlive this process.

    Args:
        name: Of the job, for messages.
        argv: The command.
        stem: It writes to `stem`.ndjson and `stem`.err.

    Raises:
        BenchError: It cannot be started.
    """
    output, errors = stem.with_suffix(".ndjson"), stem.with_suffix(".err")
    started = threading.Event()
    processes: list[subprocess.Popen[bytes]] = []
    failures: list[OSError] = []

    def own() -> None:
        # The kernel's signal comes when the thread that started a process ends: this one stays with it.
        try:
            with output.open("wb") as out, errors.open("wb") as err:
                processes.append(
                    subprocess.Popen(
                        ["setpriv", "--pdeathsig", "KILL", *argv],
                        cwd=ROOT,
                        env=without_preload(),
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=err,
                        start_new_session=True,
                    )
                )
        except OSError as error:
            failures.append(error)
        started.set()
        for process in processes:
            process.wait()

    threading.Thread(target=own, name=name, daemon=True).start()
    started.wait()
    if failures:
        raise BenchError(f"{name}: {failures[0]}") from failures[0]
    return LocalJob(name, processes[0], output, errors)


class OwnedNode(LocalNode):
    """This machine, outside of all network namespaces: nothing there ends what a killed run has left."""

    def start(self, argv: Sequence[str], stem: Path) -> LocalJob:
        """Start a native tool that does not outlive this process."""
        verb = argv[1] if len(argv) > 1 else ""
        return start_owned(f"{Path(argv[0]).name} {verb} on {self.name}", argv, stem)
