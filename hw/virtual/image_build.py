# SPDX-License-Identifier: Apache-2.0
"""Build a guests' image set from Debian packages: kernels, initramfs and one read-only root for all roles.

Steps: mmdebstrap makes the root (no init system, no kernel package installed) and fetches kernels and
busybox; of another processor's packages it only unpacks the files, because their installation scripts cannot
run here (`hw.virtual.image_unpacked` does what is needed of their work); the wanted modules are unpacked into
the root; PID 1, bw-setclock and the other C programs are compiled statically; each kernel gets an initramfs
of a shell and a few modules; mksquashfs packs the root uncompressed, because a guest that is emulated reads
faster than it decompresses.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.errors import BenchError, CapabilityError
from hw.virtual import apt_sources, cpio, image_unpacked, kernel_modules
from hw.virtual.image_recipe import (
    HOST_ARCHITECTURE,
    PROGRAMS,
    SCRIPT_FOLDER,
    Kernel,
    Recipe,
    source_of,
)

Progress = Callable[[str], None]

ROOT_FILE = "root.squashfs"
MANIFEST_FILE = "manifest.json"
# Time stamp of every file of an image: 2024-01-01, so that equal packages give equal images.
SOURCE_DATE_EPOCH = "1704067200"
_PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "mksquashfs": "squashfs-tools",
    "dpkg-deb": "dpkg",
    "depmod": "kmod",
    "apt-config": "apt",
}
# 64 bits of time and of file sizes, which 32-bit machines have only when asked.
_COMPILER_FLAGS = ("-std=gnu11", "-O2", "-static", "-D_TIME_BITS=64", "-D_FILE_OFFSET_BITS=64")
_COMPILER_WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wvla", "-Werror")
_STEP_TIMEOUT_S = 900


@dataclass(frozen=True)
class BuildTree:
    """Folders of one build.

    Attributes:
        output: Receives the files of the image set.
        work: Scratch, removed by the caller.
        log: Receives the output of every program that was run.
    """

    output: Path
    work: Path
    log: Path

    @property
    def root(self) -> Path:
        """Return the folder that becomes the guests' root."""
        return self.work / "root"

    @property
    def packages(self) -> Path:
        """Return the folder of packages that are unpacked by hand."""
        return self.work / "packages"


def require_programs(recipe: Recipe) -> None:
    """Check that this machine can build.

    Args:
        recipe: What it is to build.

    Raises:
        CapabilityError: A program or the right is missing; says which and how to get it.
    """
    programs = {**_PROGRAMS, recipe.machine.compiler: recipe.machine.compiler_package}
    missing = sorted(package for program, package in programs.items() if shutil.which(program) is None)
    if missing:
        raise CapabilityError(f"building the guest images needs the Debian packages {', '.join(missing)}")
    if os.geteuid() != 0:
        raise CapabilityError("building the guest images needs root: device nodes and a chroot are made")
    own = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True)
    if own.stdout.strip() != HOST_ARCHITECTURE:
        raise CapabilityError(
            f"the guest images are built on {HOST_ARCHITECTURE}; this machine is {own.stdout.strip()}"
        )


def build(recipe: Recipe, tree: BuildTree, progress: Progress) -> None:
    """Build the whole image set into `tree.output`.

    Args:
        recipe: What to build.
        tree: Where; output and work folders exist and are empty.
        progress: Gets one line a step.

    Raises:
        CapabilityError: The host has no suitable apt source.
        BenchError: A program failed; names the log.
    """
    progress(f"guest image: {recipe.architecture} root and kernels from Debian packages …")
    _make_root(recipe, tree)
    progress("guest image: kernels, initramfs, tools …")
    _compile_tools(recipe, tree)
    kernels = {name: _install_kernel(recipe, kernel, tree) for name, kernel in recipe.kernels.items()}
    _install_files(tree)
    _write_manifest(recipe, kernels, tree)
    progress("guest image: packing the root …")
    options = ["-noI", "-noD", "-noF", "-noX", "-no-xattrs", "-no-progress", "-quiet"]
    _run(tree, ["mksquashfs", str(tree.root), str(tree.output / ROOT_FILE), *options])


def _run(tree: BuildTree, argv: Sequence[str], stdin: str | None = None) -> None:
    fixed = {"SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH, "LC_ALL": "C.UTF-8", "TMPDIR": str(tree.work)}
    with tree.log.open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(argv)}\n")
        log.flush()
        try:
            subprocess.run(
                argv,
                check=True,
                input=stdin,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, **fixed},
                timeout=_STEP_TIMEOUT_S,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            tail = "\n".join(tree.log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])
            raise BenchError(f"building the guest image: {argv[0]} failed ({error});\n{tail}") from error


def _make_root(recipe: Recipe, tree: BuildTree) -> None:
    host = apt_sources.read_host_sources()
    sources = apt_sources.guest_sources(recipe.suite, recipe.extra_suites, host, recipe.updates)
    tree.packages.mkdir()
    fetched = [f"{kernel.package}/{kernel.suite}" for kernel in recipe.kernels.values()]
    fetched.append(recipe.busybox_package)
    fetch = f'sh "{SCRIPT_FOLDER / "fetch-packages.sh"}" "{tree.packages}" {" ".join(fetched)}'
    argv = ["mmdebstrap", "--mode=root", "--format=directory", f"--architectures={recipe.architecture}"]
    argv += image_unpacked.OPTIONS if recipe.foreign else ["--variant=essential"]
    argv += [f"--include={','.join(recipe.packages)}", "--aptopt=APT::Install-Recommends false"]
    argv += [f"--aptopt={line}" for line in host_transport_options()]
    argv += [f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.exclude]
    argv += [f"--extract-hook={fetch}"]
    if recipe.foreign:
        argv += image_unpacked.hooks(tree.packages)
    _run(tree, [*argv, recipe.suite, str(tree.root), "-"], "\n".join(s.as_deb822() for s in sources))
    if recipe.foreign:
        image_unpacked.configure(tree.root, recipe)


def host_transport_options() -> list[str]:
    """Return the host's apt settings on how archives are reached, such as a proxy: the build obeys them."""
    options: list[str] = []
    for scheme in ("Acquire::http", "Acquire::https"):
        found = subprocess.run(["apt-config", "dump", scheme], check=True, capture_output=True, text=True)
        options += [line.rstrip(";") for line in found.stdout.splitlines() if not line.endswith('"";')]
    return options


def _compile_tools(recipe: Recipe, tree: BuildTree) -> None:
    folder = tree.root / "usr" / "lib" / "benchwright"
    folder.mkdir(parents=True)
    for name in PROGRAMS:
        target = folder if name == "bw-init" else tree.root / "usr" / "sbin"
        argv = [recipe.machine.compiler, *_COMPILER_FLAGS, *_COMPILER_WARNINGS]
        _run(tree, [*argv, "-o", str(target / name), str(source_of(name))])
    for name in ("poweroff", "reboot", "halt"):
        (tree.root / "usr" / "sbin" / name).symlink_to("../lib/benchwright/bw-init")


def _install_kernel(recipe: Recipe, kernel: Kernel, tree: BuildTree) -> str:
    """Put one kernel, its initramfs and its modules in place; return its release."""
    stage = tree.work / f"kernel-{kernel.name}"
    _run(tree, ["dpkg-deb", "-x", str(tree.packages / kernel.package / "kernel.deb"), str(stage)])
    modules_root = next(p for p in (stage / "lib/modules", stage / "usr/lib/modules") if p.is_dir())
    release = next(modules_root.iterdir()).name
    _run(tree, ["depmod", "-b", str(modules_root.parent.parent), release])
    modules = kernel_modules.read_tree(modules_root / release)

    shutil.copy(stage / "boot" / f"vmlinuz-{release}", tree.output / f"vmlinuz-{kernel.name}")
    _write_initramfs(recipe, modules, tree, tree.output / f"initrd-{kernel.name}")
    kept = tree.root / "usr" / "lib" / "modules" / release
    for module in kernel_modules.select_kept(modules, recipe.kept_modules):
        target = kept / kernel_modules.plain_name(module)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(kernel_modules.unpack(modules, module))
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(modules.folder / name, kept / name)
    config = tree.root / "boot" / f"config-{release}"
    shutil.copy(stage / "boot" / config.name, config)
    shutil.rmtree(stage)
    _run(tree, ["depmod", "-b", str(tree.root), release])
    return release


def _write_initramfs(recipe: Recipe, modules: kernel_modules.ModuleTree, tree: BuildTree, path: Path) -> None:
    stage = tree.work / "busybox"
    if not stage.is_dir():
        package = tree.packages / recipe.busybox_package / "package.deb"
        _run(tree, ["dpkg-deb", "-x", str(package), str(stage)])
    busybox = next(p for p in (stage / "bin" / "busybox", stage / "usr" / "bin" / "busybox") if p.is_file())
    entries = [cpio.directory(name) for name in ("bin", "dev", "lower", "memory", "modules", "new")]
    entries.append(cpio.character_device("dev/console", 5, 1))
    entries.append(cpio.file("bin/busybox", busybox.read_bytes(), 0o755))
    entries += [cpio.symlink(f"bin/{applet}", "busybox") for applet in recipe.applets]
    entries.append(cpio.file("init", (SCRIPT_FOLDER / "initramfs-init.sh").read_bytes(), 0o755))
    order: list[str] = []
    for module in kernel_modules.select_boot(modules, recipe.boot_modules):
        name = Path(kernel_modules.plain_name(module)).name
        order.append(name)
        entries.append(cpio.file(f"modules/{name}", kernel_modules.unpack(modules, module)))
    entries.append(cpio.file("modules/order", "".join(f"{name}\n" for name in order).encode()))
    path.write_bytes(cpio.archive(entries))


def _install_files(tree: BuildTree) -> None:
    root = tree.root
    boot = root / "usr" / "lib" / "benchwright" / "boot.sh"
    shutil.copy(SCRIPT_FOLDER / "boot.sh", boot)
    boot.chmod(0o755)
    shutil.copy(SCRIPT_FOLDER / "sshd_config", root / "etc" / "ssh" / "sshd_config")
    for key in (root / "etc" / "ssh").glob("ssh_host_*"):
        key.unlink()  # every run brings its own
    (root / "etc" / "hostname").write_text("benchwright\n", encoding="utf-8")
    (root / "etc" / "resolv.conf").unlink(missing_ok=True)  # mmdebstrap leaves the host's
    (root / "etc" / "resolv.conf").touch()
    shutil.rmtree(root / "etc" / "apt")  # may name the host's mirrors and proxy
    for folder in ("var/lib/benchwright", "usr/local/bin"):
        (root / folder).mkdir(parents=True, exist_ok=True)


def _write_manifest(recipe: Recipe, releases: dict[str, str], tree: BuildTree) -> None:
    if recipe.foreign:
        listed = image_unpacked.listed(tree.packages)
    else:
        argv = ["chroot", str(tree.root), "dpkg-query", "-W", "-f", "${Package} ${Version}\n"]
        listed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    manifest = {
        "architecture": recipe.architecture,
        "suite": recipe.suite,
        "kernels": releases,
        "packages": dict(line.split(" ", 1) for line in listed.splitlines()),
    }
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (tree.output / MANIFEST_FILE).write_text(text, encoding="utf-8")
