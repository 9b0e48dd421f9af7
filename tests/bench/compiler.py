# SPDX-License-Identifier: Apache-2.0
"""The C programs of benchmarks, compiled for this machine when they are needed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hw.errors import CapabilityError


def compile_c(source: Path, target: Path, *options: str) -> Path:
    """Compile a C file and return the target.

    Args:
        source: The file.
        target: What it becomes.
        options: Of gcc, besides those of every program.

    Raises:
        CapabilityError: There is no compiler, or it cannot make that of it.
    """
    if shutil.which("gcc") is None:
        raise CapabilityError("gcc is missing: run `make setup`")
    argv = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", *options, "-o", str(target), str(source)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CapabilityError(f"{source.name} cannot be built: {done.stderr.strip()[-300:]}")
    return target
