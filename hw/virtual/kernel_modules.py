# SPDX-License-Identifier: Apache-2.0
"""Choose kernel modules with all that they depend on, and unpack them: an emulated guest is slow at it."""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hw.errors import BenchError


@dataclass(frozen=True)
class ModuleTree:
    """The modules of one kernel as Debian ships them.

    Attributes:
        folder: Folder `lib/modules/<release>` with `modules.dep` made by depmod.
        dependencies: Module path below the folder → paths that must be loaded before it (modules.dep(5)).
    """

    folder: Path
    dependencies: dict[str, tuple[str, ...]]


def read_tree(folder: Path) -> ModuleTree:
    """Read the dependency list of a module folder (modules.dep(5))."""
    dependencies: dict[str, tuple[str, ...]] = {}
    for line in (folder / "modules.dep").read_text(encoding="utf-8").splitlines():
        module, _, needed = line.partition(":")
        dependencies[module] = tuple(needed.split())
    return ModuleTree(folder, dependencies)


def select_kept(tree: ModuleTree, prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the modules below any of the prefixes, with their dependencies, sorted.

    Args:
        tree: Modules of a kernel.
        prefixes: Path prefixes below `kernel/`; each ends at a path separator or at a module's suffix. One
            that this kernel lacks is no error: kernels differ.
    """
    chosen: set[str] = set()
    for module, needed in tree.dependencies.items():
        path = module.removeprefix("kernel/")
        if any(path.startswith((f"{prefix}/", f"{prefix}.ko")) for prefix in prefixes):
            chosen.add(module)
            chosen.update(needed)
    return tuple(sorted(chosen))


def select_boot(tree: ModuleTree, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the named modules and what they need, each after all that it depends on.

    Raises:
        BenchError: The kernel has no module of that name.
    """
    by_name = {PurePosixPath(module).name.split(".")[0]: module for module in tree.dependencies}
    ordered: list[str] = []
    for name in names:
        if name not in by_name:
            raise BenchError(f"kernel {tree.folder.name} has no module {name}, which its initramfs needs")
        module = by_name[name]
        # modules.dep lists a module's dependencies so that the last one has to be loaded first.
        for path in (*reversed(tree.dependencies[module]), module):
            if path not in ordered:
                ordered.append(path)
    return tuple(ordered)


def plain_name(module: str) -> str:
    """Return a module's path without the suffix of its compression."""
    return module.removesuffix(".xz")


def unpack(tree: ModuleTree, module: str) -> bytes:
    """Return a module as the kernel loads it, signature included."""
    data = (tree.folder / module).read_bytes()
    return lzma.decompress(data) if module.endswith(".xz") else data
