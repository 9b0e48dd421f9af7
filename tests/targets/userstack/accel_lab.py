# SPDX-License-Identifier: Apache-2.0
"""Two namespaces and a link: by the user-mode stack at the near end, by the kernel's at the far one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.link import Link, capture, dual_end, run_in
from tests.patience import HANG_S

INTERFACE = "test0"
NEAR, FAR = {4: "10.98.0.1", 6: "fd98::1"}, {4: "10.98.0.2", 6: "fd98::2"}
STARTED = "started"


class AccelLab:
    """The namespaces, the service at the near end, and programs of Python at both."""

    def __init__(self, build: Path, folder: Path, mtu_bytes: int = 1500, *options: str) -> None:
        """Take the native tools' folder, one for files, the link's MTU, and options of the service."""
        self.service_program = build / "targets/linux/userstack/service/bw-stackd"
        self.library = build / "targets/linux/userstack/accel/libbw-accel.so"
        self.recorder = build / "targets/linux/userstack/record/libbw-record.so"
        # A program that is not built with sanitizers needs their library before any other.
        self.sanitizer = sanitizer_of(self.library)
        self.folder, self.options = folder, options
        self.near, self.far = (f"bw-u{os.getpid()}{end}" for end in "nf")
        ends = dual_end(self.near, INTERFACE, NEAR), dual_end(self.far, INTERFACE, FAR)
        self._link = Link(*ends, mtu_bytes=mtu_bytes)
        self.socket = folder / "stackd.sock"
        self.service: subprocess.Popen[str] | None = None
        self._processes: list[subprocess.Popen[str]] = []
        self._scripts = 0

    def __enter__(self) -> AccelLab:
        """Make namespaces and link, and start the service."""
        self._link.make()
        for namespace in (self.near, self.far):
            # A veth hands on checksums that nobody has worked out; a wire never does.
            off = ["tx", "off", "tso", "off", "gso", "off", "gro", "off"]
            run_in(namespace, "ethtool", "-K", INTERFACE, *off)
        self.serve()
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs and remove the namespaces."""
        self.end_programs()
        if self.service:
            self.service.kill()
            self.service.communicate()
        self._link.remove()

    def end_programs(self) -> None:
        """End the programs that still run."""
        for process in self._processes:
            process.kill()
            process.communicate()
        self._processes.clear()

    def serve(self) -> None:
        """Start the service."""
        argv = [str(self.service_program), "serve", "--interface", INTERFACE, "--socket", str(self.socket)]
        self.service = subprocess.Popen(
            ["ip", "netns", "exec", self.near, *argv, *self.options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.service.stdout is not None
        assert self.service.stderr is not None
        line = self.service.stdout.readline()
        assert '"ready"' in line, line + self.service.stderr.read()

    def show(self) -> dict[str, Any]:
        """Return what the service says of itself."""
        argv = [str(self.service_program), "show", "--socket", str(self.socket)]
        done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=HANG_S)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def near_environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a program that runs by the stack."""
        libraries = ":".join([*self.sanitizer, str(self.library)])
        own = {"LD_PRELOAD": libraries, "BW_ACCEL_SOCKET": str(self.socket)}
        return {**os.environ, **own, **more}

    def start(
        self, namespace: str, *argv: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a program; at the near end by the stack, unless it gets another environment."""
        if environment is None:
            environment = self.near_environment() if namespace == self.near else dict(os.environ)
        # `ip` itself is not to be loaded with the library: it makes sockets, too.
        variables = {name: value for name, value in environment.items() if name.startswith("BW_")}
        preload = [f"LD_PRELOAD={environment['LD_PRELOAD']}"] if "LD_PRELOAD" in environment else []
        words = ["env", *preload, *argv]
        process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **variables},
        )
        self._processes.append(process)
        return process

    def python(
        self,
        namespace: str,
        script: str,
        *arguments: str,
        kernel: bool = False,
        record: Path | None = None,
    ) -> Started:
        """Start a script of Python.

        Args:
            namespace: Of an end.
            script: Its text.
            arguments: Its ARGUMENTS.
            kernel: By the kernel's stack at the near end, too.
            record: File for its calls; None: they are not recorded.
        """
        self._scripts += 1
        file = self.folder / f"script-{self._scripts}.py"
        head = "import os, select, socket, sys, threading, time, errno\nARGUMENTS = sys.argv[1:]\n"
        file.write_text(head + script)
        by_stack = namespace == self.near and not kernel
        environment = self.near_environment() if by_stack else dict(os.environ)
        if record is not None:
            libraries = [str(self.recorder), *([str(self.library)] if by_stack else [])]
            environment |= {"LD_PRELOAD": ":".join(libraries), "BW_RECORD": str(record)}
        argv = [sys.executable, "-u", str(file), *arguments]
        return Started(self.start(namespace, *argv, environment=environment))

    def capture(self, namespace: str, expression: str) -> AbstractContextManager[Path]:
        """Capture at an end; the file is whole at the end of the block."""
        return capture(namespace, INTERFACE, self.folder / f"{namespace}.pcap", expression)


class Started:
    """A script that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Take its process."""
        self.process = process

    def line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line and self.process.stderr is not None:
            raise AssertionError(f"it has ended: {self.process.stderr.read()}")
        return line.rstrip("\n")

    def ready(self) -> Started:
        """Wait until it says that it is ready; return itself."""
        assert self.line() == "ready"
        return self

    def tell(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def result(self) -> str:
        """Wait for its end; return what it has printed, which has to be without an error."""
        out, err = self.process.communicate(timeout=HANG_S)
        assert self.process.returncode == 0, f"exit code {self.process.returncode}: {out}{err}"
        assert "bw-accel" not in err, err
        return out


def sanitizer_of(library: Path) -> list[str]:
    """Return the library of AddressSanitizer that a library needs, if it does."""
    needed = subprocess.run(["ldd", str(library)], check=True, capture_output=True, text=True, timeout=HANG_S)
    return re.findall(r"libasan\S+ => (\S+)", needed.stdout)[:1]
