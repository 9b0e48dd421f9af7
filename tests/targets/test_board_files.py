# SPDX-License-Identifier: Apache-2.0
"""What a real board boots from is written with its own configuration, or refused with what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hw.virtual.board_files import write_board_files
from hw.virtual.guest_config import GuestConfig, GuestInterface
from hw.virtual.image import ImageSet
from hw.virtual.image_recipe import recipe_of

HOST_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\n"
GOOD = {
    "--kind": "embedded",
    "--hostname": "board",
    "--interface": "02:00:00:00:00:01,control0,10.20.0.110/24",
    "--ssh-address": "10.20.0.110",
}


def test_initrd_is_the_image_s_and_the_board_s(tmp_path: Path) -> None:
    for name in ("kernel", "initrd", "root"):
        (tmp_path / name).write_text(f"the {name}")
    image = ImageSet(
        kind="embedded",
        machine=recipe_of("embedded").machine,
        role="target",
        kernel=tmp_path / "kernel",
        initrd=tmp_path / "initrd",
        root=tmp_path / "root",
        command_line="",
        kernel_release="",
        digest="",
        manifest=tmp_path / "manifest.json",
    )
    interface = GuestInterface("02:00:00:00:00:01", "control0", "10.20.0.110/24")
    config = GuestConfig("board", (interface,), "10.20.0.110", ("ssh-ed25519 AAAA",), HOST_KEY)
    boot = tmp_path / "boot"
    write_board_files(boot, image, config, "benchwright_root=/dev/mmcblk0p2")
    script = (boot / "boot.scr.uimg").read_bytes()
    assert b"setenv bootargs benchwright_root=/dev/mmcblk0p2\n" in script
    assert b"${fdtcontroladdr}" in script
    assert (boot / "vmlinuz").read_text() == "the kernel"
    assert (boot / "root.squashfs").read_text() == "the root"
    initrd = (boot / "initrd").read_bytes()
    assert initrd.startswith(b"the initrd")
    assert b"hostname board\n" in initrd
    (tmp_path / "tree").write_text("the tree")
    write_board_files(boot, image, config, device_tree=tmp_path / "tree")
    assert (boot / "board.dtb").read_text() == "the tree"
    assert b"board.dtb" in (boot / "boot.scr.uimg").read_bytes()
    assert (boot / "initrd").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--interface", "02:00:00:00:00:01,control0", "must be MAC,NAME,ADDRESS/PREFIX"),
        ("--interface", "02:00:00:00:00,control0,10.20.0.110/24", "interface mac"),
        ("--ssh-address", "10.20.0.111", "ssh_address: must be an address of its interfaces"),
        ("--hostname", "the board", "hostname: must be one DNS label"),
        ("--device-tree", "absent.dtb", "--device-tree absent.dtb: no such file"),
    ],
)
def test_bad_argument_is_refused(
    repository: Path, tmp_path: Path, option: str, value: str, said: str
) -> None:
    keys = {"--login-key": "login.pub", "--host-key": "host"}
    (tmp_path / "login.pub").write_text("ssh-ed25519 AAAA\n")
    (tmp_path / "host").write_text(HOST_KEY)
    options = {**GOOD, **{name: str(tmp_path / file) for name, file in keys.items()}, option: value}
    argv = [word for pair in options.items() for word in pair]
    done = subprocess.run(
        [sys.executable, "-m", "hw.virtual.board_files", str(tmp_path / "boot"), *argv],
        check=False,
        capture_output=True,
        text=True,
        cwd=repository,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "boot").exists()
