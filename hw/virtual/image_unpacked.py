# SPDX-License-Identifier: Apache-2.0
"""Make a root of another processor's packages without running anything of them.

mmdebstrap's variant `extract` resolves, fetches, verifies and unpacks; installation scripts do not run. What
guests need of their work is little: the merged /usr, accounts, a link or two. So no emulation of programs
(binfmt_misc, a setting of the whole machine) is needed, and a root is made in the time that its packages need
to arrive.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from hw.virtual.image_recipe import SCRIPT_FOLDER, Recipe

OPTIONS = ["--variant=extract", "--skip=check/qemu"]
"""Of mmdebstrap."""
_LIST_FILE = "versions"
_HOME, _SHELL = "/nonexistent", "/usr/sbin/nologin"


def hooks(packages: Path) -> list[str]:
    """Return the options of mmdebstrap that merge /usr first and list the packages last.

    Args:
        packages: Folder that gets the list.
    """
    merge, versions = SCRIPT_FOLDER / "merge-usr.sh", SCRIPT_FOLDER / "list-packages.sh"
    return [
        f'--setup-hook=sh "{merge}" "$1"',
        f'--extract-hook=sh "{versions}" "$1" >"{packages / _LIST_FILE}"',
    ]


def listed(packages: Path) -> str:
    """Return the packages of a root, one a line: name, blank, version."""
    return (packages / _LIST_FILE).read_text(encoding="ascii")


def configure(root: Path, recipe: Recipe) -> None:
    """Do what the installation scripts would have done: accounts and links."""
    masters = root / "usr" / "share" / "base-passwd"
    users = [(masters / "passwd.master").read_text(encoding="ascii")]
    groups = [(masters / "group.master").read_text(encoding="ascii")]
    for name, number in recipe.accounts.items():
        users.append(f"{name}:*:{number}:{number}::{_HOME}:{_SHELL}\n")
        groups.append(f"{name}:*:{number}:\n")
    (root / "etc" / "passwd").write_text("".join(users), encoding="ascii")
    (root / "etc" / "group").write_text("".join(groups), encoding="ascii")
    for path, target in recipe.links.items():
        (root / path).symlink_to(target)
    shutil.rmtree(root / "var" / "cache" / "apt", ignore_errors=True)
