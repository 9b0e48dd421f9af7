# SPDX-License-Identifier: Apache-2.0
"""A recorder beside programs that are started with its environment."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import HANG_S, wait_until


@contextmanager
def recorder(
    tool: str, output: Path, *arguments: str
) -> Generator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """Record all programs of an environment, which is given beside the recorder, into `output`."""
    with subprocess.Popen(
        [tool, "record", "--output", str(output), *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        name, _, folder = process.stdout.readline().strip().partition("=")
        try:
            yield process, {**os.environ, name: folder}
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
            process.wait(HANG_S)


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a recorder: it collects nothing until SIGCONT."""
    process.send_signal(signal.SIGSTOP)
    state = Path(f"/proc/{process.pid}/stat")
    wait_until(lambda: state.read_text().rsplit(")", 1)[1].split()[0] == "T", "the recorder stops")
