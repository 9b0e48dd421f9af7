# SPDX-License-Identifier: Apache-2.0
"""The programs of the time service, as they are built for this machine, or for Windows and run under Wine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from hw.tools import BUILD, HOST_BUILD, local_tool
from hw.virtual.windows_prefix import WINE_FOLDER, prefix_or_make, wine_environment
from tests.patience import HANG_S

TRUTH_READER = "timeservice-truth-reader"
TESTS = Path("tests", "traffic_gen", "timeservice")
WINDOWS_BUILD = BUILD / "win"
WINDOWS_PROGRAMS = {
    "bw-timed": Path("targets", "windows", "src", "bw-timed.exe"),
    "bw-timectl": Path("traffic-gen", "bw-timectl.exe"),
    TRUTH_READER: TESTS / f"{TRUTH_READER}.exe",
}


class Programs:
    """This machine's own."""

    def argv(self, name: str) -> list[str]:
        """Return what a command line of a program begins with."""
        is_test = name == TRUTH_READER
        return [str(BUILD / HOST_BUILD / TESTS / name if is_test else local_tool(name))]

    def page(self, page: Path) -> str:
        """Return a page as these programs name it."""
        return str(page)


NATIVE = Programs()


class WindowsPrograms(Programs):
    """Those for Windows, on a disk of Windows of their own; their sockets are where it was switched on."""

    def __init__(self, folder: Path, prefix: Sequence[str] = ()) -> None:
        """Make the disk and switch it on.

        Args:
            folder: For the disk.
            prefix: What a command begins with that is to open its sockets elsewhere.

        Raises:
            CapabilityError: Wine is not installed.
        """
        disk = folder / "windows"
        shutil.copytree(prefix_or_make(), disk, symlinks=True)
        (disk / "drive_c" / "tools").mkdir()
        for program in WINDOWS_PROGRAMS.values():
            shutil.copy(WINDOWS_BUILD / program, disk / "drive_c" / "tools")
        ours = wine_environment(disk)
        names = ("PATH", "WINEPREFIX", "LC_ALL", "WINEDEBUG", "WINEDLLOVERRIDES")
        self._command = ["env", *(f"{name}={ours[name]}" for name in names)]
        # Sockets of all programs are those of Wine's server, which the first one starts.
        self._on = subprocess.Popen(
            [*prefix, *self._command, str(WINE_FOLDER / "wine64"), "C:\\windows\\system32\\cmd.exe"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def argv(self, name: str) -> list[str]:
        """Return what a command line of a program begins with."""
        program = WINDOWS_PROGRAMS[name].name
        return [*self._command, str(WINE_FOLDER / "wine64"), f"C:\\tools\\{program}"]

    def page(self, page: Path) -> str:
        """Return a page as these programs name it: on their disk."""
        return f"C:\\{page.name}"

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Switch it off, with all that runs on it."""
        self._on.communicate(b"exit\r\n", timeout=HANG_S)
        argv = [*self._command, str(WINE_FOLDER / "wineserver64"), "--kill"]
        subprocess.run(argv, check=False, timeout=HANG_S)
