# SPDX-License-Identifier: Apache-2.0
"""Virtual oscilloscopes of a bench as processes of this machine; none outlives who asked for it."""

from __future__ import annotations

import sys
from pathlib import Path

from hw.drivers.local import LocalJob
from hw.drivers.owned import start_owned
from hw.errors import BenchError
from hw.oscilloscopes import VirtualOscilloscopeSpec

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
        argv = [
            *(sys.executable, "-m", "hw.virtual.oscilloscope"),
            f"--dialect={spec.dialect}",
            f"--address={spec.address}",
            f"--port={spec.port}",
            f"--edge-port={spec.edge_port}",
            *spec.options,
        ]
        self._job: LocalJob = start_owned(f"virtual oscilloscope {name}", argv, stem)
        try:
            self._job.wait_ready()
        except BenchError:
            self.end()
            raise

    def end(self) -> None:
        """End it; harmless when it has ended."""
        self._job.stop()
        try:
            self._job.wait(ENDING_S)
        except BenchError:
            self._job.kill()
