# SPDX-License-Identifier: Apache-2.0
"""A root of a Debian release in layers: the minimal one, packages on it, and what a run changes."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from hw.errors import BenchError
from hw.virtual import apt_sources, image_build

# What docs/installing.md says one has before.
BEFORE = ("git", "make")
TREE = Path("root/benchwright")
_LOCK = "lock"
CACHE = Path("root/.cache/benchwright")
# Settings of the site that a newcomer would have made: how mirrors are reached and trusted.
_SITE_FILES = ("etc/resolv.conf", "etc/hosts", "etc/pip.conf", "usr/local/share/ca-certificates")
_SITE_VARIABLES = ("PIP_", "UV_", "SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy")
# Where a bench reserves this machine and remembers what it has changed: one place, whatever root it runs in.
_BENCH_STATE = ("run/benchwright", "var/lib/benchwright")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def enter_own_mounts() -> None:
    """Start this program anew in mounts of its own, which go with it however it ends."""
    if "BENCHWRIGHT_OWN_MOUNTS" not in os.environ:
        os.environ["BENCHWRIGHT_OWN_MOUNTS"] = "1"
        argv = ["unshare", "--mount", "--propagation", "private", *_own_arguments()]
        os.execvp("unshare", argv)  # noqa: S606 - no shell is needed


def _own_arguments() -> list[str]:
    return [os.fsdecode(word) for word in Path("/proc/self/cmdline").read_bytes().split(b"\0")[:-1]]


def minimal(folder: Path, release: str, anew: bool) -> Path:
    """Return the layer of a release's minimal system with what one has before; made where it is missing.

    Args:
        folder: Keeps the layers of the release.
        release: Code name, such as `bookworm`.
        anew: Made from today's index, whatever is kept.

    Raises:
        BenchError: mmdebstrap failed; says how. Or the folder is in use.
        CapabilityError: This machine's apt has no mirror from which the release could be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _take_alone(folder)
    layer = folder / "minimal"
    for left in folder.iterdir() if anew else folder.glob(".half-*"):
        if left.name != _LOCK:
            shutil.rmtree(left) if left.is_dir() else left.unlink()
    if layer.is_dir():
        return layer
    sources = apt_sources.guest_sources(release, (), apt_sources.read_host_sources())
    with _half(folder) as half:
        argv = ["mmdebstrap", "--variant=minbase", f"--include={','.join(BEFORE)}", "--format=directory"]
        argv += [f"--aptopt={line}" for line in image_build.host_transport_options()]
        text = "\n".join(source.as_deb822() for source in sources)
        made = subprocess.run(
            [*argv, release, str(half), "-"], input=text, capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise BenchError("mmdebstrap failed:\n" + "\n".join(made.stderr.splitlines()[-8:]))
        half.rename(layer)
    return layer


def _take_alone(folder: Path) -> None:
    """Keep others out of a release's folder while this program lives; remove what a killed one has left."""
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BenchError(f"{folder} is in use by another clean root") from None
    for left in folder.glob(".run-*"):
        shutil.rmtree(left)


@contextmanager
def _half(folder: Path) -> Generator[Path]:
    """Offer a folder beside its place; what was not moved there goes."""
    half = Path(tempfile.mkdtemp(prefix=".half-", dir=folder))
    try:
        half.chmod(0o755)
        yield half
    finally:
        shutil.rmtree(half, ignore_errors=True)


class Root:
    """A root that is mounted: layers below, and on top what is written, which goes in the end."""

    def __init__(self, folder: Path, layers: Sequence[Path], cache: Path) -> None:
        """Mount it; the caller is in mounts of its own.

        Args:
            folder: Gets a folder of what is written, on the file system of the layers.
            layers: The topmost first.
            cache: Becomes the project's cache in it.
        """
        self._folder = Path(tempfile.mkdtemp(prefix=".run-", dir=folder))
        self.upper, self.path = self._folder / "upper", self._folder / "root"
        for made in (self.upper, self._folder / "work", self.path):
            made.mkdir()
        lower = ":".join(map(str, layers))
        options = f"lowerdir={lower},upperdir={self.upper},workdir={self._folder / 'work'}"
        _run("mount", "-t", "overlay", "-o", options, "overlay", str(self.path))
        cache.mkdir(parents=True, exist_ok=True)
        (self.path / CACHE).mkdir(parents=True, exist_ok=True)
        _run("mount", "--bind", str(cache), str(self.path / CACHE))
        _run("mount", "--rbind", "/dev", str(self.path / "dev"))
        for name in ("dev/shm", "tmp", "run"):
            _run("mount", "-t", "tmpfs", "tmpfs", str(self.path / name))
        for name in _BENCH_STATE:
            for place in (Path("/"), self.path):
                (place / name).mkdir(parents=True, exist_ok=True)
            _run("mount", "--bind", f"/{name}", str(self.path / name))
        self._take_site_settings()

    def _take_site_settings(self) -> None:
        for name in _SITE_FILES:
            source, target = Path("/") / name, self.path / name
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            elif source.is_file():
                target.unlink(missing_ok=True)
                shutil.copy(source, target)
        sources = Path("/etc/apt/apt.conf.d")
        for name in sources.glob("*proxy*"):
            shutil.copy(name, self.path / "etc/apt/apt.conf.d")

    def close(self) -> None:
        """Unmount it, and remove what was written."""
        self._unmount()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _unmount(self) -> None:
        for pid in _inside(self.upper):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _run("umount", "--recursive", "--lazy", str(self.path))

    def keep(self, layer: Path) -> None:
        """Unmount it, and keep what was written as a layer, without the tree and the mount points."""
        self._unmount()
        shutil.rmtree(self.upper / TREE, ignore_errors=True)
        self.upper.rename(layer)
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, command: str, log: Path, sees_machine: bool = False, limit_s: int = 2400) -> int:
        """Run a command of the shell in the tree, as a newcomer would; what it leaves running ends with it.

        Args:
            command: For bash, in the tree's folder.
            log: Gets what it prints, at its end.
            sees_machine: With the processes of the whole machine, whose settings an open bench changes.
            limit_s: It is ended after so many seconds.

        Returns:
            Its exit code, or 124 where it was ended.
        """
        root = str(self.path)
        environment = {"HOME": "/root", "PATH": _PATH, "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        environment |= {name: value for name, value in os.environ.items() if name.startswith(_SITE_VARIABLES)}
        words = [f"{name}={value}" for name, value in environment.items()]
        inner = (
            'mount -t sysfs sysfs "$0/sys" && mount --rbind /sys/fs/cgroup "$0/sys/fs/cgroup" && '
            'cd "$0" && pivot_root . . && umount --lazy . && exec env -i "$@"'
        )
        argv = ["unshare", f"--mount-proc={root}/proc"]
        argv += [] if sees_machine else ["--pid", "--fork", "--kill-child"]
        argv += ["sh", "-c", inner, root, *words, "bash", "-c", f"cd /{TREE} && {command}"]
        with log.open("a", encoding="utf-8") as output:
            output.write(f"$ {command}\n")
            output.flush()
            began_s = time.monotonic()
            started = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            try:
                return started.wait(limit_s)
            except subprocess.TimeoutExpired:
                output.write(f"ended after {time.monotonic() - began_s:.0f} s\n")
                return 124
            finally:
                started.kill()
                started.wait()


def _inside(upper: Path) -> list[int]:
    """Return the processes whose root is the one that is written to this folder."""
    found: list[int] = []
    for mounts in Path("/proc").glob("[0-9]*/mountinfo"):
        with suppress(OSError):
            if any(f"upperdir={upper}," in line for line in mounts.read_text().splitlines()[:1]):
                found.append(int(mounts.parent.name))
    return found


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(argv[:2])} failed: {done.stderr.strip()}")
