# SPDX-License-Identifier: Apache-2.0
"""Two stacks and a link in virtual time, for the tests of what they do about losses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

BUILD = Path(__file__).resolve().parents[3] / ".build" / "linux" / "tests" / "targets" / "userstack"
LINE_BYTES_PER_S = 118_700_000
"""Of 1 Gbit/s, in segments of 1460 bytes."""
BULK_BYTES = 20_000_000
WINDOW, MODEL = 0, 1
"""What controls how much is sent: option `model` of the simulator."""
control = WINDOW
"""Where a test does not say it."""


def simulate(*drops: str, **options: float) -> dict[str, Any]:
    """Run the simulator, which loses what `drops` say: OFFSETxTIMES."""
    command = [str(BUILD / f"userstack-{name}") for name in ("simulate", "end-first.so", "end-second.so")]
    for drop in drops:
        command += ["--drop", drop]
    for name, value in {"model": control, **options}.items():
        command += ["--" + name.replace("_", "-"), str(value)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    assert done.returncode in (0, 1), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def carry(**options: float) -> dict[str, Any]:
    """Carry 20 MB, or `bytes`, at 1 Gbit/s, 50 us each way, and check every byte."""
    options = {"bytes": BULK_BYTES, **options}
    result = simulate(**options)
    assert (result["received_bytes"], result["wrong_bytes"], result["error"]) == (options["bytes"], 0, 0)
    return result
