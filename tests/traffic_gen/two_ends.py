# SPDX-License-Identifier: Apache-2.0
"""The two ends of a verb of bw-traffic over TCP, each a process of its own."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.patience import HANG_S

Json = dict[str, Any]
PATIENT = ("--timeout-ms", "60000")


@contextmanager
def end(*command: str | Path) -> Generator[tuple[subprocess.Popen[str], Json]]:
    """Run one end; gives the process and its line `ready`."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, json.loads(process.stdout.readline() or "{}")
        finally:
            if process.poll() is None:
                process.kill()


def free(host: str = "127.0.0.1") -> str:
    """Return an address with a TCP port that was free a moment ago."""
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    with socket.socket(family) as probe:
        probe.bind((host.strip("[]"), 0))
        return f"{host}:{probe.getsockname()[1]}"


def ended(process: subprocess.Popen[str]) -> tuple[int, Json, str]:
    """Return exit code, result and what was said besides."""
    output, errors = process.communicate(timeout=HANG_S)
    return process.returncode, json.loads(output.splitlines()[-1]), errors
