# SPDX-License-Identifier: Apache-2.0
"""The C programs of benchmarks, compiled for this machine when they are needed."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from bench.lab.report import REPOSITORY
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


def compile_bpf(source: Path, name: str, header: Path) -> Path:
    """Compile a file for BPF, make a header of its programs, `NAME_SECTION`, and return that.

    Raises:
        CapabilityError: There is no clang, or it cannot make that of it.
    """
    if shutil.which("clang") is None:
        raise CapabilityError("clang is missing: run `make setup`")
    compiled = header.with_suffix(".o")
    machine = f"/usr/include/{platform.machine()}-linux-gnu"
    options = ["-target", "bpf", "-O2", "-g0", "-ffreestanding", "-Wall", "-Wextra", "-idirafter", machine]
    script = REPOSITORY / "targets" / "linux" / "bpf" / "bpf_object.py"
    for argv in (
        ["clang", *options, "-c", str(source), "-o", str(compiled)],
        [sys.executable, str(script), str(compiled), name, str(header)],
    ):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CapabilityError(f"{source.name} cannot be built: {done.stderr.strip()[-300:]}")
    return header
