# SPDX-License-Identifier: Apache-2.0
"""The disk of a virtual Windows machine: a prefix of Wine, made once for each version and cached.

A machine never writes to it: it lies under an overlay of its own, which is empty at power-on.
"""

from __future__ import annotations

import fcntl
import filecmp
import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from hw.errors import BenchError, CapabilityError
from hw.reservation import lock_file
from hw.virtual import image
from hw.virtual.image import Progress

WINE_FOLDER = Path("/usr/lib/wine")
"""Where Debian's package wine64 puts the programs; it puts none into PATH."""
BUILTINS = Path("/usr/lib/x86_64-linux-gnu/wine/x86_64-windows")
SYSTEM_FOLDERS = ("windows", "windows/system32", "windows/system32/drivers")
MAKING_DEADLINE_S = 120.0
MULTIMEDIA = "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Multimedia\\SystemProfile"
SETTINGS = (
    # As Windows has them. Wine does not heed them: they are there to be provisioned and given back.
    (MULTIMEDIA, "NetworkThrottlingIndex", "REG_DWORD", "10"),
    (MULTIMEDIA, "SystemResponsiveness", "REG_DWORD", "20"),
)
RECIPE = "4"
"""To be raised when what `_make` does changes."""


def wine_environment(prefix: Path) -> dict[str, str]:
    """Return the environment in which Wine works on a prefix, and says nothing of its own."""
    return {
        **os.environ,
        "PATH": f"{os.environ.get('PATH', '/usr/bin:/bin')}:{WINE_FOLDER}",
        "WINEPREFIX": str(prefix),
        "LC_ALL": "C.UTF-8",  # of file names and arguments on this side; Windows' own are UTF-16
        "WINEDEBUG": "-all",
        # Neither .NET nor a browser: their installers would be asked for.
        "WINEDLLOVERRIDES": "mscoree=;mshtml=",
    }


def wine_version() -> str:
    """Return what Wine says of its version.

    Raises:
        CapabilityError: It is not installed.
    """
    try:
        done = subprocess.run(
            [str(WINE_FOLDER / "wine64"), "--version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
    except OSError as error:
        raise CapabilityError(
            f"a virtual Windows machine needs Wine: {error}; run `make setup`, or install wine64"
        ) from error
    return done.stdout.strip()


def is_made() -> bool:
    """Return whether the cache has the prefix of this machine's Wine.

    Raises:
        CapabilityError: Wine is not installed.
    """
    return (image.cache_folder().parent / "windows" / digest()).exists()


def digest() -> str:
    """Return the name in the cache of the prefix of this machine's Wine.

    Raises:
        CapabilityError: Wine is not installed.
    """
    return hashlib.sha256(f"{wine_version()} {RECIPE} {SETTINGS}".encode()).hexdigest()[:12]


def prefix_or_make(progress: Progress | None = None) -> Path:
    """Return the cached prefix of this machine's Wine, making it where need be: 15 s, the first time.

    Args:
        progress: Gets one line when it is made; default: stderr.

    Raises:
        BenchError: It cannot be made.
        CapabilityError: Wine is not installed, or the cache cannot be written.
    """
    name = digest()
    cache = image.make_cache(image.cache_folder().parent / "windows")
    prefix = cache / name
    with lock_file(cache / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not prefix.exists():
            start_s = time.monotonic()
            _make(cache / f"{name}.new")
            (cache / f"{name}.new").rename(prefix)
            took_s = time.monotonic() - start_s
            say = progress or image.say_on_stderr
            say(f"Windows prefix: ready after {took_s:.0f} s ({prefix})")
    return prefix


def _make(prefix: Path) -> None:
    shutil.rmtree(prefix, ignore_errors=True)
    prefix.mkdir()
    _wine(prefix, "wineboot", "--init")
    # Wine takes an older Windows for granted; the tools are made for 10 and later.
    _wine(prefix, "winecfg", "/v", "win10")
    for key, value, kind, data in SETTINGS:
        _wine(prefix, "reg", "add", key, "/v", value, "/t", kind, "/d", data, "/f")
    # Its server writes the registry when it ends: some seconds after the last program.
    _run(prefix, str(WINE_FOLDER / "wineserver64"), "--wait")
    # A Windows machine does not see this one's disk.
    (prefix / "dosdevices" / "z:").unlink(missing_ok=True)
    _link_system_files(prefix / "drive_c")


def _link_system_files(disk: Path) -> None:
    """Put links in the place of Wine's copies of its own libraries: they are nine tenths of a prefix."""
    for folder in SYSTEM_FOLDERS:
        for file in (disk / folder).iterdir():
            builtin = BUILTINS / file.name
            if file.is_symlink() or not file.is_file() or not builtin.is_file():
                continue
            if filecmp.cmp(file, builtin, shallow=False):
                file.unlink()
                file.symlink_to(builtin)


def _wine(prefix: Path, *argv: str) -> None:
    _run(prefix, str(WINE_FOLDER / "wine64"), *argv)


def _run(prefix: Path, *argv: str) -> None:
    try:
        done = subprocess.run(
            argv,
            env=wine_environment(prefix),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=MAKING_DEADLINE_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchError(f"making a prefix of Wine: {error}") from error
    if done.returncode != 0:
        raise BenchError(f"making a prefix of Wine: {' '.join(argv)}: {(done.stderr or done.stdout)[-400:]}")
