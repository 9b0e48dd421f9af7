# SPDX-License-Identifier: Apache-2.0
"""ClockBound, built from its registry for benchmarks: programs that read its client, and its daemon.

The daemon asks the kernel to steer the system's clock, and ends where it may not. Here it runs without the
right to do that, behind a library that tells it that it was done (no_steering.c): its own time, the one
that it publishes, does not depend on the system's. The servers of its configuration are not asked in this
version; that of its maker's cloud is, at a fixed address every 2 s, on a machine that says it is of that
cloud: it is shown such a machine's name, and the server has that address.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.lab.compiler import compile_c
from hw.errors import CapabilityError
from tests.patience import HANG_S, wait_until

COST, READ = (Path(__file__).with_name(f"clockbound_{name}.rs") for name in ("cost", "read"))
NO_STEERING = Path(__file__).with_name("no_steering.c")
VERSION = "3.0.0-rc.0"
BUILD_S = 600
SERVER_ADDRESS = "169.254.169.123"
"""The only one that its daemon asks."""
INTERVAL_MS = 2000
"""At which it asks; fixed."""
MANIFEST = f"""[package]
name = "clockbound-cost"
version = "0.0.0"
edition = "2021"
publish = false

[[bin]]
name = "clockbound-cost"
path = "{COST}"

[[bin]]
name = "clockbound-read"
path = "{READ}"

[dependencies]
clock-bound = "={VERSION}"
nix = {{ version = "0.26", features = ["time"] }}
"""


def build_clockbound(folder: Path) -> Path:
    """Build what reads its client in a folder of its own; return the program that measures cost.

    Raises:
        CapabilityError: There is no cargo, or it cannot fetch or build the crate; or this is no x86-64.
    """
    if platform.machine() != "x86_64":
        raise CapabilityError("clockbound-cost reads the counter of x86-64 alone")
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "Cargo.toml"
    if not manifest.exists() or manifest.read_text() != MANIFEST:
        manifest.write_text(MANIFEST)
    _cargo(folder, "build", "--release", "--quiet", "--manifest-path", str(manifest))
    return folder / "target" / "release" / "clockbound-cost"


def build_daemon(folder: Path) -> Path:
    """Build its daemon in a folder of its own; return it. Raises CapabilityError, as `build_clockbound`."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ["--root", str(folder), "--target-dir", str(folder / "target"), "--features", "daemon"]
    _cargo(folder, "install", "--quiet", *options, "--version", f"={VERSION}", "clock-bound")
    return folder / "bin" / "clockbound"


def _cargo(folder: Path, *arguments: str) -> None:
    if shutil.which("cargo") is None:
        raise CapabilityError("cargo is missing: it builds ClockBound")
    try:
        done = subprocess.run(
            ["cargo", *arguments], capture_output=True, text=True, check=False, timeout=BUILD_S, cwd=folder
        )
    except subprocess.TimeoutExpired as error:
        raise CapabilityError(f"clock-bound {VERSION} is not built within {BUILD_S} s") from error
    if done.returncode:
        raise CapabilityError(f"clock-bound {VERSION} cannot be built: {done.stderr.strip()[-300:]}")


class ClockBoundDaemon:
    """Its daemon, running; see above for what it is told."""

    def __init__(self, program: Path, folder: Path, prefix: Sequence[str]) -> None:
        """Start it.

        Args:
            program: The daemon.
            folder: For its /run, its log and the library before it.
            prefix: What a command begins with that runs where its server is, in a mount namespace of its own.
        """
        run, dmi = folder / "run", "/sys/devices/virtual/dmi/id"
        run.mkdir(parents=True)
        library = compile_c(NO_STEERING, folder / "no_steering.so", "-shared", "-fPIC")
        script = (
            f"set -e; mount --bind '{run}' /run; mount -t tmpfs tmpfs /sys/devices/virtual; mkdir -p {dmi}; "
            f"echo 'Amazon EC2' > {dmi}/sys_vendor; echo m7i.metal-24xl > {dmi}/product_name; "
            f"exec setpriv --bounding-set=-sys_time --inh-caps=-sys_time "
            f"env LD_PRELOAD='{library}' '{program}'"
        )
        self.segment = run / "clockbound" / "shm1"
        with (folder / "clockbound.log").open("w") as log:
            argv = [*prefix, "sh", "-c", script]
            self.process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT)
        wait_until(lambda: self.segment.exists() or self.process.poll() is not None, "its segment")
        if self.process.poll() is not None:
            raise CapabilityError(f"clockbound: {(folder / 'clockbound.log').read_text().strip()[-300:]}")

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it in any case."""
        self.process.kill()
        self.process.wait(HANG_S)


def cpu_s(pid: int) -> float:
    """Return what a process has used of processors so far, in all of its threads."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9
