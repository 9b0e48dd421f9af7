# SPDX-License-Identifier: Apache-2.0
"""Get the image set of a guest role, from the cache or built.

By hand: `python -m hw.virtual.image [ROLE] [--kind NAME]`.

Images are cached by the content of all that they are made from, below
`${BENCHWRIGHT_CACHE:-~/.cache/benchwright}/images`. They are never changed: a guest's run configuration goes
into a copy of the initrd (`hw.virtual.guest_config`), its root is attached read-only and may be shared by any
number of guests.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hw.errors import BenchError, BenchwrightError, CapabilityError, ConfigError
from hw.reservation import lock_file
from hw.virtual import image_build, image_recipe
from hw.virtual.image_build import BuildTree, Progress
from hw.virtual.image_recipe import DEFAULT_KIND
from hw.virtual.machine import MachineType

UNUSED_MAX_S = 30 * 86_400
_BUILD_PREFIX = ".build-"


@dataclass(frozen=True)
class ImageSet:
    """What QEMU needs to start a guest of one role.

    Attributes:
        kind: Folder below `targets/` with its recipe.
        machine: What it runs on.
        role: `target`, `producer` or `impair`.
        kernel: For `-kernel`.
        initrd: The image's own; `-initrd` gets the file that `guest_config.write_run_config` makes from it.
        root: Raw squashfs file, to be attached read-only as the guest's first virtio-blk disk.
        command_line: For `-append`; a caller may add to it.
        kernel_release: As `uname -r` says in the guest.
        digest: SHA-256 (hex) of all that the set was made from.
        manifest: JSON file with the versions of all packages and kernels.
    """

    kind: str
    machine: MachineType
    role: str
    kernel: Path
    initrd: Path
    root: Path
    command_line: str
    kernel_release: str
    digest: str
    manifest: Path


def cache_folder() -> Path:
    """Return the folder of all cached image sets."""
    base = os.environ.get("BENCHWRIGHT_CACHE")
    return (Path(base) if base else Path.home() / ".cache" / "benchwright") / "images"


def make_cache(folder: Path) -> Path:
    """Make a folder of the cache where it is not there yet.

    Raises:
        CapabilityError: There is no right to write; names the folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error.strerror or str(error)) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _not_writable(folder, "it is there")
    return folder


def _not_writable(folder: Path, reason: str) -> CapabilityError:
    return CapabilityError(
        f"{folder}: no right to write ({reason}): set BENCHWRIGHT_CACHE to a folder that may be written"
    )


def find(role: str, kind: str = DEFAULT_KIND) -> ImageSet | None:
    """Return the cached image set of a role, or None where it has to be built.

    Raises:
        ConfigError: There is no such role or kind.
    """
    recipe = image_recipe.recipe_of(kind)
    if role not in recipe.roles:
        raise ConfigError(f"guest role: must be one of {', '.join(recipe.roles)}, found {role!r}")
    digest = image_recipe.digest(kind)
    folder = cache_folder() / digest
    manifest = folder / image_build.MANIFEST_FILE
    if not manifest.is_file():
        return None
    kernel = recipe.roles[role]
    releases: dict[str, str] = json.loads(manifest.read_text(encoding="utf-8"))["kernels"]
    return ImageSet(
        kind=kind,
        machine=recipe.machine,
        role=role,
        kernel=folder / f"vmlinuz-{kernel}",
        initrd=folder / f"initrd-{kernel}",
        root=folder / image_build.ROOT_FILE,
        command_line=recipe.command_line,
        kernel_release=releases[kernel],
        digest=digest,
        manifest=manifest,
    )


def build_or_get(role: str, progress: Progress | None = None, kind: str = DEFAULT_KIND) -> ImageSet:
    """Return the image set of a role; build it first where the cache has none (about a minute).

    Any number of processes and threads may call this at once: one builds a kind, the others wait for it.

    Args:
        role: `target`, `producer` or `impair`.
        progress: Gets one line a step; default: stderr.
        kind: Folder below `targets/` with its recipe.

    Raises:
        ConfigError: There is no such role or kind, or the recipe is wrong.
        CapabilityError: The machine lacks a program, root or an apt source.
        BenchError: A step of the build failed; names the log.
    """
    say = progress or say_on_stderr
    found = find(role, kind)
    if found is None:
        cache = make_cache(cache_folder())
        with _build_lock(cache, kind, say):
            found = find(role, kind) or _build(role, kind, cache, say)
    with suppress(OSError):  # of a cache that somebody else has filled, and that may be read alone
        os.utime(found.manifest)  # its time says when the set was last used
    return found


def prune(unused_max_s: float = UNUSED_MAX_S, progress: Progress | None = None) -> list[str]:
    """Remove image sets that nobody has used for a while, except the current ones.

    A guest that still runs from a removed set is not harmed: its files live until it ends.

    Args:
        unused_max_s: Age in seconds of the last use from which a set is removed.
        progress: Gets one line a removed set; default: stderr.

    Returns:
        The digests of the removed sets.
    """
    say = progress or say_on_stderr
    cache = cache_folder()
    if not cache.is_dir():
        return []
    removed: list[str] = []
    current = {image_recipe.digest(kind) for kind in image_recipe.RECIPES}
    now_s = time.time()
    for folder in sorted(cache.iterdir()):
        manifest = folder / image_build.MANIFEST_FILE
        if folder.name in current or not manifest.is_file():
            continue
        try:
            unused_s = now_s - manifest.stat().st_mtime
        except FileNotFoundError:  # somebody else removes it
            continue
        if unused_s >= unused_max_s:
            manifest.unlink(missing_ok=True)  # first, so that nobody finds half a set
            shutil.rmtree(folder, ignore_errors=True)
            say(f"guest image: removed {folder.name[:12]}, unused for {unused_s / 86_400:.0f} days")
            removed.append(folder.name)
    return removed


def _build(role: str, kind: str, cache: Path, say: Progress) -> ImageSet:
    """Build under the lock: in a folder of its own, moved into place as a whole."""
    recipe = image_recipe.recipe_of(kind)
    image_build.require_programs(recipe)
    prefix = f"{_BUILD_PREFIX}{kind}-"
    for stale in cache.glob(f"{prefix}*"):
        shutil.rmtree(stale)  # of a build that was killed: the lock is ours
    prune(UNUSED_MAX_S, say)
    start_s = time.monotonic()
    digest = image_recipe.digest(kind)
    scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=cache))
    scratch.chmod(0o755)
    log = cache / f"build-{kind}.log"
    log.write_text("", encoding="utf-8")
    try:
        tree = BuildTree(output=scratch / "output", work=scratch / "work", log=log)
        tree.output.mkdir()
        tree.work.mkdir()
        image_build.build(recipe, tree, say)
        if image_recipe.digest(kind) != digest:
            raise BenchError("building the guest image: its recipe changed meanwhile; start again")
        tree.output.rename(cache / digest)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say(f"guest image: ready after {time.monotonic() - start_s:.0f} s ({digest[:12]}, log {log})")
    found = find(role, kind)
    if found is None:
        raise BenchError(f"building the guest image: {cache / digest} has no manifest; see {log}")
    return found


@contextmanager
def _build_lock(cache: Path, kind: str, say: Progress) -> Generator[None]:
    with lock_file(cache / f".lock-{kind}") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("guest image: waiting for another build …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say_on_stderr(line: str) -> None:
    """Print a line of progress."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Build or find the image set of a role and print where it is."""
    parser = argparse.ArgumentParser(prog="python -m hw.virtual.image", description=build_or_get.__doc__)
    parser.add_argument("role", nargs="?", default="target", help="target, producer or impair")
    parser.add_argument("--kind", default=DEFAULT_KIND, help=", ".join(image_recipe.RECIPES))
    parser.add_argument("--prune", action="store_true", help="only remove image sets unused for 30 days")
    arguments = parser.parse_args()
    try:
        if arguments.prune:
            prune()
            return 0
        image = build_or_get(arguments.role, kind=arguments.kind)
    except BenchwrightError as error:
        print(f"benchwright: {error}", file=sys.stderr)
        return error.exit_code
    fields = {name: str(value) for name, value in vars(image).items()}
    print(json.dumps(fields, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
