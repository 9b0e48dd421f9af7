# SPDX-License-Identifier: Apache-2.0
"""Put each fault of a list into a copy of the code and say what of the gate finds it.

    python -m tests.mutants [--list FILE] [--only NAME …] [--area AREA …] [--no-qualification]

The copy is of HEAD. Each fault gets the tests of its folder: the gate's, then those marked slow or timed.
Where they find nothing a quick qualification of one target follows: a *fail* or an *error* finds the fault,
*inconclusive* does not. A test that fails without the fault, too, finds nothing.

Exit code 0: all were found; 1: some were not; 2: bad input; 5: copy or machine cannot be made ready.
Results go to results/mutants.json; those of an earlier run stay for what this one leaves out. What was said
while a fault was in goes to results/mutants/NAME.log.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hw.errors import BenchError
from tests.mutants import machine

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / ".build" / "mutants"
RESULTS = ROOT / "results" / "mutants.json"
LOGS = ROOT / "results" / "mutants"
GATE = "not slow and not timed and not influxdb2 and not hardware"
BESIDE_GATE = {
    "slow": "slow and not timed and not influxdb2 and not hardware",
    "timed": "timed and not influxdb2 and not hardware",
}
"""Tests that `make test-all` alone runs: asked where the gate's find nothing, named with what they find."""
NATIVE = (".c", ".h")
FIRST_BUILD, FURTHER_BUILDS = "linux", ("asan", "static")
"""What tests ask first; and where that finds nothing, with sanitizers, and as it is brought to guests."""
QUALIFICATION_FINDS = {1: "fail", 2: "bad input", 3: "not capable", 5: "bench fault"}
NO_TESTS = 5
BENCH_FAULT = 5
AREAS = (
    "verdict",
    "rejudge",
    "replay",
    "clocks",
    "edges",
    "undo",
    "experiments",
    "provisioning",
    "C sender",
    "C receiver",
    "delivery",
    "time service",
    "user stack",
    "RTDiP",
    "software latency",
    "timeline",
    "real-time Ethernet",
    "control loops",
)
"""Of what a fault is; of each there are some."""


class CopyError(Exception):
    """The copy of the code cannot be made."""


@dataclass(frozen=True)
class Mutant:
    """One fault: a text of a file that becomes another, and the tests that are asked first."""

    name: str
    area: str
    says: str
    file: str
    text: str
    wrong: str
    tests: tuple[str, ...]

    @property
    def is_native(self) -> bool:
        """Tell whether programs have to be built with it."""
        return self.file.endswith(NATIVE)


@dataclass(frozen=True)
class Detector:
    """What found a fault, of which commit; `by` empty: nothing; `remark`: why what failed does not count."""

    name: str
    area: str
    by: str
    remark: str
    commit: str


def load(path: Path, root: Path = ROOT) -> list[Mutant]:
    """Read a list; raises ValueError where a text does not stand once in its file, or a name stands twice."""
    rows: list[dict[str, Any]] = tomllib.loads(path.read_text())["mutant"]
    mutants = [Mutant(tests=tuple(row.pop("tests")), **row) for row in rows]
    for mutant in mutants:
        count = (root / mutant.file).read_text().count(mutant.text)
        if count != 1:
            raise ValueError(
                f"{path}: {mutant.name}.text: must stand once in {mutant.file}, stands {count} times"
            )
        if mutant.area not in AREAS:
            raise ValueError(
                f"{path}: {mutant.name}.area: must be one of {', '.join(AREAS)}, found {mutant.area!r}"
            )
        if sum(other.name == mutant.name for other in mutants) > 1:
            raise ValueError(f"{path}: {mutant.name}: the name stands twice")
    return mutants


def chosen(mutants: Sequence[Mutant], names: Sequence[str], areas: Sequence[str]) -> list[Mutant]:
    """Return those of some names or areas, all where none is given; raises ValueError for an unknown one."""
    for what, words, known in (
        ("mutant", names, {mutant.name for mutant in mutants}),
        ("area", areas, {mutant.area for mutant in mutants}),
    ):
        if unknown := sorted(set(words) - known):
            raise ValueError(f"no {what} {unknown[0]!r} in the list; there are: {', '.join(sorted(known))}")
    return [
        mutant for mutant in mutants if mutant.name in names or mutant.area in areas or not (names or areas)
    ]


def merged(
    mutants: Sequence[Mutant], earlier: Sequence[Detector], found: Sequence[Detector]
) -> list[Detector]:
    """Return what is known of each mutant of a list, in its order: found now, or else in an earlier run."""
    by_name = {each.name: each for each in (*earlier, *found)}
    return [by_name[mutant.name] for mutant in mutants if mutant.name in by_name]


def by_area(results: Sequence[Detector]) -> list[str]:
    """Return a line for each area that has results: how many were found, and which were not."""
    lines: list[str] = []
    for area in AREAS:
        own = [each for each in results if each.area == area]
        missed = [each.name for each in own if not each.by]
        not_found = f"; not {', '.join(missed)}" if missed else ""
        if own:
            lines.append(f"{area:24} {len(own) - len(missed)} of {len(own)} found{not_found}")
    return lines


def earlier_results() -> list[Detector]:
    """Return what an earlier run has found; nothing of a file of other keys."""
    try:
        return [Detector(**row) for row in json.loads(RESULTS.read_text())]
    except (OSError, ValueError, TypeError):
        return []


def run(*command: str, log: Path) -> int:
    """Run a command in the copy; what it says is kept."""
    with log.open("ab") as file:
        file.write(f"\n$ {' '.join(command)}\n".encode())
        file.flush()
        return subprocess.run(
            command, cwd=TREE, stdin=subprocess.DEVNULL, stdout=file, stderr=file
        ).returncode


def last_failed(log: Path) -> str:
    """Return the last line of a log that names a failed test, without what it says."""
    lines = log.read_text(errors="replace").splitlines()
    named = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return named[-1].split(" - ")[0].partition(" ")[2] if named else ""


_FAILED_NATIVE = re.compile(r"^ *\d+/\d+ (?:\S+ / )?(\S+) +(?:FAIL|ERROR|TIMEOUT|INTERRUPT)\b", re.MULTILINE)


class Judge:
    """Asks tests about faults in the copy, and builds programs as need be."""

    def __init__(self, *, qualification: bool) -> None:
        """Ask for a qualification too, where tests find nothing."""
        self._qualification = qualification
        self._stale: set[str] = set()
        """Builds of a fault that is not in any more."""
        self._python = str(TREE / ".build" / "venv" / "bin" / "python")

    def judge(self, mutant: Mutant, log: Path) -> tuple[str, str]:
        """Put a fault in, take it out again, and return what finds it; empty: nothing, and why.

        Raises:
            CopyError: The code without the fault cannot be built.
        """
        self._refresh(log)
        path = TREE / mutant.file
        right = path.read_text()
        path.write_text(right.replace(mutant.text, mutant.wrong))
        try:
            by, again = self._found(mutant, log)
        finally:
            path.write_text(right)
        if by and again:
            self._refresh(log)
            if run(*again, log=log):
                return "", f"{by} fails without the fault, too"
        return by, ""

    def _found(self, mutant: Mutant, log: Path) -> tuple[str, tuple[str, ...]]:
        """Return what finds the fault that is in, and the command that has to succeed without it."""
        if mutant.is_native:
            by, again = self._by_build(FIRST_BUILD, log)
            if not by:
                by, again = self._by_python(mutant, log)
            for variant in FURTHER_BUILDS:
                if not by:
                    by, again = self._by_build(variant, log)
            if by:
                return by, again
        by, again = self._by_python(mutant, log)
        for tier in BESIDE_GATE:
            if not by:
                by, again = self._by_python(mutant, log, tier)
                by = f"{tier}: {by}" if by else ""
        return (by, again) if by or not self._qualification else (self._by_qualification(log), ())

    def _by_build(self, variant: str, log: Path) -> tuple[str, tuple[str, ...]]:
        """Build a variant, and run its C tests."""
        self._stale.add(variant)
        if not _build(variant, log):
            return f"build of {variant}", ()
        before = len(log.read_text(errors="replace"))
        sanitizers = ("env", "ASAN_OPTIONS=abort_on_error=1", "UBSAN_OPTIONS=halt_on_error=1")
        tests = (
            *sanitizers,
            "meson",
            "test",
            "-C",
            f".build/{variant}",
            "--no-rebuild",
            "--timeout-multiplier",
            "20",
        )
        if variant == "static" or not run(*tests, "--no-suite", "fuzz", log=log):
            return "", ()
        failed = _FAILED_NATIVE.findall(log.read_text(errors="replace")[before:])
        return f"C test {', '.join(failed)} ({variant})", (*tests, *failed)

    def _by_python(self, mutant: Mutant, log: Path, tier: str = "") -> tuple[str, tuple[str, ...]]:
        """Run the tests of its folder; they stop at the first that fails."""
        before = len(log.read_text(errors="replace"))
        pytest = (self._python, "-m", "pytest", "-x", "-q", "-m", BESIDE_GATE.get(tier, GATE))
        beside = (
            ()
            if tier == "timed"
            else ("-n", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder")
        )
        code = run(*machine.apart((*pytest, *beside, *mutant.tests)), log=log)
        if code in (0, NO_TESTS):
            return "", ()
        part = log.with_suffix(".part")
        part.write_text(log.read_text(errors="replace")[before:])
        failed = last_failed(part)
        part.unlink()
        again = failed.partition("[")[0] if failed else ""
        return failed or "no name", machine.apart((*pytest, *([again] if again else mutant.tests)))

    def _by_qualification(self, log: Path) -> str:
        code_file = TREE / "qualification.exit"
        code_file.unlink(missing_ok=True)
        run(
            "env",
            f"QUALIFY_EXIT_FILE={code_file}",
            "make",
            "qualify",
            "PROFILE=quick",
            "TARGETS=linux-rt",
            log=log,
        )
        came = int(code_file.read_text()) if code_file.exists() else 5
        return f"qualification: {QUALIFICATION_FINDS[came]}" if came in QUALIFICATION_FINDS else ""

    def _refresh(self, log: Path) -> None:
        """Build anew what was built with the fault before: tests of Python run these programs, too."""
        for variant in sorted(self._stale):
            if not _build(variant, log):
                raise CopyError(f"{variant} cannot be built without a fault: see {log}")
        self._stale.clear()


def _build(variant: str, log: Path) -> bool:
    script = f". hw/host/progress.sh; . hw/host/sources.sh; . hw/host/native.sh; native_ensure {variant}"
    return run("bash", "-euo", "pipefail", "-c", script, log=log) == 0


def make_copy(commit: str) -> None:
    """Bring the copy to a commit, with its programs; what is built there already is kept.

    Raises:
        CopyError: It cannot be set up; the text names the log.
    """
    log = LOGS / "setup.log"
    log.write_text("")
    if not (TREE / ".git").exists():
        shutil.rmtree(TREE, ignore_errors=True)
        subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(TREE)], check=True)
    for command in (
        ("git", "fetch", "-q", "origin", "HEAD"),
        ("git", "checkout", "-q", "--force", "--detach", commit),
        ("git", "clean", "-q", "-dff"),
        ("hw/host/setup.sh", "--dev"),
    ):
        if run(*command, log=log):
            raise CopyError(f"{TREE}: {' '.join(command)} failed: see {log}")
    if not _build("asan", log):
        raise CopyError(f"{TREE}: asan cannot be built: see {log}")


def _be_alone() -> None:
    """Hold the lock of the copy until this process ends.

    Raises:
        CopyError: Another run has it.
    """
    lock = os.open(TREE.with_name("mutants.lock"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CopyError(f"{TREE}: another run is using it") from error


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--list", type=Path, default=Path(__file__).with_name("mutants.toml"), help="list of faults"
    )
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these alone")
    parser.add_argument("--area", nargs="*", default=[], metavar="AREA", help="those of these areas alone")
    parser.add_argument("--no-qualification", action="store_true", help="tests alone")
    options = parser.parse_args()
    try:
        mutants = load(options.list)
        wanted = chosen(mutants, options.only, options.area)
    except (OSError, TypeError, ValueError, KeyError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    LOGS.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    found: list[Detector] = []
    try:
        _be_alone()
        make_copy(commit)
        load(options.list, TREE)  # what is not committed is not in the copy
        judge = Judge(qualification=not options.no_qualification)
        with machine.kept():
            for mutant in wanted:
                log = LOGS / f"{mutant.name}.log"
                log.write_text(f"{mutant.says}\n")
                by, remark = judge.judge(mutant, log)
                found.append(Detector(mutant.name, mutant.area, by, remark, commit))
                shown = by or f"NOT FOUND{': ' if remark else ''}{remark}"
                print(f"{mutant.area:12} {mutant.name:31} {shown}", flush=True)
                known = merged(mutants, earlier_results(), found)
                RESULTS.write_text(json.dumps([asdict(each) for each in known], indent=1) + "\n")
    except (CopyError, BenchError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return BENCH_FAULT
    except ValueError as error:
        print(f"mutants: {commit[:12]}: {error}", file=sys.stderr)
        return 2
    print("\n".join(by_area(found)))
    missed = sum(not each.by for each in found)
    print(f"mutants: {len(found) - missed} of {len(found)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
