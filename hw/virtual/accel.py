# SPDX-License-Identifier: Apache-2.0
"""Find out how guests can be run here: by the hardware's virtualisation (KVM), or emulated (TCG).

`/dev/kvm` may be there and still boot no guest (nested virtualisation that is half enabled): the only proof
is a guest that boots. The probe is the bench's own kernel up to the first program of its initramfs.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from hw.errors import BenchError
from hw.scratch import scratch_folder
from hw.virtual.image import ImageSet, build_or_get, cache_folder
from hw.virtual.image_build import Progress
from hw.virtual.image_recipe import DEFAULT_KIND, recipe_of

Accelerator = Literal["kvm", "tcg"]

KVM_DEVICE = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PROBE_TIMEOUT_S = 10.0
_QEMU = "qemu-system-x86_64"
_PROBE_ARGUMENT = "benchwright_probe=1"
_PROBE_ANSWER = "benchwright: probe booted"
_POLL_S = 0.02


@dataclass(frozen=True)
class Finding:
    """What a probe has shown.

    Attributes:
        accelerator: `kvm` or `tcg`.
        reason: Why, in one line, for the facts of the host.
        basis: What the finding holds for: boot of the host, QEMU, kernel of the guest.
    """

    accelerator: Accelerator
    reason: str
    basis: str


def probe(progress: Progress | None = None, kind: str = DEFAULT_KIND) -> Accelerator:
    """Return `kvm` if a guest boots under it, else `tcg`; remembered until the host's next boot.

    Args:
        progress: Gets the lines of an image build, should one be needed first.
        kind: Of the guest: another processor than this machine's is always emulated.

    Raises:
        BenchwrightError: There is no guest image and it cannot be built.
    """
    return find(progress).accelerator if "kvm" in recipe_of(kind).machine.cpu else "tcg"


def find(progress: Progress | None = None) -> Finding:
    """Return the finding of `probe` with its reason."""
    if not os.access(KVM_DEVICE, os.R_OK | os.W_OK):
        return Finding("tcg", f"{KVM_DEVICE} is missing or not accessible", "")
    image = build_or_get("target", progress)
    basis = f"{BOOT_ID.read_text(encoding='ascii').strip()} {_qemu_version()} {image.kernel_release}"
    cached = _read(basis)
    if cached is None:
        cached = _probe(image, basis)
        with suppress(OSError):  # of a cache that may only be read: the next start asks again
            _write(cached)
    return cached


def _cache_file() -> Path:
    return cache_folder().parent / "accelerator.json"


def _read(basis: str) -> Finding | None:
    """Return the remembered finding if it still holds; whatever else the file holds counts as none."""
    try:
        finding = Finding(**json.loads(_cache_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return finding if finding.basis == basis and finding.accelerator in ("kvm", "tcg") else None


def _write(finding: Finding) -> None:
    path = _cache_file()
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(asdict(finding), file)
    Path(name).replace(path)


def _qemu_version() -> str:
    try:
        answer = subprocess.run([_QEMU, "--version"], check=True, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        raise BenchError(f"{_QEMU} --version: {error}") from error
    return answer.stdout.splitlines()[0]


def _probe(image: ImageSet, basis: str) -> Finding:
    with scratch_folder("probe") as folder:
        console, errors = Path(folder, "console.log"), Path(folder, "qemu.err")
        argv = [_QEMU, "-accel", "kvm", "-cpu", "host", "-M", "q35", "-m", "256M", "-nodefaults"]
        argv += [
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-serial",
            f"file:{console}",
            "-kernel",
            str(image.kernel),
        ]
        argv += ["-initrd", str(image.initrd), "-append", f"{image.command_line} {_PROBE_ARGUMENT}"]
        with errors.open("wb") as sink:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        try:
            booted = _wait_for_answer(process, console)
        finally:
            process.kill()
            process.wait()
        if booted:
            return Finding("kvm", "a probe guest booted under KVM", basis)
        lines = errors.read_text(encoding="utf-8", errors="replace").split("\n")
        said = lines[0].strip() or f"no sign of life within {PROBE_TIMEOUT_S:.0f} s"
        return Finding("tcg", f"no guest boots under KVM here: {said}", basis)


def _wait_for_answer(process: subprocess.Popen[bytes], console: Path) -> bool:
    deadline_s = time.monotonic() + PROBE_TIMEOUT_S
    while time.monotonic() < deadline_s:
        ended = process.poll() is not None
        if console.is_file() and _PROBE_ANSWER in console.read_text(encoding="utf-8", errors="replace"):
            return True
        if ended:
            return False
        time.sleep(_POLL_S)
    return False
