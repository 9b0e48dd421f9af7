# SPDX-License-Identifier: Apache-2.0
"""Virtual oscilloscopes of a bench as processes of this machine; none outlives who asked for it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from hw.drivers.local import LocalJob
from hw.errors import BenchError
from hw.oscilloscopes import VirtualOscilloscopeSpec
from hw.tools import ROOT

READY_S = 20.0
ENDING_S = 5.0


class ScopeProcess:
    """A running `python -m hw.virtual.oscilloscope`."""

    def __init__(self, name: str, spec: VirtualOscilloscopeSpec, stem: Path) -> None:
        """Start it; returns when its ports are open.

        Args:
            name: Of the oscilloscope, for messages.
            spec: What it is.
            stem: What it says goes to files beside this.

        Raises:
            BenchError: It ended at once, as where its ports are in use, or is not ready in time.
        """
        self.spec = spec
        argv = [
            *("setpriv", "--pdeathsig", "KILL"),
            *(sys.executable, "-m", "hw.virtual.oscilloscope"),
            f"--dialect={spec.dialect}",
            f"--address={spec.address}",
            f"--port={spec.port}",
            f"--edge-port={spec.edge_port}",
            *spec.options,
        ]
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
                            argv,
                            cwd=ROOT,
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

        threading.Thread(target=own, name=f"oscilloscope {name}", daemon=True).start()
        started.wait()
        if failures:
            raise BenchError(f"virtual oscilloscope {name}: {failures[0]}") from failures[0]
        self._process = processes[0]
        self._job = LocalJob(f"virtual oscilloscope {name}", self._process, output, errors)
        try:
            self._job.wait_ready(READY_S)
        except BenchError:
            self.end()
            raise

    def end(self) -> None:
        """End it; harmless when it has ended."""
        self._job.stop()
        try:
            self._process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
