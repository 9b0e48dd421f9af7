# SPDX-License-Identifier: Apache-2.0
"""Write the script by which U-Boot boots a board over the network.

U-Boot's standard boot asks the DHCP server, loads `boot.scr.uimg` by TFTP and runs it. The file is a script
as a legacy image: a header of 64 bytes (U-Boot, include/image.h, `struct legacy_img_hdr`), sizes, text.
"""

from __future__ import annotations

import struct
import zlib

SCRIPT_FILE = "boot.scr.uimg"
DEVICE_TREE_FILE = "board.dtb"
_MAGIC = 0x27051956
_OS_LINUX, _ARCHITECTURE_ARM, _TYPE_SCRIPT, _UNCOMPRESSED = 5, 2, 6, 0
_NAME = b"benchwright"


def network_boot_script(kernel: str, initrd: str, arguments: str, own_device_tree: bool) -> bytes:
    """Return a script that loads kernel and initrd by TFTP and starts them.

    Args:
        kernel: Name of the kernel's file on the server.
        initrd: Name of the initrd's.
        arguments: Kernel arguments.
        own_device_tree: Whether the board's device tree is on the server, too; else U-Boot's own is used.
    """
    tree = "${fdt_addr_r}" if own_device_tree else "${fdtcontroladdr}"
    lines = [f"tftpboot ${{fdt_addr_r}} {DEVICE_TREE_FILE}"] if own_device_tree else []
    lines += [
        f"tftpboot ${{kernel_addr_r}} {kernel}",
        f"tftpboot ${{ramdisk_addr_r}} {initrd}",  # the last: ${filesize} is that of the initrd
        f"setenv bootargs {arguments}",
        f"bootz ${{kernel_addr_r}} ${{ramdisk_addr_r}}:${{filesize}} {tree}",
    ]
    return script_image("".join(f"{line}\n" for line in lines).encode("ascii"))


def script_image(text: bytes) -> bytes:
    """Return a script as a legacy image of U-Boot."""
    data = struct.pack(">II", len(text), 0) + text

    def header(own_crc: int) -> bytes:
        kind = (_OS_LINUX, _ARCHITECTURE_ARM, _TYPE_SCRIPT, _UNCOMPRESSED)
        numbers = (_MAGIC, own_crc, 0, len(data), 0, 0, zlib.crc32(data))
        return struct.pack(">7I4B32s", *numbers, *kind, _NAME)

    return header(zlib.crc32(header(0))) + data
