# SPDX-License-Identifier: Apache-2.0
"""`--help` of the time service's programs: the text, and nothing done."""

from __future__ import annotations

import re
import subprocess

import pytest

from hw.tools import local_tool
from tests.patience import HANG_S


@pytest.mark.parametrize("tool", ["bw-timed", "bw-timectl"])
def test_help_is_all_that_is_said(tool: str) -> None:
    argv = [str(local_tool(tool)), "--help"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {tool} ")
    assert done.stdout.splitlines()[-1].split() == ["--help", "show", "this", "text"]


def test_help_explains_each_mark_of_sources() -> None:
    argv = [str(local_tool("bw-timectl")), "--help"]
    said = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=HANG_S).stdout
    assert set(re.findall(r"\^(\S) \w", said)) == set("*+-x?!")
