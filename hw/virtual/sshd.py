# SPDX-License-Identifier: Apache-2.0
"""The sshd of a machine that is a network namespace of this one: its keys, its settings, who may log in.

All of it lies in the machine's own folder, and is made anew at each start: `login_key` is the bench's,
`known_hosts` what the bench expects, `sshd_config` what the server is started with.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

CONFIG = "sshd_config"
SERVER = "/usr/sbin/sshd"
SFTP_SERVER = "/usr/lib/openssh/sftp-server"


def write_sshd(
    folder: Path, address: str, settings: Mapping[str, object], *, changed_host_key: bool = False
) -> None:
    """Make keys and write the files that the server of a machine and the bench need.

    Args:
        folder: Of the machine; exists.
        address: That the server listens at.
        settings: Of `sshd_config`, besides those that every machine has.
        changed_host_key: Whether the bench is to expect another key than the server's.
    """
    for key in ("ssh_host_ed25519_key", "login_key"):
        _make_key(folder / key)
    known = "ssh_host_ed25519_key"
    if changed_host_key:
        known = "former_host_key"
        _make_key(folder / known)
    host_key = (folder / f"{known}.pub").read_text().strip()
    (folder / "known_hosts").write_text(f"{address} {host_key}\n")
    every: dict[str, object] = {
        "ListenAddress": f"{address}:22",
        "HostKey": folder / "ssh_host_ed25519_key",
        "AuthorizedKeysFile": folder / "login_key.pub",
        "PermitRootLogin": "prohibit-password",
        "PasswordAuthentication": "no",
        "UsePAM": "no",
        "StrictModes": "no",
        "PidFile": "none",
        "MaxSessions": "64",
    }
    lines = [f"{key} {value}\n" for key, value in {**every, **settings}.items()]
    (folder / CONFIG).write_text("".join(lines))


def _make_key(path: Path) -> None:
    for old in (path, path.with_name(f"{path.name}.pub")):
        old.unlink(missing_ok=True)
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "benchwright", "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
