# SPDX-License-Identifier: Apache-2.0
"""Put each fault of a list into a copy of the code and say what of the gate finds it.

    python -m tests.mutants [--list FILE] [--only NAME …] [--no-qualification]

Each gets the tests of its folder, and where they find nothing a quick qualification of one target: a *fail*
or an *error* finds it, *inconclusive* does not. Exit code 0: all were found; 1: some were not; 2: bad input.
Results go to results/mutants.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / ".build" / "mutants"
GATE = "not slow and not timed and not influxdb2 and not hardware"
NATIVE = (".c", ".h")
QUALIFICATION_FINDS = {1: "fail", 2: "bad input", 3: "not capable", 5: "bench fault"}
NO_TESTS = 5


@dataclass(frozen=True)
class Mutant:
    """One fault: a text of a file that becomes another, and the tests that are asked first."""

    name: str
    says: str
    file: str
    text: str
    wrong: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Detector:
    """What found a fault; `by` empty: nothing."""

    name: str
    by: str


def load(path: Path) -> list[Mutant]:
    """Read a list; raises ValueError where a text does not stand once in its file."""
    rows: list[dict[str, Any]] = tomllib.loads(path.read_text())["mutant"]
    mutants = [Mutant(tests=tuple(row.pop("tests")), **row) for row in rows]
    for mutant in mutants:
        count = (ROOT / mutant.file).read_text().count(mutant.text)
        if count != 1:
            raise ValueError(
                f"{path}: {mutant.name}.text: must stand once in {mutant.file}, stands {count} times"
            )
    return mutants


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
    return named[-1].split(" - ")[0] if named else "no name"


def judge(mutant: Mutant, log: Path, *, qualification: bool) -> str:
    """Return what finds a fault that has been put into the copy; empty: nothing."""
    if mutant.file.endswith(NATIVE):
        for variant in ("linux", "asan"):
            if run(
                "bash", "-c", f". hw/host/progress.sh; . hw/host/native.sh; native_ensure {variant}", log=log
            ):
                return f"build of {variant}"
        if run("meson", "test", "-C", ".build/linux", "--no-rebuild", "--no-suite", "fuzz", log=log):
            return "C tests"
    python = str(ROOT / ".build" / "venv" / "bin" / "python")
    code = run(python, "-m", "pytest", "-x", "-q", "-m", GATE, *mutant.tests, log=log)
    if code not in (0, NO_TESTS):
        return last_failed(log)
    if not qualification:
        return ""
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


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--list", type=Path, default=Path(__file__).with_name("mutants.toml"), help="list of faults"
    )
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="these alone")
    parser.add_argument("--no-qualification", action="store_true", help="tests alone")
    options = parser.parse_args()
    try:
        mutants = load(options.list)
    except (OSError, TypeError, ValueError, KeyError) as error:
        print(f"mutants: {error}", file=sys.stderr)
        return 2
    if unknown := sorted(set(options.only) - {mutant.name for mutant in mutants}):
        print(f"mutants: no mutant {unknown[0]!r} in {options.list}", file=sys.stderr)
        return 2
    logs = ROOT / "results" / "mutants"
    logs.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(TREE, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(TREE)], check=True)
    run("make", "setup", log=logs / "setup.log")
    found: list[Detector] = []
    for mutant in mutants:
        if options.only and mutant.name not in options.only:
            continue
        path = TREE / mutant.file
        right = path.read_text()
        path.write_text(right.replace(mutant.text, mutant.wrong))
        log = logs / f"{mutant.name}.log"
        log.write_text(f"{mutant.says}\n")
        try:
            by = judge(mutant, log, qualification=not options.no_qualification)
        finally:
            path.write_text(right)
        found.append(Detector(mutant.name, by))
        print(f"{mutant.name:24} {by or 'NOT FOUND'}", flush=True)
    (ROOT / "results" / "mutants.json").write_text(
        json.dumps([asdict(each) for each in found], indent=1) + "\n"
    )
    missed = sum(not each.by for each in found)
    print(f"mutants: {len(found) - missed} of {len(found)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
