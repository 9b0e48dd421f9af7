# SPDX-License-Identifier: Apache-2.0
"""Where the native tools are that `make setup` has built."""

from __future__ import annotations

from pathlib import Path

from hw.errors import CapabilityError

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build"


def local_tool(name: str, static: bool = False) -> Path:
    """Return the path of a native tool.

    Args:
        name: `bw-traffic`, …
        static: The build without shared libraries, which runs on any Linux of this machine's architecture.

    Raises:
        CapabilityError: It has not been built.
    """
    path = BUILD / ("static" if static else "linux") / "traffic-gen" / name
    if not path.exists():
        raise CapabilityError(f"{path.relative_to(ROOT)} is missing: run `make setup`")
    return path
