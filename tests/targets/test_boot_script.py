# SPDX-License-Identifier: Apache-2.0
"""The script that U-Boot runs: its text, and the header that U-Boot checks."""

from __future__ import annotations

import struct
import zlib

from hw.virtual.boot_script import network_boot_script, script_image


def test_header_holds_what_u_boot_checks() -> None:
    """Offsets of `struct legacy_img_hdr`: magic, own checksum, time, size, …, checksum of the data, kind."""
    image = script_image(b"echo hello\n")
    assert image[:4] == bytes.fromhex("27051956")
    own_crc, size, data_crc = (struct.unpack(">I", image[at : at + 4])[0] for at in (4, 12, 24))
    assert own_crc == zlib.crc32(image[:4] + bytes(4) + image[8:64])
    assert size == len(image) - 64
    assert data_crc == zlib.crc32(image[64:])
    assert tuple(image[28:32]) == (5, 2, 6, 0)  # Linux, ARM, script, not compressed
    assert image[64:72] == struct.pack(">II", 11, 0)
    assert image[72:] == b"echo hello\n"


def test_script_loads_what_it_starts() -> None:
    text = network_boot_script("vmlinuz", "initrd", "console=ttyS0", own_device_tree=False)[72:].decode()
    assert text.splitlines() == [
        "tftpboot ${kernel_addr_r} vmlinuz",
        "tftpboot ${ramdisk_addr_r} initrd",
        "setenv bootargs console=ttyS0",
        "bootz ${kernel_addr_r} ${ramdisk_addr_r}:${filesize} ${fdtcontroladdr}",
    ]


def test_script_loads_the_board_s_own_device_tree_first() -> None:
    lines = network_boot_script("k", "i", "", own_device_tree=True)[72:].decode().splitlines()
    assert lines[0] == "tftpboot ${fdt_addr_r} board.dtb"
    assert lines[2] == "tftpboot ${ramdisk_addr_r} i"
    assert lines[-1].endswith(" ${fdt_addr_r}")
