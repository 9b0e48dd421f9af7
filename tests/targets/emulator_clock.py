# SPDX-License-Identifier: Apache-2.0
"""What QEMU itself knows of a guest's counter: the truth that a calibration from outside is held against.

Under emulation an ARM guest's CNTVCT counts QEMU's virtual clock, which is this machine's CLOCK_MONOTONIC and
a constant. QEMU keeps that constant in nanoseconds in its variable `timers_state`, whose name Debian's build
exports (QEMU 10.0, system/cpu-timers.c: `cpu_get_clock_locked()` adds its field `cpu_clock_offset`).
"""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

_SYMBOL = "timers_state"


def process_of(console: Path) -> int:
    """Return the number of the QEMU that writes a console log.

    Raises:
        LookupError: There is none.
    """
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"file:{console}".encode() in words:
            return int(folder.name)
    raise LookupError(f"no process writes {console}")


def offset_candidates(pid: int) -> set[int]:
    """Return all that may be host - guest in nanoseconds, the true offset among it.

    Where exactly in `timers_state` the constant stands differs between versions of QEMU: each of its 64-bit
    words counts. That another one is within microseconds of the constant by accident is out of the question.

    Args:
        pid: QEMU's process.

    Raises:
        LookupError: This QEMU does not export the name.
    """
    program = Path(f"/proc/{pid}/exe").resolve()
    listed = subprocess.run(["nm", "-D", "-S", str(program)], check=True, capture_output=True, text=True)
    found = [line.split() for line in listed.stdout.splitlines() if line.endswith(f" {_SYMBOL}")]
    if not found:
        raise LookupError(f"{program} does not export {_SYMBOL}")
    address, size_bytes = int(found[0][0], 16), int(found[0][1], 16)
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        memory.seek(_load_address(pid, program) + address)
        words = struct.unpack(f"<{size_bytes // 8}q", memory.read(size_bytes // 8 * 8))
    return {-word for word in words if word}


def _load_address(pid: int, program: Path) -> int:
    """Return where a position-independent program begins in memory."""
    for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and fields[5] == str(program) and int(fields[2], 16) == 0:
            return int(fields[0].split("-")[0], 16)
    raise LookupError(f"{program} is not mapped in process {pid}")
