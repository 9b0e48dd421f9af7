# SPDX-License-Identifier: Apache-2.0
"""At the end of a run: into the local store, advice of the history, and on to InfluxDB where one is set.

Each happens in a process of its own with a time limit: whatever goes wrong there is said, and the run's
verdict and exit code stay what they are. What could not be stored can be imported later, what could not be
advised can be asked again, what could not be delivered waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

STORE = "store.sqlite"
ENDPOINT_VARIABLE = "BENCHWRIGHT_ENDPOINT"
_STORE_MAX_S = 60.0
_ADVICE_MAX_S = 60.0
_DELIVERY_MAX_S = 8.0
_GIVE_UP_S = "4"


@dataclass(frozen=True)
class RunEnd:
    """What became of a run at its end.

    Attributes:
        problem: What went wrong; '' where nothing did.
        advice: What the history says of the run, in a line; '' where it could not be asked.
    """

    problem: str
    advice: str = ""


def keep_run(run: Path, results: Path) -> RunEnd:
    """Store a run, ask the history about it, and deliver what waits.

    Args:
        run: The run folder.
        results: Where the store lies.
    """
    store = ["--store", str(results / STORE)]
    done = _dashboards(["import", str(run), "--branch-of-job", *store], _STORE_MAX_S)
    if done.problem:
        return RunEnd(f"the run is not in the store: {done.problem}")
    asked = _dashboards(["advise", str(run), *store], _ADVICE_MAX_S)
    problems = [f"no advice of the history: {asked.problem}"] if asked.problem else []
    if os.environ.get(ENDPOINT_VARIABLE):
        done = _dashboards(["deliver", "--give-up-s", _GIVE_UP_S, *store], _DELIVERY_MAX_S)
        problems += [f"delivery: {done.problem}"] if done.problem else []
    return RunEnd("; ".join(problems), asked.words.partition(": ")[2])


@dataclass(frozen=True)
class _CommandEnd:
    """How a command ended: its last words, and as a problem where it failed."""

    words: str = ""
    problem: str = ""


def _dashboards(arguments: list[str], limit_s: float) -> _CommandEnd:
    """Run `python -m dashboards`, which does not outlive this process."""
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "dashboards", *arguments]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return _CommandEnd(problem=f"`{arguments[0]}` took longer than {limit_s:g} s")
    except OSError as error:
        return _CommandEnd(problem=str(error))
    texts = (done.stdout, done.stderr) if done.returncode == 0 else (done.stderr, done.stdout)
    words = next((text.strip().splitlines()[-1] for text in texts if text.strip()), "")
    if done.returncode == 0:
        return _CommandEnd(words)
    return _CommandEnd(problem=words or f"`{arguments[0]}` ended with {done.returncode}")
