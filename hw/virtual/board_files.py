# SPDX-License-Identifier: Apache-2.0
"""Write what a real board boots from: kernel, initrd with the board's own configuration, and read-only root.

By hand: `python -m hw.virtual.board_files FOLDER --hostname NAME --interface MAC,NAME,ADDRESS/PREFIX …`.

The files are those of a guest's image (`hw.virtual.image`). Kernel and initrd go over the network at each
boot, or lie on a disk; the root goes on a disk, or a partition, which is mounted read-only and never written.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from hw.errors import BenchwrightError, ConfigError
from hw.virtual.guest_config import GuestConfig, GuestInterface, write_run_config
from hw.virtual.image import ImageSet, build_or_get
from hw.virtual.image_recipe import RECIPES

KERNEL, INITRD, ROOT = "vmlinuz", "initrd", "root.squashfs"


def write_board_files(folder: Path, image: ImageSet, config: GuestConfig) -> None:
    """Write kernel, initrd and root; the initrd is readable by its owner alone, for it holds a host key.

    Args:
        folder: Made where it is missing.
        image: Of the board's kind.
        config: What the board is told at each boot.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(image.kernel, folder / KERNEL)
    shutil.copyfile(image.root, folder / ROOT)
    write_run_config(folder / INITRD, image.initrd, config)


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
    write_board_files(arguments.folder, image, config)
    print(f"{arguments.folder}: {KERNEL}, {INITRD}, {ROOT}; kernel arguments: {image.command_line}")


def main() -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(prog="python -m hw.virtual.board_files", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=tuple(RECIPES), default="embedded", help="folder below targets/")
    parser.add_argument("--hostname", required=True)
    parser.add_argument(
        "--interface", action="append", required=True, metavar="MAC,NAME,ADDRESS/PREFIX", help="one a port"
    )
    parser.add_argument("--ssh-address", required=True, help="the one that sshd listens on")
    parser.add_argument("--login-key", type=Path, required=True, help="public keys that may log in as root")
    parser.add_argument("--host-key", type=Path, required=True, help="private ed25519 key of the board")
    try:
        _main(parser.parse_args())
    except BenchwrightError as error:
        print(f"benchwright: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
