# SPDX-License-Identifier: Apache-2.0
"""Which processes of the bench run on this machine."""

from __future__ import annotations

from pathlib import Path

from hw.session import RUN_FOLDER


def find_processes(program: str, *words: str) -> list[int]:
    """Return the processes whose program's name begins with a text and whose command line holds the words."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        line = " ".join(command)
        if Path(command[0]).name.startswith(program) and all(word in line for word in words):
            found.append(int(process.name))
    return sorted(found)


def qemu_of(guest: str, bench: str = "virtual") -> int:
    """Return the process that runs a guest of a bench; other benches have guests of the same name."""
    (process,) = find_processes("qemu-system", f"-name {guest},", f"{RUN_FOLDER}/{bench}/")
    return process
