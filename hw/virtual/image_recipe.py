# SPDX-License-Identifier: Apache-2.0
"""Read the recipes of images, one a kind of target: what the guests of a virtual bench are made from, and on.

A kind brings its own: a folder below `targets/` with `image/recipe.toml`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml
from hw.virtual.machine import MachineType, read_machine

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT_FOLDER = REPOSITORY / "targets" / "linux-rt" / "image"
"""Boot script, initramfs and the like, which all images share."""
SOURCE_FOLDER = REPOSITORY / "targets" / "linux-rt" / "src"
RECIPE_FILE = "recipe.toml"
RECIPES = {
    path.parent.parent.name: path for path in sorted((REPOSITORY / "targets").glob(f"*/image/{RECIPE_FILE}"))
}
"""Kind, which is the name of a folder below `targets/`, → recipe."""
DEFAULT_KIND = "linux-rt"
ARCHITECTURES = ("amd64", "arm64", "armel", "armhf", "i386")
"""Debian's names of the processors that it is released for and QEMU can be."""
HOST_ARCHITECTURE = "amd64"
"""What images are built on, and what packages can be installed for; those of others are unpacked only."""
PROGRAMS = ("bw-init", "bw-setclock")
"""Programs that boot needs, so that the image has them, each of one source; a bench brings all others."""
# Code that decides what an image contains is part of its name, as the recipe is.
_BUILDER_FILES = (
    "apt_sources.py",
    "cpio.py",
    "image_build.py",
    "image_recipe.py",
    "image_unpacked.py",
    "kernel_modules.py",
    "machine.py",
)


@dataclass(frozen=True)
class Kernel:
    """A kernel of the image.

    Attributes:
        name: Name in the recipe.
        package: Debian's meta package, which depends on the newest kernel of its kind.
        suite: Suite that it is taken from.
    """

    name: str
    package: str
    suite: str


@dataclass(frozen=True)
class Recipe:
    """The recipe of an image set.

    Attributes:
        architecture: Debian's name of what the guests' processor is.
        machine: What they run on, and what programs are compiled by for it.
        suite: Debian's code name of the root.
        updates: Whether the suite's updates and security updates go in.
        packages: Packages of the root, without recommended ones; all of them where they are only unpacked.
        exclude: Path patterns that dpkg leaves out.
        accounts: Account → number of user and group, where packages are only unpacked.
        links: Path below the root → target of a symbolic link, where packages are only unpacked.
        busybox_package: Package of the initramfs' shell.
        applets: Names under which the initramfs knows it.
        boot_modules: Modules of the initramfs, in the order of need, without their dependencies.
        kept_modules: Path prefixes below `kernel/` of the modules that the root keeps.
        kernels: Kernels by name.
        roles: Guest role → name of its kernel.
        command_line: Kernel arguments of every guest.
    """

    architecture: str
    machine: MachineType
    suite: str
    updates: bool
    packages: tuple[str, ...]
    exclude: tuple[str, ...]
    accounts: dict[str, int]
    links: dict[str, str]
    busybox_package: str
    applets: tuple[str, ...]
    boot_modules: tuple[str, ...]
    kept_modules: tuple[str, ...]
    kernels: dict[str, Kernel]
    roles: dict[str, str]
    command_line: str

    @property
    def foreign(self) -> bool:
        """Tell whether the packages are another processor's, so that nothing of them can run here."""
        return self.architecture != HOST_ARCHITECTURE

    @property
    def extra_suites(self) -> tuple[str, ...]:
        """Return the suites that the kernels come from, besides the root's own."""
        return tuple(sorted({k.suite for k in self.kernels.values()} - {self.suite}))


def recipe_of(kind: str) -> Recipe:
    """Read the recipe of a kind of target.

    Raises:
        ConfigError: There is none, or it is wrong.
    """
    if kind not in RECIPES:
        raise ConfigError(f"guest image: must be one of {', '.join(RECIPES)}, found {kind!r}")
    return read_recipe(RECIPES[kind])


def read_recipe(path: Path) -> Recipe:
    """Read and check a recipe.

    Raises:
        ConfigError: The file cannot be read or a field is wrong; names file and field.
    """
    top = Fields(read_toml(path), str(path), "")
    root, initramfs, modules = _child(top, "root"), _child(top, "initramfs"), _child(top, "modules")
    roles, command_line = _child(top, "roles"), _child(top, "command_line")
    kernels: dict[str, Kernel] = {}
    for name, fields in top.table_of("kernels").items():
        kernels[name] = Kernel(name, fields.text("package"), fields.text("suite"))
        fields.finish()
    accounts = _pairs(root, "accounts")
    for name, number in accounts.items():
        if not re.fullmatch(r"[1-9][0-9]{2}", number):
            raise ConfigError(f"{path}: root.accounts: {name}: must be a number in 100..999, found {number}")
    recipe = Recipe(
        architecture=root.text("architecture", choices=ARCHITECTURES),
        machine=read_machine(_child(top, "machine"), path),
        suite=root.text("suite"),
        updates=root.boolean("updates"),
        packages=_texts(root, "packages"),
        exclude=_texts(root, "exclude"),
        accounts={name: int(number) for name, number in accounts.items()},
        links=_pairs(root, "links"),
        busybox_package=initramfs.text("busybox_package"),
        applets=_texts(initramfs, "applets"),
        boot_modules=_texts(initramfs, "modules"),
        kept_modules=_texts(modules, "keep"),
        kernels=kernels,
        roles={name: roles.text(name, choices=tuple(kernels)) for name in ("target", "producer", "impair")},
        command_line=command_line.text("common"),
    )
    for fields in (top, root, initramfs, modules, roles, command_line):
        fields.finish()
    return recipe


def digest(kind: str = DEFAULT_KIND) -> str:
    """Return the SHA-256 (hex) of all that an image is made from: recipe, scripts, C sources, builder."""
    files = [RECIPES[kind]]
    files += [p for p in sorted(SCRIPT_FOLDER.iterdir()) if p.is_file() and p.name != RECIPE_FILE]
    files += [source_of(name) for name in PROGRAMS]
    files += [Path(__file__).with_name(name) for name in _BUILDER_FILES]
    total = hashlib.sha256()
    for file in files:
        content = file.read_bytes()
        mode = "x" if file.stat().st_mode & 0o100 else "-"
        total.update(f"{file.relative_to(REPOSITORY)} {mode} {len(content)}\n".encode() + content)
    return total.hexdigest()


def _child(fields: Fields, key: str) -> Fields:
    child = fields.child(key)
    assert child is not None  # only an optional table may be
    return child


def source_of(program: str) -> Path:
    """Return the source of a program that is compiled into the image."""
    return SOURCE_FOLDER / f"{program}.c"


def _texts(fields: Fields, key: str) -> tuple[str, ...]:
    texts = fields.texts(key, None)
    if not texts:
        raise ConfigError(f"{fields.file}: {fields.table}.{key}: must be a list that is not empty")
    return texts


def _pairs(fields: Fields, key: str) -> dict[str, str]:
    """Return a list of strings of two words, which may be absent, as first word → second."""
    words = [text.split() for text in fields.texts(key, None, default=())]
    for found in words:
        if len(found) != 2:
            raise ConfigError(
                f"{fields.file}: {fields.table}.{key}: must hold two words each, found {' '.join(found)!r}"
            )
    return dict(words)
