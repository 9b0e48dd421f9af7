# SPDX-License-Identifier: Apache-2.0
"""Write what a board boots from: kernel, initrd with the board's own configuration, script, read-only root.

By hand: `python -m hw.virtual.board_files FOLDER --kind KIND --hostname NAME --interface …`.

The files are those of a guest's image (`hw.virtual.image`). Kernel and initrd go over the network at each
boot, or lie on a disk; the root goes on a disk, or a partition, which is mounted read-only and never written.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from hw.errors import BenchwrightError, ConfigError
from hw.virtual.boot_script import DEVICE_TREE_FILE, SCRIPT_FILE, network_boot_script
from hw.virtual.guest_config import GuestConfig, GuestInterface, write_run_config
from hw.virtual.image import ImageSet, build_or_get
from hw.virtual.image_recipe import RECIPES

KERNEL, INITRD, ROOT = "vmlinuz", "initrd", "root.squashfs"


def write_board_files(
    folder: Path, image: ImageSet, config: GuestConfig, arguments: str = "", device_tree: Path | None = None
) -> None:
    """Write kernel, initrd, U-Boot's script and root.

    The initrd is readable by its owner alone, for it holds a host key.

    Args:
        folder: Made where it is missing.
        image: Of the board's kind.
        config: What the board is told at each boot.
        arguments: Kernel arguments besides those of the image.
        device_tree: The board's, compiled; None: that of its bootloader.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(image.root, folder / ROOT)
    if device_tree is not None:
        shutil.copyfile(device_tree, folder / DEVICE_TREE_FILE)
    write_run_config(folder / INITRD, image.initrd, config)
    write_kernel_and_script(
        folder, image.kernel, f"{image.command_line} {arguments}", device_tree is not None
    )


def write_kernel_and_script(folder: Path, kernel: Path, arguments: str, own_device_tree: bool) -> None:
    """Write what is served beside the initrd."""
    shutil.copyfile(kernel, folder / KERNEL)
    script = network_boot_script(KERNEL, INITRD, arguments.strip(), own_device_tree)
    (folder / SCRIPT_FILE).write_bytes(script)


def parse_interface(text: str) -> GuestInterface:
    """Return an interface from `MAC,NAME,ADDRESS/PREFIX`.

    Raises:
        ConfigError: It has another form.
    """
    words = text.split(",")
    if len(words) != 3:
        raise ConfigError(f"--interface {text}: must be MAC,NAME,ADDRESS/PREFIX")
    return GuestInterface(words[0].lower(), words[1], words[2])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _main(arguments: argparse.Namespace) -> None:
    interfaces = tuple(parse_interface(text) for text in arguments.interface)
    config = GuestConfig(
        hostname=arguments.hostname,
        interfaces=interfaces,
        ssh_address=arguments.ssh_address,
        authorized_keys=tuple(_read(arguments.login_key).splitlines()),
        host_key=_read(arguments.host_key),
    )
    image = build_or_get("target", kind=arguments.kind)
    if arguments.device_tree is not None and not arguments.device_tree.is_file():
        raise ConfigError(f"--device-tree {arguments.device_tree}: no such file")
    write_board_files(arguments.folder, image, config, arguments.arguments, arguments.device_tree)
    print(f"{arguments.folder}: {', '.join(sorted(file.name for file in arguments.folder.iterdir()))}")


def main() -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m hw.virtual.board_files", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=tuple(RECIPES), required=True, help="folder below targets/")
    parser.add_argument("--hostname", required=True)
    parser.add_argument(
        "--interface", action="append", required=True, metavar="MAC,NAME,ADDRESS/PREFIX", help="one a port"
    )
    parser.add_argument("--ssh-address", required=True, help="the one that sshd listens on")
    parser.add_argument("--login-key", type=Path, required=True, help="public keys that may log in as root")
    parser.add_argument("--host-key", type=Path, required=True, help="private ed25519 key of the board")
    parser.add_argument("--arguments", default="", help="of the kernel, besides those of the image")
    parser.add_argument("--device-tree", type=Path, help="default: that of the board's bootloader")
    try:
        _main(parser.parse_args())
    except BenchwrightError as error:
        print(f"benchwright: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
