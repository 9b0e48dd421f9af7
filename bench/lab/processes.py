# SPDX-License-Identifier: Apache-2.0
"""What programs say in their last line, and what memory they have taken."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.lab.report import REPOSITORY


def last_object(text: str) -> dict[str, Any]:
    """Return the JSON object of the last line of a program's output."""
    return json.loads(text.splitlines()[-1])


def answer_of(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a program to its end, in the source tree, and return its last line's object.

    Raises:
        CalledProcessError: It failed.
    """
    done = subprocess.run(argv, check=True, cwd=REPOSITORY, capture_output=True, text=True, env=environment)
    return last_object(done.stdout)


def peak_resident_bytes(pid: int | str) -> int:
    """Return the high-water mark of a process's resident memory since it runs its program; 0: it has ended.

    Not getrusage: its peak holds what the parent had when it started the process.
    """
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found[1]) * 1024 if found else 0
