# SPDX-License-Identifier: Apache-2.0
"""The library of the user-mode stack where the C library has calls with time of 32 bits, and others with 64.

What they do is tried on a board: `tests/targets/test_board_user_stack.py`.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hw.tools import local_library

LIBC = "/usr/arm-linux-gnueabihf/lib/libc.so.6"


def symbols(file: str | Path) -> set[str]:
    """Return what a library for ARM gives to programs, without versions."""
    command = ["arm-linux-gnueabihf-nm", "--dynamic", "--defined-only", "--without-symbol-versions", file]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {line.split()[2] for line in done.stdout.splitlines()}


def test_every_second_form_of_a_call_is_taken() -> None:
    """A call that the C library has another form of, by its name, has it in the stack's library, too."""
    taken, libc = symbols(local_library("libbw-accel.so", "armv7l")), symbols(LIBC)
    bases = {name: base[1] for name in libc if (base := re.fullmatch(r"_*(.+?)(?:_time)?64", name))}
    forms = {name for name, base in bases.items() if base in taken}
    assert {"__ppoll64", "__select64", "__setsockopt64", "__fcntl_time64", "fcntl64", "sendfile64"} <= forms
    assert forms - taken == set()
