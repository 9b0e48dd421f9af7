# SPDX-License-Identifier: Apache-2.0
"""Each native program, and each of its verbs, explains itself when it is asked to, and does nothing else."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.patience import HANG_S

BUILD = Path(__file__).resolve().parents[2] / ".build" / "linux"
ONLY_BENCHES = {"bw-setclock"}
"""What benches call on targets, and nobody else: its source says how."""
TOOLS = {path.name: path for path in BUILD.rglob("bw-*") if path.is_file() and path.stat().st_mode & 0o111}


def helped(*command: str | Path) -> str:
    """Return what a program says of itself."""
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
    return done.stdout


def test_programs_are_found() -> None:
    assert {
        "bw-traffic",
        "bw-clock",
        "bw-edge",
        "bw-events",
        "bw-phase",
        "bw-rtdip",
        "bw-timed",
        "bw-timectl",
    } <= set(TOOLS)


@pytest.mark.parametrize("tool", sorted(set(TOOLS) - ONLY_BENCHES))
def test_help_is_all_that_is_said(tool: str) -> None:
    said = helped(TOOLS[tool])
    if not said.startswith(f"usage: {tool} VERB"):
        return
    verbs = re.findall(r"^  ([a-z][a-z-]*)  ", said, re.MULTILINE)
    assert verbs
    for verb in verbs:
        assert helped(TOOLS[tool], verb).startswith(f"usage: {tool} {verb}")
