# SPDX-License-Identifier: Apache-2.0
"""Experiments that tests run by the command, and a lister of what is left that shares no code with reset."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.experiment.toml_text import toml_text
from tests.experiment.warm import run_warm
from tests.patience import HANG_S

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RUN = Path("/run/benchwright")
BENCH = """
targets: {}
benchwright:
  schema: benchwright.bench/1
  name: NAME
  simulated: true
  environment: two network namespaces of one machine
  reference_clock: host
  nodes:
    switch: {kind: namespace, clock: host, priority: 0}
    p01: {kind: namespace, clock: host, priority: 0}
    p02: {kind: namespace, clock: host, priority: 0}
  clocks:
    host: {node: switch, address: 10.78.0.254}
  targets: {}
  producers:
    1: {node: p01, address: 10.77.0.1}
    2: {node: p02, address: 10.77.0.2}
  virtual: {test_subnet: 10.77.0.0/24, control_subnet: 10.78.0.0/24}
"""
SETTLE_S = 5.0
PHASES = ("start", "prepare", "work", "finish")


@dataclass(frozen=True)
class Fault:
    """What is broken, and when.

    Attributes:
        how: As `breaker.sh` knows it.
        phase: In which.
        component: Whose.
    """

    how: str
    phase: str
    component: str = "first"


def bench_file(folder: Path, name: str) -> Path:
    """Write the file of a bench of two namespaces."""
    file = folder / "bench.yaml"
    file.write_text(BENCH.replace("NAME", name))
    return file


def experiment_file(
    folder: Path, bench: Path, fault: Fault | None, deadline_s: float = 60.0, first: str = "p01"
) -> Path:
    """Write an experiment of three components on two nodes, one of which knows nothing of phases.

    Args:
        folder: Gets the file.
        bench: Of the bench.
        fault: What breaks; None: nothing.
        deadline_s: Of each phase.
        first: Node of the component `first`.
    """
    shutil.copy2(HERE / "breaker.sh", folder / "breaker.sh")

    def fault_of(phase: str, component: str) -> str:
        return fault.how if fault is not None and (fault.phase, fault.component) == (phase, component) else ""

    def breaker(node: str, name: str) -> dict[str, Any]:
        return {
            "node": node,
            "command": ["sh", "@breaker.sh", fault_of("start", name)],
            "ready": "phases",
            "files": ["data"],
            "grace_ms": 200,
            "output_mib": 1,
        }

    def task(phase: str, name: str) -> dict[str, object]:
        parameters = {"phase": phase} | ({"fault": how} if (how := fault_of(phase, name)) else {})
        return {"do": phase, "parameters": parameters}

    table: Mapping[str, object] = {
        "schema": "benchwright.experiment/1",
        "name": "broken",
        "bench": str(bench),
        "nodes": {"one": {"node": first}, "other": {"node": "p02"}},
        "components": {
            "first": breaker("one", "first"),
            "second": breaker("other", "second"),
            "plain": {
                "node": "other",
                "command": ["sh", "-c", "echo begun; (setsid sleep 10000 &); exec sleep 10000"],
                "ready": "line:begun",
                "grace_ms": 200,
            },
        },
        "phases": [
            {
                "name": phase,
                "deadline_s": deadline_s,
                "tasks": {
                    name: "start" if phase == "start" else task(phase, name) for name in ("first", "second")
                }
                | ({"plain": "start"} if phase == "start" else {}),
            }
            for phase in PHASES
        ],
    }
    file = folder / f"{'sound' if fault is None else 'broken'}.toml"
    file.write_text(toml_text(table))
    return file


def command(*words: str | Path) -> list[str]:
    """Return the command of an experiment, by words."""
    return [sys.executable, "-m", "resources.experiment", *map(str, words)]


def run(
    *words: str | Path, small_disk: bool = False, settle_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end.

    Args:
        words: Of its command line.
        small_disk: The folders of nodes on this machine are on a disk of 256 KiB.
        settle_s: See `run_warm`; of what is sure to stay.
    """
    if not small_disk:
        return run_warm([*map(str, words)], ROOT, settle_s)
    script = f'mount -t tmpfs -o size=256k tmpfs {RUN} && exec "$@"'
    RUN.mkdir(parents=True, exist_ok=True)
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", *command(*words)]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)


def run_and_disturb(
    disturb: Callable[[subprocess.Popen[str]], object], phase: str, *words: str | Path
) -> tuple[int, str]:
    """Run the command, and do something when a phase begins; return its exit code and what it said."""
    process = subprocess.Popen(
        # Under nohup tests ignore SIGHUP, and so would what they start.
        ["env", "--default-signal", *command(*words)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if line.split()[-1:] == [phase]:
            disturb(process)
    return process.wait(HANG_S), said


def left(bench: str, *outputs: Path) -> list[str]:
    """Return what experiments have left: processes, and a bench of two namespaces with its files.

    Args:
        bench: Its name; nobody has it open.
        outputs: Folders of the experiments.
    """
    marks = [json.loads((each / "identity.json").read_text())["mark"] for each in outputs]
    wanted = {f"BENCHWRIGHT_EXPERIMENT={mark}".encode() for mark in marks}
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if wanted & {*(entry / "environ").read_bytes().split(b"\0")}:
                found.append(f"process {entry.name}: {(entry / 'exe').readlink()}")
        except OSError:
            continue
    namespaces = subprocess.check_output(["ip", "netns", "list"], text=True).splitlines()
    found += [f"namespace {line.split()[0]}" for line in namespaces if bench in line]
    return found + [str(each) for each in RUN.glob(bench)]


def left_soon(bench: str, *outputs: Path) -> list[str]:
    """Return what is left after a while: what the kernel ends needs its time."""
    end_s = time.monotonic() + SETTLE_S
    while (found := left(bench, *outputs)) and time.monotonic() < end_s:
        time.sleep(0.05)
    return found
