# SPDX-License-Identifier: Apache-2.0
"""Nodes reached by SSH through labgrid, also from inside a network namespace.

A tool is started so that it outlives the connection and writes to a file on the node: while a measurement
runs, nothing travels over SSH (FD.io CSIT's rule), and the answers are fetched afterwards.
"""

from __future__ import annotations

import logging
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import attr
from labgrid.driver import SSHDriver
from labgrid.driver.exception import ExecutionError

from hw.answers import tail
from hw.drivers.conversation import PipeConversation
from hw.drivers.labgrid_api import register_driver
from hw.drivers.local import require_success, says_ready
from hw.drivers.scp import CopyError, CopyOverdueError, bytes_in, copy
from hw.errors import BenchError, OverdueError
from hw.protocols import READY_S, CommandResult

# Its driver warns of each attempt to connect to a node that still boots.
logging.getLogger("labgrid").setLevel(logging.ERROR)
logging.getLogger("NamespaceSSHDriver").setLevel(logging.ERROR)

WORK_FOLDER = "/run/benchwright"
REPLAY_FOLDER = f"{WORK_FOLDER}/replay"
REMOTE_TOOLS = "/var/lib/benchwright/bin"  # Debian mounts /run so that nothing in it can be executed

_POWER_POLL_S = 0.2
_ANSWER_S = 5
_HANG_UP_S = 10
_UNUSED_S = 10
_OTHER_KEY = b"Host key verification failed"
"""What ssh says of a node whose key is not the known one."""
_RESTART = """
if [ -d /run/systemd/system ]; then how='systemctl reboot'; else how='echo b >/proc/sysrq-trigger'; fi
sync
setsid sh -c "sleep 0.2; $how" </dev/null >/dev/null 2>&1 &
"""

R = TypeVar("R")


@register_driver
@attr.s(eq=False)
class NamespaceSSHDriver(SSHDriver):
    """labgrid's SSHDriver, silent while it is not used, and able to start from a network namespace.

    The bench puts it in the place of each SSHDriver of a bench file.

    Args:
        namespace: Name of the network namespace from which the node is reached; empty: this process's own.
        known_hosts: File with the one host key that is accepted; empty: any, as labgrid's own driver does.
    """

    namespace: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    known_hosts: str = attr.ib(default="", validator=attr.validators.instance_of(str))

    def make_node(self, name: str, clock: str, priority: int, is_powered: Callable[[], bool]) -> SshNode:
        """Return the node behind this driver; what differs from a Linux machine is the node's own matter."""
        return SshNode(name, clock, priority, self, is_powered)

    def _start_own_master_once(self, timeout: int) -> str:
        # No keepalive of SSH or TCP may disturb a measurement.
        options = ["-o", "ServerAliveInterval=0", "-o", "TCPKeepAlive=no"]
        # labgrid keeps one session open while it lives; once it was killed, the connection ends by itself.
        options += ["-o", f"ControlPersist={_UNUSED_S}"]
        if self.namespace:
            # nsenter by file: `ip netns exec` would remount /sys for nothing.
            proxy = f"nsenter --net=/run/netns/{self.namespace} nc %h %p"
            options += ["-o", f"ProxyCommand={proxy}"]
        if self.known_hosts:
            # ssh keeps the first value of an option: these come before labgrid's own.
            options += ["-o", f"UserKnownHostsFile={self.known_hosts}", "-o", "StrictHostKeyChecking=yes"]
        before = self.ssh_prefix
        self.ssh_prefix = [*options, *before]
        try:
            base: Any = super()
            return str(base._start_own_master_once(timeout))
        except ExecutionError as error:
            shutil.rmtree(
                self.tmpdir, ignore_errors=True
            )  # labgrid removes only that of a connection that stood
            failure: Any = error
            if any(_OTHER_KEY in line for line in failure.stdout or ()):
                # It does not get better by waiting.
                raise BenchError("its host key is not the one that is known") from error
            raise
        finally:
            self.ssh_prefix = before

    def _run(
        self, cmd: str, codec: str = "utf-8", decodeerrors: str = "strict", timeout: float | None = None
    ) -> tuple[list[str], list[str], int]:
        """Run a line to its end, as labgrid does, whose ssh goes on after the deadline.

        Raises:
            subprocess.TimeoutExpired: At the deadline; ssh has ended.
        """
        bound: Any = self  # labgrid sets what `bindings` names
        if not bound._check_keepalive():
            failure: Any = ExecutionError
            raise failure("Keepalive no longer running")
        done = subprocess.run(
            self.command_line(cmd),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if bound.stderr_merge else subprocess.PIPE,
            timeout=timeout,
            check=False,
        )
        out, err = (
            each.decode(codec, decodeerrors).split("\n") for each in (done.stdout, done.stderr or b"")
        )
        return out[:-1] if not out[-1] else out, err[:-1] if not err[-1] else err, done.returncode

    def command_line(self, line: str) -> list[str]:
        """Return the command, here, by which the node's shell runs a line over the connection that stands."""
        bound: Any = self  # labgrid sets what `bindings` names
        service = bound.networkservice
        to = ["-p", str(service.port), "-l", str(bound._get_username()), str(service.address)]
        return ["ssh", "-x", *self.ssh_prefix, *to, "--", line]

    def copy_line(self, source: str, destination: str) -> list[str]:
        """Return the command, here, that copies over the connection that stands; see `remote`.

        Raises:
            CopyError: It does not stand any more: scp would make one of its own.
        """
        bound: Any = self  # labgrid sets what `bindings` names
        if not bound._check_keepalive():
            raise CopyError("no connection by SSH any more")
        mode = ["-s"] if bound.explicit_sftp_mode and bound._scp_supports_explicit_sftp_mode() else []
        mode += ["-O"] if bound.explicit_scp_mode and bound._scp_supports_explicit_scp_mode() else []
        to = ["-P", str(bound.networkservice.port), "-r", source, destination]
        return [str(bound._scp), *mode, "-S", str(bound._ssh), *self.ssh_prefix, *to]

    def remote(self, path: str) -> str:
        """Return a path of the node, as scp takes it."""
        bound: Any = self
        return f"{bound._get_username()}@{bound.networkservice.address}:{path}"

    def hang_up(self) -> None:
        """End the connection at this end: whatever waits for the node over it ends too."""
        with suppress(subprocess.TimeoutExpired):  # one that does not even hear this ends with nobody's help
            subprocess.run(
                ["ssh", "-x", "-o", f"ControlPath={self.control}", "-O", "exit", "node"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_HANG_UP_S,
            )

    def answers(self) -> bool:
        """Tell whether an SSH server answers there now, over a connection of its own."""
        bound: Any = self  # labgrid sets what `bindings` names
        service = bound.networkservice
        enter = ["nsenter", f"--net=/run/netns/{self.namespace}"] if self.namespace else []
        scan = ["ssh-keyscan", "-T", str(_ANSWER_S), "-p", str(service.port), str(service.address)]
        try:
            done = subprocess.run(
                [*enter, *scan],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=2 * _ANSWER_S,  # its own time is that of each wait
            )
        except subprocess.TimeoutExpired:
            return False
        return bool(done.stdout.strip())

    def _stop_keepalive(self) -> None:
        """End the connection at this end first: labgrid waits two minutes for a node that is gone."""
        self.hang_up()
        super()._stop_keepalive()


class SshJob:
    """A native tool that runs detached on a node."""

    def __init__(self, node: SshNode, name: str, folder: str, stem: Path) -> None:
        """Watch the tool whose files are in `folder` on the node; copies go to `stem`."""
        self.name = name
        self._node = node
        self._folder = folder
        self._output = stem.with_suffix(".ndjson")
        self._errors = stem.with_suffix(".err")

    def process_id(self) -> int:
        """Return the tool's process id on the node."""
        text = self._node.read(f"{self._folder}/pid").stdout.strip()
        if not re.fullmatch(r"[0-9]{1,10}", text):
            raise BenchError(f"{self.name}: has left no process id")
        return int(text)

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Return when the tool has said `ready`; polls over SSH, so call it before measuring begins."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.fetch()
            if says_ready(self._output):
                return
            code = self._exit_code()
            if code is not None:
                self.fetch()  # a quick one was ready, and ended, between the two looks
                if says_ready(self._output):
                    return
                raise BenchError(
                    f"{self.name}: ended with exit code {code} before it was ready: {tail(self._errors)}"
                )
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name}: not ready after {timeout_s:g} s: {tail(self._errors)}")
            time.sleep(0.1)

    def wait(self, timeout_s: float) -> int:
        """Return the exit code; polls over SSH, so call it when measuring is over."""
        deadline = time.monotonic() + timeout_s
        while True:
            code = self._exit_code()
            if code is not None:
                return code
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name}: still running after {timeout_s:g} s")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask the tool to end."""
        self._node.stop_job(self._folder)

    def fetch(self) -> Path:
        """Copy the answers so far."""
        for remote, local in (("out", self._output), ("err", self._errors)):
            local.write_text(self._node.read(f"{self._folder}/{remote}").stdout)
        return self._output

    def _exit_code(self) -> int | None:
        done = self._node.read(f"{self._folder}/rc")
        text = done.stdout.strip()
        return int(text) if done.exit_code == 0 and re.fullmatch(r"-?[0-9]{1,10}", text) else None


class SshNode:
    """A Linux machine behind a labgrid CommandProtocol and FileTransferProtocol."""

    job_folder = WORK_FOLDER
    work_folder = REPLAY_FOLDER

    def __init__(
        self,
        name: str,
        clock: str,
        priority: int,
        driver: Any,
        is_powered: Callable[[], bool] = lambda: True,
    ) -> None:
        """Wrap an active labgrid SSHDriver.

        Args:
            name: Name of the node in the bench file.
            clock: Name of the clock that it stamps with.
            priority: SCHED_FIFO priority of its tools.
            driver: labgrid's driver; activated by the bench.
            is_powered: Tells what is known of the node's power without asking the node.
        """
        self.name = name
        self.clock = clock
        self.priority = priority
        self._driver = driver
        self._is_powered = is_powered
        self._started = 0
        self._machine = ""
        self.jobs = f"{self.job_folder}/job-{name}"
        """Where the folders of its jobs are, without their numbers."""

    def machine(self) -> str:
        """Return what kind of machine it is, as it says itself; asked once."""
        if not self._machine:
            self._machine = self.run(["uname", "-m"]).stdout.strip()
        return self._machine

    def tool_path(self, tool: str) -> str:
        """Return where a native tool is put."""
        return f"{REMOTE_TOOLS}/{tool}"

    def library_path(self, library: str) -> str:
        """Return where a shared library is put: as programs, where it may be loaded."""
        return f"{REMOTE_TOOLS}/{library}"

    def end_leftovers(self) -> None:
        """End the tools that a killed run has left on a machine whose power nobody cut: they hold ports."""
        left = shlex.quote(self.jobs)
        script = (
            f"for job in {left}-*; do [ -e $job/rc ] && continue; pid=$(cat $job/pid); "
            f"case $(readlink /proc/$pid/exe) in {REMOTE_TOOLS}/*) kill -KILL $pid;; esac; "
            f"done 2>/dev/null; rm -rf {left}-*"
        )
        self.run(["sh", "-c", script])

    @property
    def powered(self) -> bool:
        """False once it is known, without asking the node, that it has lost its power."""
        return self._is_powered()

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run a command to its end."""
        return self._run_line(shlex.join(argv), argv, timeout_s, check)

    def _run_line(self, line: str, argv: Sequence[str], timeout_s: float, check: bool) -> CommandResult:
        """Give the machine's shell a line; argv is what messages call it."""
        self._require_power()
        try:
            out, err, code = self._while_powered(
                lambda: self._driver.run(line, timeout=timeout_s, decodeerrors="replace")
            )
        except subprocess.TimeoutExpired as error:
            said = f"{self.name}: {' '.join(argv)}: timed out after {timeout_s:g} s{self._lost()}"
            raise OverdueError(said) from error
        except ExecutionError as error:
            raise BenchError(f"{self.name}: no connection by SSH: {error}") from error
        out, err = ([text.rstrip("\r") for text in lines] for lines in (out, err))
        text = "\n".join(out) + ("\n" if out else "")
        completed = CommandResult(tuple(argv), code, text, "\n".join(err))
        if code == 255:
            self._require_power()
            raise BenchError(
                f"{self.name}: the SSH connection broke at {' '.join(argv)}: {completed.stderr[-300:]}"
            )
        if check:
            require_success(self.name, completed)
        return completed

    def start(self, argv: Sequence[str], stem: Path) -> SshJob:
        """Start a native tool, detached."""
        self._started += 1
        folder = f"{self.jobs}-{self._started}"
        self.start_detached(argv, folder)
        return SshJob(
            self, f"{Path(argv[0]).name} {argv[1] if len(argv) > 1 else ''} on {self.name}", folder, stem
        )

    def converse(self, argv: Sequence[str], stem: Path) -> PipeConversation:
        """Start a program that is told things over the connection that stands, and ends with it."""
        self._require_power()
        name = f"{Path(argv[0]).name} {argv[1] if len(argv) > 1 else ''} on {self.name}"
        return PipeConversation(name, self._driver.command_line(shlex.join(argv)), stem)

    def start_detached(self, argv: Sequence[str], folder: str) -> None:
        """Start a tool that outlives the connection; `folder` gets its out, err, pid, and rc at its end."""
        # The shell that waits for the tool is detached from the connection; it leaves the exit code behind.
        launcher = (
            f"{shlex.join(argv)} >{folder}/out 2>{folder}/err & echo $! >{folder}/pid; "
            f"wait $!; echo $? >{folder}/rc.new; mv {folder}/rc.new {folder}/rc"
        )
        detached = f"setsid sh -c {shlex.quote(launcher)} </dev/null >/dev/null 2>&1 &"
        script = f"rm -rf {folder}; mkdir -p {folder}; {detached}"
        self.run(["sh", "-c", script])

    def stop_job(self, folder: str) -> None:
        """Ask the tool of a folder to end; harmless when it has ended."""
        script = f"[ -e {shlex.quote(folder)}/rc ] || kill -TERM $(cat {shlex.quote(f'{folder}/pid')})"
        self.run(["sh", "-c", script], check=False)

    def read(self, path: str) -> CommandResult:
        """Return a file's text as stdout; an exit code other than 0 where there is none."""
        return self.run(["cat", path], check=False)

    def bring(self, file: Path) -> str:
        """Bring a file to the node; return its path there."""
        remote = f"{self.work_folder}/{file.name}"
        self.put(file, remote)
        return remote

    def fresh_folder(self, name: str) -> str:
        """Make an empty folder for a tool's files; return its path."""
        folder = f"{self.work_folder}/{name}"
        self.run(["sh", "-c", f"rm -rf {shlex.quote(folder)} && mkdir -p {shlex.quote(folder)}"])
        return folder

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none where there is no folder."""
        return self.run(["ls", folder], check=False).stdout.splitlines()

    def make_parents(self, remote: str) -> None:
        """Make the folder that a file is to be put into."""
        self.run(["mkdir", "-p", str(Path(remote).parent)])

    def restart(self) -> None:
        """Ask the machine to restart; returns before it does."""
        self.run(["sh", "-c", _RESTART])

    def is_reached(self) -> bool:
        """Tell whether the connection still stands and the machine answers on it."""
        try:
            return self.run(["echo", "here"], timeout_s=_ANSWER_S).stdout.strip() == "here"
        except BenchError:
            return False

    def _require_power(self) -> None:
        """Complain at once of a node that cannot answer: SSH would wait for it."""
        if not self.powered:
            raise BenchError(f"{self.name}: has lost its power")

    def _while_powered(self, action: Callable[[], R]) -> R:
        """Do something over SSH; end it as soon as it is known that the node has lost its power."""
        done = threading.Event()
        lost = threading.Event()

        def watch() -> None:
            while not done.wait(_POWER_POLL_S):
                if not self.powered:
                    lost.set()
                    self._driver.hang_up()
                    return

        watcher = threading.Thread(target=watch, name=f"power of {self.name}", daemon=True)
        watcher.start()
        try:
            return action()
        finally:
            done.set()
            watcher.join()
            if lost.is_set():
                self._require_power()

    def _lost(self) -> str:
        """Return in words that nobody answers there any more; empty: somebody does."""
        return "" if self._driver.answers() else ": its SSH server does not answer any more"

    def put(self, local: Path, remote: str) -> None:
        """Copy a file to the node, keeping its mode."""
        self.make_parents(remote)
        self._copy(f"{local.name} to {remote}", str(local), self._driver.remote(remote), bytes_in(local))

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the node."""
        self._copy(remote, self._driver.remote(remote), str(local), local)

    def _copy(self, what: str, source: str, destination: str, moves: int | Path) -> None:
        self._require_power()
        try:
            self._while_powered(lambda: copy(self._driver.copy_line(source, destination), moves))
        except CopyOverdueError as error:
            raise OverdueError(f"{self.name}: cannot copy {what}: {error}{self._lost()}") from error
        except CopyError as error:
            raise BenchError(f"{self.name}: cannot copy {what}: {error}") from error
