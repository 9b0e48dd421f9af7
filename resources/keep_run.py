# SPDX-License-Identifier: Apache-2.0
"""At the end of a run: its points into the local store, and on to InfluxDB where an endpoint is set.

Both happen in processes of their own with a time limit: whatever goes wrong there is said, and the run's
verdict and exit code stay what they are. What could not be stored can be imported later, what could not be
delivered waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

STORE = "store.sqlite"
ENDPOINT_VARIABLE = "BENCHWRIGHT_ENDPOINT"
_STORE_MAX_S = 60.0
_DELIVERY_MAX_S = 8.0
_GIVE_UP_S = "4"


def keep_run(run: Path, results: Path) -> str:
    """Store a run and deliver what waits; return what went wrong, '' where nothing did.

    Args:
        run: The run folder.
        results: Where the store lies.
    """
    store = ["--store", str(results / STORE)]
    problem = _dashboards(["import", str(run), "--branch-of-job", *store], _STORE_MAX_S)
    if problem:
        return f"the run is not in the store: {problem}"
    if os.environ.get(ENDPOINT_VARIABLE):
        problem = _dashboards(["deliver", "--give-up-s", _GIVE_UP_S, *store], _DELIVERY_MAX_S)
        if problem:
            return f"delivery: {problem}"
    return ""


def _dashboards(arguments: list[str], limit_s: float) -> str:
    """Run `python -m dashboards`; return its last words where it failed, else ''."""
    command = [sys.executable, "-m", "dashboards", *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return f"`{arguments[0]}` took longer than {limit_s:g} s"
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return ""
    words = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return words[-1] if words else f"`{arguments[0]}` ended with {done.returncode}"
