# SPDX-License-Identifier: Apache-2.0
"""Capabilities of Linux that this process has: root in a container lacks some, and each has its name."""

from __future__ import annotations

from pathlib import Path

NUMBERS = {
    "CAP_NET_ADMIN": 12,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
}
"""include/uapi/linux/capability.h"""

NOT_PERMITTED = "Operation not permitted"
"""What the C library says of EPERM, without which no capability is the cause of a refusal."""


def lacking(*names: str) -> tuple[str, ...]:
    """Return those of some capabilities that this process does not have."""
    return not_in(Path("/proc/self/status").read_text(), *names)


def not_in(status: str, *names: str) -> tuple[str, ...]:
    """Return those of some capabilities that are not effective by the text of /proc/PID/status."""
    mask = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    return tuple(name for name in names if not mask >> NUMBERS[name] & 1)


def cause(refusal: str, lacks: tuple[str, ...]) -> str:
    """Return a refusal with the capabilities that are its cause, where it is one of rights."""
    return f"{refusal}: without {', '.join(lacks)}" if lacks and NOT_PERMITTED in refusal else refusal


def remedy(refusal: str, lacks: tuple[str, ...], otherwise: str) -> str:
    """Return what to do about a refusal; `otherwise`, where no right is its cause."""
    if NOT_PERMITTED not in refusal:
        return otherwise
    if lacks:
        options = " ".join(f"--cap-add={name.removeprefix('CAP_')}" for name in lacks)
        return f"run as root; in a container with {options}"
    return "let the container's seccomp or AppArmor profile allow it: no capability is missing"
