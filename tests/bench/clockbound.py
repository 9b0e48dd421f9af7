# SPDX-License-Identifier: Apache-2.0
"""A program that reads ClockBound's client, built from its registry when a benchmark needs it."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

from hw.errors import CapabilityError

SOURCE = Path(__file__).with_name("clockbound_cost.rs")
VERSION = "3.0.0-rc.0"
BUILD_S = 600
MANIFEST = f"""[package]
name = "clockbound-cost"
version = "0.0.0"
edition = "2021"
publish = false

[[bin]]
name = "clockbound-cost"
path = "{SOURCE}"

[dependencies]
clock-bound = "={VERSION}"
nix = {{ version = "0.26", features = ["time"] }}
"""


def build_clockbound(folder: Path) -> Path:
    """Build the program in a folder of its own; return it.

    Raises:
        CapabilityError: There is no cargo, or it cannot fetch or build the crate; or this is no x86-64.
    """
    if platform.machine() != "x86_64":
        raise CapabilityError("clockbound-cost reads the counter of x86-64 alone")
    if shutil.which("cargo") is None:
        raise CapabilityError("cargo is missing: it builds ClockBound's client")
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "Cargo.toml"
    if not manifest.exists() or manifest.read_text() != MANIFEST:
        manifest.write_text(MANIFEST)
    argv = ["cargo", "build", "--release", "--quiet", "--manifest-path", str(manifest)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=BUILD_S, cwd=folder)
    except subprocess.TimeoutExpired as error:
        raise CapabilityError(f"clock-bound {VERSION} is not built within {BUILD_S} s") from error
    if done.returncode:
        raise CapabilityError(f"clock-bound {VERSION} cannot be built: {done.stderr.strip()[-300:]}")
    return folder / "target" / "release" / "clockbound-cost"
