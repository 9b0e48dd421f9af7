# SPDX-License-Identifier: Apache-2.0
"""A virtual Windows machine: Wine behind a real sshd, in a network namespace of its own.

Its login behaves like OpenSSH for Windows: every command line goes to cmd.exe as it is, sftp sees the disk as
`C:/…`. Everything that runs in it belongs to the namespace, and power-off ends just that.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from hw.bench import VirtualSpec
from hw.errors import BenchError
from hw.tools import local_tool
from hw.virtual import network
from hw.virtual.windows_prefix import WINE_FOLDER, prefix_or_make, wine_environment

READY = "benchwright: ready"
BOOT_DEADLINE_S = 60.0
LOGIN_TOOL = "bw-login"
LOG = "console.log"

# Windows tunes the receive window of each connection, up to 16 MB; this machine's kernel plays its part.
WINDOWS_SYSCTLS = {"net.ipv4.tcp_rmem": "4096 2097152 16777216"}

# The mounts, /run among them, are the machine's alone (`ip netns exec` makes them so) and end with it.
# The overlay's layer is memory: a machine that is switched on again finds nothing there.
_BOOT = """
set -e
mount --bind {folder} /mnt
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /run
mkdir -p /run/sshd {folder}
mount --bind /mnt {folder}
mount -t tmpfs -o mode=755 tmpfs {disk}
mkdir {disk}/new {disk}/work {disk}/prefix
mount -t overlay -o lowerdir={prefix},upperdir={disk}/new,workdir={disk}/work overlay {disk}/prefix
mkdir {disk}/view
mkdir {disk}/view/C:
mount --bind {disk}/prefix/drive_c {disk}/view/C:
cp {login_tool} {disk}/prefix/drive_c/windows/{login_name}
cd {disk}/prefix/drive_c
{server_placement}{wine}/wineserver64 --persistent
{wine}/wine64 cmd /c ver
echo '{ready}'
exec /usr/sbin/sshd -D -e -f {config}
"""

# A forced command sees what was asked for: a subsystem by the command that sshd_config names for it.
_LOGIN = """#!/bin/sh
cd {disk}/view
case $SSH_ORIGINAL_COMMAND in
{sftp_server}) exec {sftp_server} -d {disk}/view ;;
'') echo 'there is no interactive login' >&2; exit 1 ;;
esac
cd C:/users/root
# Wine hands stderr on to all that a program starts, whatever the program says: sshd would wait for it.
errors={disk}/stderr-$$
{wine}/wine64 'C:\\windows\\{login_name}' 2>$errors
code=$?
cat $errors >&2
rm $errors
exit $code
"""

SFTP_SERVER = "/usr/lib/openssh/sftp-server"


@dataclass(frozen=True)
class WindowsMachine:
    """A machine as its resource describes it."""

    name: str
    namespace: str
    folder: Path
    control_address: str
    priority: int
    """SCHED_FIFO priority of all that runs in it; 0: none."""
    cpus: tuple[int, ...]
    """CPUs of this machine that it runs on; empty: any."""


def attach(namespace: str, switch: str, name: str, addresses: tuple[str, str], spec: VirtualSpec) -> None:
    """Connect the namespace of a machine to both networks of the bench.

    Args:
        namespace: The machine's; exists.
        switch: Namespace of the switch.
        name: The switch's ports are `t-NAME` and `c-NAME`.
        addresses: On the test network, and on the control network.
        spec: Subnets and rate.
    """
    test, control = addresses
    network.create_link(switch, namespace, f"t-{name}", "br-test", "test0", test, spec.test_subnet)
    network.create_link(
        switch, namespace, f"c-{name}", "br-control", "control0", control, spec.control_subnet
    )
    network.limit_rate(namespace, "test0", spec)
    network.limit_rate(switch, f"t-{name}", spec)
    network.set_sysctls(namespace, WINDOWS_SYSCTLS)


def boot(machine: WindowsMachine) -> subprocess.Popen[bytes]:
    """Start a machine with an empty disk; return the process that lives as long as it, when it is up.

    Raises:
        BenchError: It does not come up; the text quotes its log.
        CapabilityError: Wine is not installed.
    """
    folder, disk = machine.folder, machine.folder / "disk"
    shutil.rmtree(disk, ignore_errors=True)
    disk.mkdir(parents=True)
    login_tool = local_tool(LOGIN_TOOL, "x86_64-windows")
    fields = {
        "folder": folder,
        "disk": disk,
        "prefix": prefix_or_make(),
        "login_tool": login_tool,
        "login_name": login_tool.name,
        "wine": WINE_FOLDER,
        # Wine's server looks at a socket again and again until the program has read it: that comes first.
        "server_placement": f"chrt --fifo {machine.priority - 1} " if machine.priority > 1 else "",
        "ready": READY,
        "config": folder / "sshd_config",
        "sftp_server": SFTP_SERVER,
    }
    _write_login(machine, _LOGIN.format(**fields))
    log = folder / LOG
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*_placement(machine), "sh", "-c", _BOOT.format(**fields)],
            env=wine_environment(disk / "prefix"),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + BOOT_DEADLINE_S
    while READY not in (text := log.read_text(errors="replace")):
        if process.poll() is not None:
            raise BenchError(f"{machine.name}: ended while it booted: {text[-400:].strip()}")
        if time.monotonic() > deadline:
            power_off(machine.namespace)
            raise BenchError(f"{machine.name}: not up after {BOOT_DEADLINE_S:g} s: {text[-400:].strip()}")
        time.sleep(0.05)
    return process


def power_off(namespace: str) -> None:
    """End all that runs in a machine, without asking it."""
    network.end_processes(namespace)


def _placement(machine: WindowsMachine) -> list[str]:
    argv = ["ip", "netns", "exec", machine.namespace]
    if machine.cpus:
        argv += ["taskset", "--cpu-list", ",".join(str(cpu) for cpu in machine.cpus)]
    if machine.priority:
        argv += ["chrt", "--fifo", str(machine.priority)]
    return argv


def _write_login(machine: WindowsMachine, login: str) -> None:
    folder = machine.folder
    for key in ("ssh_host_ed25519_key", "login_key"):
        _make_key(folder / key)
    script = folder / "login"
    script.write_text(login)
    script.chmod(0o755)
    host_key = (folder / "ssh_host_ed25519_key.pub").read_text().strip()
    (folder / "known_hosts").write_text(f"{machine.control_address} {host_key}\n")
    settings = {
        "ListenAddress": f"{machine.control_address}:22",
        "HostKey": folder / "ssh_host_ed25519_key",
        "AuthorizedKeysFile": folder / "login_key.pub",
        "PermitRootLogin": "prohibit-password",
        "PasswordAuthentication": "no",
        "UsePAM": "no",
        "StrictModes": "no",
        "PidFile": "none",
        "MaxSessions": "64",
        "SetEnv": " ".join(
            shlex.quote(f"{key}={value}")
            for key, value in wine_environment(folder / "disk" / "prefix").items()
            if key.startswith("WINE")
        ),
        "ForceCommand": script,
        "Subsystem": f"sftp {SFTP_SERVER}",
    }
    (folder / "sshd_config").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))


def _make_key(path: Path) -> None:
    for old in (path, path.with_name(f"{path.name}.pub")):
        old.unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "benchwright", "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
