# SPDX-License-Identifier: Apache-2.0
"""What a guest is told reaches it as written, and what it would refuse is refused before it boots."""

from __future__ import annotations

import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hw.errors import ConfigError
from hw.virtual import cpio
from hw.virtual.guest_config import (
    GuestBridge,
    GuestClock,
    GuestConfig,
    GuestInterface,
    write_run_config,
)

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n-----END OPENSSH PRIVATE KEY-----\n"
CONTROL = GuestInterface("52:54:00:00:00:01", "ctl0", "10.78.0.1/24")
LEFT = GuestInterface("52:54:00:00:00:02", "left")
RIGHT = GuestInterface("52:54:00:00:00:03", "right", mtu=9000)
CONFIG = GuestConfig("guest-1", (CONTROL, LEFT, RIGHT), "10.78.0.1", ("ssh-ed25519 AAAA run",), KEY)


def test_lines_are_in_the_order_of_action() -> None:
    config = replace(
        CONFIG,
        bridges=(GuestBridge("br0", ("left", "right")),),
        clock=GuestClock(-5, 100_000, 37),
    )
    assert config.lines().splitlines() == [
        "hostname guest-1",
        "clock -5 100000 37",
        "interface 52:54:00:00:00:01 ctl0 1500 10.78.0.1/24",
        "interface 52:54:00:00:00:02 left 1500 -",
        "interface 52:54:00:00:00:03 right 9000 -",
        "bridge br0 left right",
        "ssh 10.78.0.1",
    ]


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hostname", "two words", "hostname"),
        ("hostname", "", "hostname"),
        ("interfaces", (replace(CONTROL, mac="52:54:00:00:00:0G"),), "interface mac"),
        ("interfaces", (replace(CONTROL, name="eth0"),), "interface name"),
        ("interfaces", (replace(CONTROL, name="lo"),), "interface name"),
        ("interfaces", (replace(CONTROL, name="a-name-too-long0"),), "interface name"),
        ("interfaces", (replace(CONTROL, address="10.78.0.1"),), "ADDRESS/PREFIX"),
        ("interfaces", (replace(CONTROL, address="10.78.0.300/24"),), "interface address"),
        ("interfaces", (replace(CONTROL, mtu=575),), "576..65535"),
        ("interfaces", (CONTROL, replace(LEFT, name="ctl0")), "different"),
        ("interfaces", (CONTROL, replace(LEFT, mac=CONTROL.mac)), "different"),
        ("bridges", (GuestBridge("br0", ("ctl0",)),), "without an address"),
        ("bridges", (GuestBridge("br0", ()),), "without an address"),
        ("ssh_address", "10.78.0.2", "ssh_address"),
        ("authorized_keys", (), "authorized_keys"),
        ("authorized_keys", ("one\ntwo",), "authorized_keys"),
        ("clock", GuestClock(frequency_ppb=500_001), "frequency_ppb"),
        ("clock", GuestClock(step_ns=10**18), "step_ns"),
        ("clock", GuestClock(tai_utc_s=-1), "tai_utc_s"),
    ],
)
def test_bad_value_is_refused(field: str, value: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        replace(CONFIG, **{field: value})


def test_refused_key_is_not_quoted() -> None:
    with pytest.raises(ConfigError) as error:
        replace(CONFIG, host_key="a secret of another format")
    assert "secret" not in str(error.value)


def test_run_archive_follows_the_image(tmp_path: Path) -> None:
    base = tmp_path / "initrd"
    base.write_bytes(cpio.archive([cpio.file("init", b"program")]))
    combined = write_run_config(tmp_path / "run.initrd", base, CONFIG)
    assert stat.S_IMODE(combined.stat().st_mode) == 0o600
    data = combined.read_bytes()
    assert data.startswith(base.read_bytes())
    listed = extract(data[len(base.read_bytes()) :], tmp_path / "run")
    assert listed == {"run.d/authorized_keys", "run.d/config", "run.d/ssh_host_ed25519_key"}
    assert (tmp_path / "run" / "run.d" / "ssh_host_ed25519_key").read_text(encoding="ascii") == KEY
    assert (tmp_path / "run" / "run.d" / "config").read_text(encoding="ascii") == CONFIG.lines()


def test_cpio_reads_every_kind_of_entry(tmp_path: Path) -> None:
    odd = b"x" * 4097
    entries = [
        cpio.directory("d", 0o700),
        cpio.file("d/odd", odd, 0o755),
        cpio.symlink("d/link", "odd"),
        cpio.file("empty", b""),
    ]
    extract(cpio.archive(entries), tmp_path)
    assert (tmp_path / "d" / "odd").read_bytes() == odd
    assert stat.S_IMODE((tmp_path / "d" / "odd").stat().st_mode) == 0o755
    assert (tmp_path / "d" / "link").readlink() == Path("odd")
    assert (tmp_path / "empty").read_bytes() == b""
    assert cpio.archive(entries) == cpio.archive(entries)


def extract(data: bytes, folder: Path) -> set[str]:
    """Unpack an archive with cpio(1); return the paths of its plain files."""
    folder.mkdir(exist_ok=True)
    argv = ["cpio", "--extract", "--make-directories", "--quiet", "--no-absolute-filenames"]
    subprocess.run(argv, check=True, input=data, cwd=folder)
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
