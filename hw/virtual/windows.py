# SPDX-License-Identifier: Apache-2.0
"""A virtual Windows machine: Wine behind a real sshd, in a network namespace of its own.

Its login behaves like OpenSSH for Windows: every command line goes to cmd.exe as it is, sftp sees the disk as
`C:/…`. Everything that runs in it belongs to the namespace, and power-off ends just that.
"""

from __future__ import annotations

import secrets
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hw.bench import VirtualSpec
from hw.faults import Fault
from hw.tools import local_tool
from hw.virtual import network
from hw.virtual.console_log import READY
from hw.virtual.namespace_boot import LOG, in_namespace, start
from hw.virtual.sshd import CONFIG, SERVER, SFTP_SERVER, write_sshd
from hw.virtual.windows_prefix import WINE_FOLDER, prefix_or_make, wine_environment

LOGIN_TOOL = "bw-login"
LOGIN = "login"
"""In the machine's folder: what sshd runs for each session."""
MEMORY = Path("/dev/shm")  # noqa: S108 - anyone may write here: see `new_disk`

# Windows tunes the receive window of each connection, up to 16 MB; this machine's kernel plays its part.
WINDOWS_SYSCTLS = {"net.ipv4.tcp_rmem": "4096 2097152 16777216"}

# The mounts, /run among them, are the machine's alone (`ip netns exec` makes them so) and end with it. The
# overlay's layer is memory, and stays: a machine that is switched on again finds what it has written there.
_BOOT = """
set -e
fail() {{
    echo "benchwright: boot failed: $*"
    exit 1
}}
mount --bind {folder} /mnt
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /run
# /run/user: where Wine has its socket; else all machines share a folder of /tmp.
mkdir -p /run/sshd /run/user/0 {folder}
mount --bind /mnt {folder}
rm -rf {disk}/work {disk}/view
mkdir -p {disk}/new {disk}/work {disk}/prefix
{fault}
mount -t overlay -o lowerdir={prefix},upperdir={disk}/new,workdir={disk}/work overlay {disk}/prefix
mkdir {disk}/view
mkdir {disk}/view/C:
[ -d {disk}/prefix/{system} ] || fail 'there is no Windows on its disk'
mount --bind {disk}/prefix/drive_c {disk}/view/C:
cp {login_tool} {disk}/prefix/drive_c/windows/bw-login.exe
cd {disk}/prefix/drive_c
{server_placement}{wine}/wineserver64 --persistent
SSH_ORIGINAL_COMMAND=ver {login} || fail 'Windows cannot run cmd.exe'
echo '{ready}'
exec {sshd} -D -e -f {config}
"""

# A forced command sees what was asked for: a subsystem by the command that sshd_config names for it.
# Under load Wine now and then does not start the command: it is asked again.
_LOGIN = """#!/bin/sh
cd {disk}/view
case $SSH_ORIGINAL_COMMAND in
{sftp_server}) exec {sftp_server} -d {disk}/view ;;
'') echo 'there is no interactive login' >&2; exit 1 ;;
esac
cd C:/users/root
# Wine hands stderr on to all that a program starts, whatever the program says: sshd would wait for it.
errors={disk}/stderr-$$
reached={disk}/prefix/drive_c/windows/login-$$
rm -f $reached
for start in 1 2 3; do
    BENCHWRIGHT_LOGIN="C:\\windows\\login-$$" {wine}/wine64 'C:\\windows\\bw-login.exe' 2>$errors
    code=$?
    [ ! -e $reached ] || break
    echo "Wine did not start $SSH_ORIGINAL_COMMAND: exit code $code" | cat - $errors >>{log}
    sleep 0.5
done
cat $errors >&2
case $(cat $reached 2>/dev/null) in
'') echo "Wine did not start the command: exit code $code" >&2 ;;
started) echo "Wine ended before the command: exit code $code" >&2 ;;
esac
rm -f $errors $reached
exit $code
"""

# What a fault does to the layer over the disk: a whiteout of overlayfs, a library without contents.
BOOT_FAULTS: dict[str, str] = {
    Fault.NEVER_BOOTS: "exec sleep infinity",
    Fault.WRONG_IMAGE: "mknod {disk}/new/drive_c c 0 0",
    Fault.DAMAGED_IMAGE: "mkdir -p {disk}/new/{system}; : >{disk}/new/{system}/kernel32.dll",
}
_SYSTEM = "drive_c/windows/system32"

# Fills the file system of provisioning's undo file, which is none of its own on the disk.
_FILL_DISK = """
set -e
mkdir -p {state}
mount -t tmpfs -o size=64k tmpfs {state}
dd if=/dev/zero of={state}/filler bs=4k 2>/dev/null || :
"""
_STATE = "drive_c/Program Files/Benchwright/state"


@dataclass(frozen=True)
class WindowsMachine:
    """A machine as its resource describes it."""

    name: str
    namespace: str
    folder: Path
    disk: Path
    """Of `new_disk`: what it has written to its disk since its first power-on."""
    control_address: str
    priority: int
    """SCHED_FIFO priority of all that runs in it; 0: none."""
    cpus: tuple[int, ...]
    """CPUs of this machine that it runs on; empty: any."""
    fault: str = ""
    """What is wrong with it, one of `Fault`; empty: nothing."""


def attach(namespace: str, switch: str, name: str, addresses: tuple[str, str], spec: VirtualSpec) -> None:
    """Connect the namespace of a machine to both networks of the bench.

    Args:
        namespace: The machine's; exists.
        switch: Namespace of the switch.
        name: The switch's ports are `t-NAME` and `c-NAME`.
        addresses: On the test network, and on the control network.
        spec: Subnets and rate.
    """
    network.connect_machine(switch, namespace, name, addresses, spec)
    network.set_sysctls(namespace, WINDOWS_SYSCTLS)


def new_disk(namespace: str) -> Path:
    """Return a folder, in memory, for what a machine writes to its disk; `boot` makes it.

    Nobody can foresee its name: where everyone may make folders and links, one that stood there already would
    be filled by root.
    """
    return MEMORY / f"{namespace}-{secrets.token_hex(8)}"


def boot(machine: WindowsMachine, *, first: bool) -> subprocess.Popen[bytes]:
    """Start a machine; return the process that lives as long as it, when it is up.

    Args:
        machine: What is started.
        first: Whether its disk is to be as on its first day; else what was written to it is there.

    Raises:
        BenchError: It does not come up; the text quotes its log.
        CapabilityError: Wine is not installed.
    """
    folder, disk = machine.folder, machine.disk
    folder.mkdir(parents=True, exist_ok=True)
    if first:
        disk.mkdir(mode=0o700)
    fields = {
        "folder": folder,
        "disk": disk,
        "prefix": prefix_or_make(),
        "fault": BOOT_FAULTS.get(machine.fault, "").format(disk=disk, system=_SYSTEM),
        "system": _SYSTEM,
        "login_tool": local_tool(LOGIN_TOOL, "x86_64-windows"),
        "login": folder / LOGIN,
        "wine": WINE_FOLDER,
        # Wine's server looks at a socket again and again until the program has read it: that comes first.
        "server_placement": f"chrt --fifo {machine.priority - 1} " if machine.priority > 1 else "",
        "ready": READY,
        "sshd": SERVER,
        "config": folder / CONFIG,
    }
    _write_login(machine, login_script(WINE_FOLDER, disk, folder / LOG))
    argv = [*_placement(machine), "sh", "-c", _BOOT.format(**fields)]
    environment = wine_environment(disk / "prefix")
    return start(machine.name, machine.namespace, argv, folder / LOG, environment)


def login_script(wine: Path, disk: Path, log: Path) -> str:
    """Return what sshd runs for each session, and boot to see whether Windows runs.

    Args:
        wine: Folder of Wine's programs.
        disk: Of the machine.
        log: Is told each command that Wine did not start, and why as far as it said.
    """
    return _LOGIN.format(wine=wine, disk=disk, log=log, sftp_server=SFTP_SERVER)


def power_off(namespace: str) -> None:
    """End all that runs in a machine, without asking it."""
    network.end_processes(namespace)


def fill_disk(machine: subprocess.Popen[bytes], disk: Path) -> None:
    """Let nothing more be written where provisioning keeps its undo file.

    Args:
        machine: What `boot` has returned.
        disk: Of the machine.

    Raises:
        BenchError: It cannot be done.
    """
    state = disk / "prefix" / _STATE
    script = _FILL_DISK.format(state=shlex.quote(str(state)))
    network.run("nsenter", "--mount", "--target", str(machine.pid), "sh", "-c", script)


def _placement(machine: WindowsMachine) -> list[str]:
    argv = in_namespace(machine.namespace, machine.cpus)
    return [*argv, "chrt", "--fifo", str(machine.priority)] if machine.priority else argv


def _write_login(machine: WindowsMachine, login: str) -> None:
    folder = machine.folder
    script = folder / LOGIN
    script.write_text(login)
    script.chmod(0o755)
    wine = wine_environment(machine.disk / "prefix")
    # With a level, bash does not take the session for a login: no start-up files of this machine.
    environment = {key: value for key, value in wine.items() if key.startswith("WINE") or key == "LC_ALL"}
    environment["SHLVL"] = "1"
    settings = {
        "SetEnv": " ".join(shlex.quote(f"{key}={value}") for key, value in environment.items()),
        "ForceCommand": script,
        "Subsystem": f"sftp {SFTP_SERVER}",
    }
    changed = machine.fault == Fault.CHANGED_HOST_KEY
    write_sshd(folder, machine.control_address, settings, changed_host_key=changed)
