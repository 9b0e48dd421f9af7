# SPDX-License-Identifier: Apache-2.0
"""Read the recipes of images, one a kind of target: what the guests of a virtual bench are made from, and on.

A kind brings its own: a folder below `targets/` with `image/recipe.toml`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from hw.errors import ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml
from hw.virtual.machine import MachineType, read_machine

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPT_FOLDER = REPOSITORY / "targets" / "linux-rt" / "image"
"""Boot script, initramfs and the like, which all images share."""
SOURCE_FOLDER = REPOSITORY / "targets" / "linux-rt" / "src"
SHARED_FOLDER = REPOSITORY / "traffic-gen"
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
_TABLES_WITH_LISTS = {
    "root": {"architecture", "suite", "updates", "packages", "exclude", "accounts", "links"},
    "initramfs": {"busybox_package", "applets", "modules"},
    "modules": {"keep"},
}
# Code that decides what an image contains is part of its name, as the recipe is.
PROGRAMS = {
    "bw-init": ("bw-init.c",),
    "bw-setclock": ("bw-setclock.c",),
    "bw-wander": ("bw-wander.c", "walk.c"),
    "bw-ntp-user": (
        "bw-ntp-user.c",
        "ntp_client.c",
        "ntp_discipline.c",
        "ntp_log.c",
        "ntp_servo.c",
    ),
}
"""Programs that are compiled into the image, and their sources in `SOURCE_FOLDER`."""
SHARED_SOURCES = (
    "base/address.c",
    "base/json.c",
    "config/options.c",
    "ntp/ntp_packet.c",
    "port/linux/port_linux.c",
    "port/linux/port_linux_frequency.c",
    "port/linux/port_linux_wait.c",
)
"""Sources in `SHARED_FOLDER` that any of them may use."""
SHARED_HEADERS = (
    "base/address.h",
    "base/json.h",
    "config/options.h",
    "ntp/ntp_packet.h",
    "port/port.h",
    "port/port_frequency.h",
    "port/port_wait.h",
)
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
    data = read_toml(path)
    top = Fields(data, str(path), "recipe")
    root, initramfs = _child(top, "root"), _child(top, "initramfs")
    roles, command_line = _child(top, "roles"), _child(top, "command_line")
    for table, known in _TABLES_WITH_LISTS.items():
        _refuse_unknown(data, path, table, known)
    top.child("modules")  # known, read below
    kernels: dict[str, Kernel] = {}
    for name, fields in top.table_of("kernels").items():
        kernels[name] = Kernel(name, fields.text("package"), fields.text("suite"))
        fields.finish()
    accounts = _pairs(data, path, "root", "accounts")
    for name, number in accounts.items():
        if not number.isdigit() or not 100 <= int(number) <= 999:
            raise ConfigError(f"{path}: root.accounts: {name}: must be a number in 100..999, found {number}")
    recipe = Recipe(
        architecture=root.text("architecture", choices=ARCHITECTURES),
        machine=read_machine(_child(top, "machine"), path),
        suite=root.text("suite"),
        updates=root.boolean("updates"),
        packages=_texts(data, path, "root", "packages"),
        exclude=_texts(data, path, "root", "exclude"),
        accounts={name: int(number) for name, number in accounts.items()},
        links=_pairs(data, path, "root", "links"),
        busybox_package=initramfs.text("busybox_package"),
        applets=_texts(data, path, "initramfs", "applets"),
        boot_modules=_texts(data, path, "initramfs", "modules"),
        kept_modules=_texts(data, path, "modules", "keep"),
        kernels=kernels,
        roles={name: roles.text(name, choices=tuple(kernels)) for name in ("target", "producer", "impair")},
        command_line=command_line.text("common"),
    )
    for fields in (top, roles, command_line):
        fields.finish()
    return recipe


def digest(kind: str = DEFAULT_KIND) -> str:
    """Return the SHA-256 (hex) of all that an image is made from: recipe, scripts, C sources, builder."""
    files = [RECIPES[kind]]
    for folder in (SCRIPT_FOLDER, SOURCE_FOLDER):
        files += [p for p in sorted(folder.iterdir()) if p.is_file() and p.name != RECIPE_FILE]
    files += [SHARED_FOLDER / name for name in (*SHARED_SOURCES, *SHARED_HEADERS)]
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


def _refuse_unknown(data: dict[str, object], path: Path, table: str, known: set[str]) -> None:
    section = data.get(table)
    unknown = sorted(set(cast("dict[str, object]", section)) - known) if isinstance(section, dict) else []
    if unknown:
        raise ConfigError(
            f"{path}: {table}.{unknown[0]}: unknown key; known here: {', '.join(sorted(known))}"
        )


def _texts(data: dict[str, object], path: Path, table: str, key: str) -> tuple[str, ...]:
    # `Fields` has no lists of strings.
    section = cast("dict[str, object]", data.get(table, {}))
    values = section.get(key)
    if not isinstance(values, list) or not values:
        raise ConfigError(f"{path}: {table}.{key}: must be a list of strings that is not empty")
    texts = cast("list[object]", values)
    for text in texts:
        if not isinstance(text, str):
            raise ConfigError(f"{path}: {table}.{key}: must hold strings only, found {text!r}")
    return tuple(cast("list[str]", texts))


def _pairs(data: dict[str, object], path: Path, table: str, key: str) -> dict[str, str]:
    """Return a list of strings of two words, which may be absent, as first word → second."""
    if key not in cast("dict[str, object]", data.get(table, {})):
        return {}
    words = [text.split() for text in _texts(data, path, table, key)]
    for found in words:
        if len(found) != 2:
            raise ConfigError(f"{path}: {table}.{key}: must hold two words each, found {' '.join(found)!r}")
    return dict(words)
