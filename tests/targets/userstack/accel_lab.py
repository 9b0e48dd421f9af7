# SPDX-License-Identifier: Apache-2.0
"""Two namespaces and a link: by the user-mode stack at the near end, by the kernel's at the far one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.patience import HANG_S, wait_until

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
        self.folder, self.mtu_bytes, self.options = folder, mtu_bytes, options
        self.near, self.far = (f"bw-u{os.getpid()}{end}" for end in "nf")
        self.socket = folder / "stackd.sock"
        self.service: subprocess.Popen[str] | None = None
        self._processes: list[subprocess.Popen[str]] = []
        self._scripts = 0

    def __enter__(self) -> AccelLab:
        """Make namespaces and link, and start the service."""
        self._delete()
        for namespace in (self.near, self.far):
            _run("ip", "netns", "add", namespace)
            _run("ip", "-n", namespace, "link", "set", "lo", "up")
        mtu = ["mtu", str(self.mtu_bytes)]
        pair = ["type", "veth", "peer", INTERFACE, *mtu, "netns", self.far]
        _run("ip", "link", "add", INTERFACE, *mtu, "netns", self.near, *pair)
        for namespace, addresses in ((self.near, NEAR), (self.far, FAR)):
            _run("ip", "-n", namespace, "address", "add", f"{addresses[4]}/24", "dev", INTERFACE)
            _run("ip", "-n", namespace, "address", "add", f"{addresses[6]}/64", "nodad", "dev", INTERFACE)
            _run("ip", "-n", namespace, "link", "set", INTERFACE, "up")
            # A veth hands on checksums that nobody has worked out; a wire never does.
            exec_in = ["ip", "netns", "exec", namespace]
            _run(*exec_in, "ethtool", "-K", INTERFACE, "tx", "off", "tso", "off", "gso", "off", "gro", "off")
        self.serve()
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs and remove the namespaces."""
        self.end_programs()
        if self.service:
            self.service.kill()
            self.service.communicate()
        self._delete()

    def end_programs(self) -> None:
        """End the programs that still run."""
        for process in self._processes:
            process.kill()
            process.communicate()
        self._processes.clear()

    def _delete(self) -> None:
        for namespace in (self.near, self.far):
            subprocess.run(["ip", "netns", "delete", namespace], check=False, stderr=subprocess.DEVNULL)

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

    def kernel_counts(self, namespace: str) -> dict[str, int]:
        """Return the kernel's counters of IP, TCP and UDP of a namespace, by names as /proc has them."""
        counts: dict[str, int] = {}
        text = _run("ip", "netns", "exec", namespace, "cat", "/proc/net/snmp")
        rows = text.splitlines()
        for head, row in zip(rows[::2], rows[1::2], strict=True):
            table = head.split()[0]
            for name, value in zip(head.split()[1:], row.split()[1:], strict=True):
                counts[table + name] = int(value)
        for line in _run("ip", "netns", "exec", namespace, "cat", "/proc/net/snmp6").splitlines():
            name, value = line.split()
            counts[name] = int(value)
        return counts

    @contextmanager
    def capture(self, namespace: str, expression: str) -> Generator[Path]:
        """Capture at an end; the file is whole at the end of the block."""
        file = self.folder / f"{namespace}.pcap"
        tcpdump = ["tcpdump", "-i", INTERFACE, "--immediate-mode", "-B", "16384", "-U", "-w", str(file)]
        process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *tcpdump, *expression.split()],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_until(lambda: file.exists() or process.poll() is not None, "tcpdump to begin")
            yield file
        finally:
            process.terminate()
            _, said = process.communicate(timeout=HANG_S)
        assert re.findall(r"^(\d+) packets? dropped", said, re.MULTILINE) == ["0"], said


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
    needed = re.findall(r"libasan\S+ => (\S+)", _run("ldd", str(library)))
    return needed[:1]


def _run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=HANG_S).stdout
