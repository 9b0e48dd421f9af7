# SPDX-License-Identifier: Apache-2.0
"""Windows machines reached by OpenSSH for Windows, whose shell is cmd.exe.

What differs from a Linux machine stands here: quoting, paths, and how a tool outlives its connection
(`targets/windows/src/bw-job.c`). Keywords see the same `Node` and `Job`.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import attr

from hw.drivers.labgrid_api import register_driver
from hw.drivers.ssh import NamespaceSSHDriver, SshNode
from hw.errors import ConfigError
from hw.protocols import CommandResult
from hw.tools import local_tool

MACHINE = "x86_64-windows"
HOME = "C:/Program Files/Benchwright"
"""Folder on the machine: tools in `bin`, answers of jobs in `run`.

What lies there is run, or put back, with all rights of an administrator: so it is where Windows lets
administrators alone create files. In `ProgramData` every user may.
"""
JOB_TOOL = "bw-job"

_PLAIN = re.compile(r"[\w.:/\\,+=@{}\[\]~#$*-]+\Z")
"""What neither cmd nor a program's start-up code takes apart."""
_IMPASSABLE = re.compile(r'["%!\r\n\0]')
"""What cmd changes even within quotes, or has no notation for."""


@register_driver
@attr.s(eq=False)
class WindowsSSHDriver(NamespaceSSHDriver):
    """labgrid's SSHDriver for a machine whose shell is cmd.exe, which has no `cat` to keep it open."""

    def make_node(
        self, name: str, clock: str, priority: int, is_powered: Callable[[], bool]
    ) -> WindowsSshNode:
        """Return the node behind this driver."""
        return WindowsSshNode(name, clock, priority, self, is_powered)

    def _start_keepalive(self) -> None:
        # It waits for a line that never comes, and ends with the connection.
        bound: Any = self  # labgrid sets what `bindings` names
        self._keepalive = subprocess.Popen(
            [str(bound._ssh), *self.ssh_prefix, str(bound.networkservice.address), "set /p wait="],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )


def cmd_line(argv: Sequence[str]) -> str:
    """Return a command line for cmd.exe that gives a program these arguments.

    The first one is the program or a command of cmd's own; its slashes become backslashes.

    Raises:
        ConfigError: An argument cannot be handed through cmd.
    """
    for argument in argv:
        if _IMPASSABLE.search(argument):
            raise ConfigError(
                f"{argument!r}: cannot be an argument on a Windows node: cmd.exe changes quotes, %, ! and"
                " line ends"
            )
    words = [argv[0].replace("/", "\\"), *argv[1:]]
    return " ".join(word if _PLAIN.match(word) else _quoted(word) for word in words)


def native_path(path: str) -> str:
    """Return a path as commands of cmd.exe take it, quoted where it has to be."""
    return cmd_line([path])


def _quoted(word: str) -> str:
    """Quote a word; backslashes at its end must not escape the closing quote."""
    return f'"{word}{(len(word) - len(word.rstrip(chr(92)))) * chr(92)}"'


class WindowsSshNode(SshNode):
    """A Windows machine behind OpenSSH for Windows."""

    job_folder = f"{HOME}/run"
    work_folder = f"{HOME}/replay"
    _job_tool_path = ""

    def machine(self) -> str:
        """Return what kind of machine it is, by the name of its builds."""
        return MACHINE

    def tool_path(self, tool: str) -> str:
        """Return where a native tool is put."""
        return f"{HOME}/bin/{tool}.exe"

    def library_path(self, library: str) -> str:
        """Return where a shared library is put."""
        return f"{HOME}/bin/{library}"

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run a program, or a command of cmd's own, to its end."""
        return self._run_line(cmd_line(argv), argv, timeout_s, check)

    def read(self, path: str) -> CommandResult:
        """Return a file's text as stdout; an exit code other than 0 where there is none."""
        return self.run([self._job_tool(), "read", path.replace("/", "\\")], check=False)

    def fresh_folder(self, name: str) -> str:
        """Make an empty folder for a tool's files."""
        folder = f"{self.work_folder}/{name}"
        path = native_path(folder)
        self._shell(f"(if exist {path} rmdir /s /q {path}) & mkdir {path}")
        return folder

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none where there is no folder."""
        listing = self._shell(f"dir /b {native_path(folder)}", check=False)
        return listing.stdout.splitlines() if listing.exit_code == 0 else []

    def make_parents(self, remote: str) -> None:
        """Make the folder that a file is to be put into."""
        folder = native_path(remote.rpartition("/")[0])
        self._shell(f"if not exist {folder} mkdir {folder}")

    def end_leftovers(self) -> None:
        """End the tools that a killed run has left: they hold ports, and their own files."""
        self.run([self._job_tool(), "end", f"{self.jobs}-".replace("/", "\\")])
        path = native_path(self.job_folder)
        self._shell(f"if exist {path} rmdir /s /q {path}")

    def start_detached(self, argv: Sequence[str], folder: str) -> None:
        """Start a tool that outlives the connection, with its files in a folder."""
        path = native_path(folder)
        launch = cmd_line([self._job_tool(), "start", folder.replace("/", "\\"), *argv])
        self._shell(f"(if exist {path} rmdir /s /q {path}) & mkdir {path} && {launch}")

    def stop_job(self, folder: str) -> None:
        """Ask the tool of a folder to end."""
        self.run([self._job_tool(), "stop", folder.replace("/", "\\")], check=False)

    def restart(self) -> None:
        """Ask the machine to restart; returns before it does."""
        self.run(["shutdown", "/r", "/f", "/t", "1"])

    def _shell(self, line: str, check: bool = True) -> CommandResult:
        return self._run_line(line, [line], 30.0, check)

    def _job_tool(self) -> str:
        """Return the path of bw-job there; its name tells versions apart, for one that runs stays."""
        if not self._job_tool_path:
            tool = local_tool(JOB_TOOL, MACHINE)
            digest = hashlib.sha256(tool.read_bytes()).hexdigest()[:12]
            remote = self.tool_path(f"{JOB_TOOL}-{digest}")
            if self._shell(f"if not exist {native_path(remote)} exit /b 1", check=False).exit_code != 0:
                self.put(tool, remote)
            self._job_tool_path = remote
        return self._job_tool_path
