# SPDX-License-Identifier: Apache-2.0
"""Run the first commands in a minimal root of a Debian release: `python -m tests.clean_root [RELEASE …]`.

In a root that has what docs/installing.md says one has before, and no more: set-up with the packages of use
*bench*, the guests' images, the native bench's replay to its verdict and its dossier; then the packages of
*dev* and some tests of each folder. What the former open is noted: programs, libraries, headers, fonts. Each
has to belong to the tree, to an essential package, to a named one or to one that dependencies.txt records.

Layers and images are kept below BENCHWRIGHT_CACHE/clean-root. Exit codes: docs/exit-codes.md.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

from hw.errors import BenchError, BenchwrightError, CapabilityError, ConfigError
from hw.virtual.image import cache_folder
from tests.clean_root import inputs, packages, uses
from tests.clean_root.opened import Opened
from tests.clean_root.root import BEFORE, TREE, Root, enter_own_mounts, minimal

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASES = ("bookworm", "trixie")
DEPENDENCIES = Path(__file__).with_name("dependencies.txt")
TAKEN_OUT = 3
_PACKAGES = (
    ". hw/host/progress.sh && . hw/host/apt.sh && . hw/host/packages.sh && SETUP_ARGUMENTS= packages_ensure"
)
_REPLAY = (
    "QUALIFY_EXIT_FILE=.build/code make qualify BENCH={bench}; code=$(<.build/code); "
    "if [ $code = 4 ]; then .build/venv/bin/python -m reports stalled results/latest; else exit $code; fi"
)
# What set-up makes depends on nothing that it has installed itself: a second one prints its last line alone.
_AGAIN = "hw/host/setup.sh | tee .build/again && test $(wc -l <.build/again) = 1"
_BUILDS = ("set-up", "images")
_NATIVE = "hw/benches/native.yaml"
# Some of each folder, seconds each, of those that call programs: what they need shows in a minute.
TESTS = (
    "tests/hw/test_set_up.py tests/hw/test_topology.py tests/reports/dossier/test_pdf.py "
    "tests/reports/page/test_in_browser.py tests/dashboards/test_influxdb.py tests/scope/test_edges.py "
    "tests/traffic_gen/test_witness.py tests/targets/test_linux.py tests/targets/rtdip/test_wire.py "
    "tests/targets/test_dynamic_build.py tests/bench/test_pair.py tests/resources/test_profiles.py tests/lint"
)


def main(arguments: list[str] | None = None) -> int:
    """Run what is asked for; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.clean_root", description=__doc__)
    known = ", ".join(RELEASES)
    parser.add_argument("releases", nargs="*", metavar="RELEASE", help=f"of {known}; default: all")
    parser.add_argument("--commit", default="HEAD", help="what is cloned into the root (default: HEAD)")
    parser.add_argument("--anew", action="store_true", help="make the roots from today's index")
    parser.add_argument("--where-changed", action="store_true", help="not where the same inputs have passed")
    parser.add_argument("--replay-by-turns", action="store_true", help="the replay on one release, by commit")
    parser.add_argument("--whole", action="store_true", help="qualify on the virtual bench, with its guests")
    parser.add_argument(
        "--take-out", type=int, nargs="?", const=time.time() // 86_400, metavar="SEED",
        help=f"take {TAKEN_OUT} packages out, drawn by SEED (default: today's): each has to be missed",
    )  # fmt: skip
    parser.add_argument("--table", action="store_true", help="print the table of docs/installing.md")
    given = parser.parse_args(arguments)
    try:
        return _run(given)
    except BenchwrightError as error:
        print(f"clean root: {error}", file=sys.stderr)
        return error.exit_code


def _run(given: argparse.Namespace) -> int:
    releases = given.releases or list(RELEASES)
    for release in releases:
        if release not in RELEASES:
            raise ConfigError(f"RELEASE: must be one of {', '.join(RELEASES)}, found {release!r}")
    commit = _git("rev-parse", f"{given.commit}^{{commit}}")
    if os.geteuid() != 0:
        raise CapabilityError("a clean root needs root: file systems are mounted in it")
    key = inputs.key(REPOSITORY, commit)
    turn = int(commit[:8], 16) % len(RELEASES)
    enter_own_mounts()
    code = 0
    for release in releases:
        bench = None if given.replay_by_turns and release != RELEASES[turn] else _NATIVE
        if given.whole:
            bench = "hw/benches/virtual.yaml"
        one = CleanRoot(release, commit)
        if given.table:
            print(uses.table(one.used, one.rows()))
            continue
        passed = one.folder / f"passed-{key[:16]}"
        if given.where_changed and passed.exists():
            print(f"clean root: {release}: the same lists, locks and scripts have passed; not run")
            continue
        one.prepare(given.anew)
        found = one.taken_out(given.take_out) if given.take_out is not None else one.first_commands(bench)
        for line in found:
            print(f"clean root: failed: {release}: {line}")
        print(f"clean root: {release}: {'FAIL' if found else 'PASS'}")
        code = code or int(bool(found))
        if not found and given.take_out is None:
            passed.touch()
    return code


class CleanRoot:
    """The first commands in the roots of one release."""

    def __init__(self, release: str, commit: str) -> None:
        """Say of what; nothing is made yet."""
        self.release, self.commit = release, commit
        self.folder = cache_folder().parent / "clean-root" / release
        self.cache = self.folder / "cache"
        self.used = self.folder / "used.json"
        self.log = REPOSITORY / ".build" / "log" / f"clean-root-{release}.log"

    def prepare(self, anew: bool) -> None:
        """Take the release's folder for this program alone, and make the minimal root where it is not kept.

        Raises:
            BenchError: Another clean root of the release is being used.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_text("", encoding="utf-8")
        began_s = time.monotonic()
        self.minimal = minimal(self.folder, self.release, anew)
        self._say("minimal root", began_s)

    def rows(self) -> list[packages.Row]:
        """Return the rows of all lists of packages."""
        return [row for text in self._lists() for row in packages.rows_of(text)]

    def first_commands(self, bench: str | None) -> list[str]:
        """Run all; return a line for each thing that is wrong.

        Args:
            bench: File of the bench that is qualified, or None for no replay.
        """
        rows = self.rows()
        uses.empty_unless_noted(self.cache, self.used)
        layer = self._layer("bench", [self.minimal])
        root = self._root([layer, self.minimal], self.cache)
        try:
            found: list[str] = []
            steps = {"set-up": "hw/host/setup.sh", "set-up again": _AGAIN, "images": "make images"}
            if bench is not None:
                steps["replay"] = _REPLAY.format(bench=bench)
                steps["dossier"] = "make dossier"
            for name, command in steps.items():
                with uses.noted(self.cache):
                    with Opened(root.path) as watched:
                        failed = self._step(root, name, command, sees_machine=name == "replay")
                    accidents = self._by_accident(root.path, watched.files, rows)
                if failed:
                    return [failed, *uses.missing(root.path, self._table())]
                found += [line for line in accidents if line not in found]
                if name in _BUILDS:
                    found += self._unlisted_inputs(watched.files)
            if bench == _NATIVE:  # a whole qualification leaves out what its profile has no time for
                found += uses.unused(self.used, rows)
        finally:
            root.close()
        return found or self._tests(layer)

    def taken_out(self, seed: int) -> list[str]:
        """Take packages out, one after the other: each has to be missed, by its name."""
        choice = sorted({row.name for row in self.rows() if row.use == "bench" and not row.reason})
        found: list[str] = []
        layer = self._layer("bench", [self.minimal])
        for name in random.Random(seed).sample(choice, TAKEN_OUT):
            root = self._root([layer, self.minimal], self.folder / "cache-without")
            try:
                without = f"sed -i '/^{name} /d' hw/host/packages.txt targets/*/packages.txt"
                self._step(root, f"take {name} out", f"dpkg --purge --force-all {name} && {without}")
                failed = self._step(root, f"set-up without {name}", "hw/host/setup.sh && make images")
                replay = _REPLAY.format(bench=_NATIVE)
                failed = failed or self._step(root, f"replay without {name}", replay, sees_machine=True)
                failed = failed or self._step(root, f"dossier without {name}", "make dossier")
                named = uses.missing(root.path, self._table())
                if not failed:
                    found.append(f"without {name}, nothing fails: who needs it?")
                elif not any(line.startswith(f"{name}:") for line in named):
                    found.append(f"without {name}: {failed}, and nothing names it")
            finally:
                root.close()
                shutil.rmtree(self.folder / "cache-without")
        return found

    def _by_accident(self, root: Path, opened: set[str], rows: list[packages.Row]) -> list[str]:
        installed = packages.installed(root)
        used, strangers = packages.users(root, opened, installed)
        uses.keep(self.used, used)
        records = packages.recorded(DEPENDENCIES.read_text(encoding="utf-8"))
        named = [*BEFORE, *(row.name for row in rows if row.use == "bench")]
        found = [f"{path}: of no package" for path in strangers]
        return found + packages.by_accident(used, named, records, installed)

    def _unlisted_inputs(self, opened: set[str]) -> list[str]:
        listed = set(_git("ls-tree", "-r", "--name-only", self.commit).splitlines())
        tree = f"/{TREE}/"
        read = {path.removeprefix(tree) for path in opened if path.startswith(tree)} & listed
        unlisted = inputs.unlisted(read, inputs.LIST.read_text(encoding="utf-8"))
        return [f"{path}: read by a build, and in no pattern of {inputs.LIST.name}" for path in unlisted]

    def _tests(self, layer: Path) -> list[str]:
        dev = self._layer("dev", [layer, self.minimal])
        root = self._root([dev, layer, self.minimal], self.cache)
        try:
            failed = self._step(root, "set-up of tests", "hw/host/setup.sh --dev")
            failed = failed or self._step(root, "tests", f'make test TEST="{TESTS}"', sees_machine=True)
        finally:
            root.close()
        return [failed] if failed else []

    def _layer(self, use: str, below: list[Path]) -> Path:
        """Return the layer of the packages of a use on those below; made where the lists have changed."""
        names = {"bench": "bench", "dev": "bench dev"}[use]
        key = hashlib.sha256("".join([*self._lists(), names]).encode()).hexdigest()[:16]
        layer = self.folder / f"{use}-{key}"
        if not layer.is_dir():
            root = self._root(below, self.cache)
            failed = self._step(root, f"packages of {use}", f'{_PACKAGES} "{names}" && apt-get clean')
            if failed:
                root.close()
                raise BenchError(f"{self.release}: {failed}")
            root.keep(layer)
            for old in self.folder.glob(f"{use}-*"):
                if old != layer:
                    shutil.rmtree(old)
        return layer

    def _root(self, layers: list[Path], cache: Path) -> Root:
        root = Root(self.folder, layers, cache)
        tree = root.path / TREE
        for argv in (
            ["git", "clone", "--quiet", "--no-checkout", str(REPOSITORY), str(tree)],
            ["git", "-C", str(tree), "checkout", "--quiet", "--detach", self.commit],
        ):
            subprocess.run(argv, check=True)
        return root

    def _step(self, root: Root, name: str, command: str, sees_machine: bool = False) -> str:
        """Run a step; return what failed, with its last lines, or nothing."""
        began_s = time.monotonic()
        code = root.run(command, self.log, sees_machine)
        self._say(name, began_s, code)
        if code == 0:
            return ""
        tail = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]
        return "\n    ".join([f"{name} ended with {code}:", *tail])

    def _say(self, name: str, began_s: float, code: int = 0) -> None:
        end = "" if code == 0 else f", exit code {code}"
        print(f"clean root: {self.release}: {name}: {time.monotonic() - began_s:.0f} s{end}", flush=True)

    def _lists(self) -> list[str]:
        names = _git("ls-tree", "-r", "--name-only", self.commit).splitlines()
        lists = [
            name
            for name in names
            if name == "hw/host/packages.txt"
            or (name.startswith("targets/") and name.endswith("/packages.txt"))
        ]
        return [_git("show", f"{self.commit}:{name}") for name in lists]

    def _table(self) -> str:
        return (REPOSITORY / "docs" / "installing.md").read_text(encoding="utf-8")


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ConfigError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
