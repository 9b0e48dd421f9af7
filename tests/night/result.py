# SPDX-License-Identifier: Apache-2.0
"""What came of a part, and its file: results/night/STATE/PART.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from hw.errors import BenchError
from reports.durable import replace_file
from reports.errors import RunFolderError
from tests.night.state import State

SCHEMA = "benchwright.night-part/1"
SUMMARY = "summary.json"
BEFORE = ".before.json"
"""Ends the file of a result that `--again` has replaced: durations are compared with it, too."""


class Verdict(StrEnum):
    """How a part came out."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Result:
    """What came of a part.

    Attributes:
        part: Its name.
        commit, diff: State of the source tree (State).
        commands: What was run.
        machine: On which machine.
        began_utc, ended_utc: When, ISO 8601.
        exit_code: Of the last command that was run.
        verdict: What it says.
        reason: Why it is not *passed*; else empty.
        seconds: How long it took.
        stolen_s: What the hypervisor took meanwhile, from each CPU.
        load_max: The highest load of the machine.
        log: What it printed, a file beside this one.
        failures: What has failed, by name, where the part names it.
        run: Run folder of a qualification; else empty.
        figures, bars: What a benchmark has measured, and what it has to reach.
        met: All bars are.
    """

    part: str
    commit: str
    diff: str
    commands: tuple[str, ...]
    machine: dict[str, object]
    began_utc: str
    ended_utc: str
    exit_code: int
    verdict: Verdict
    reason: str
    seconds: float
    stolen_s: tuple[float, ...]
    load_max: float
    log: str
    failures: tuple[str, ...] = ()
    run: str = ""
    figures: dict[str, float | None] = field(default_factory=dict[str, float | None])
    bars: dict[str, float] = field(default_factory=dict[str, float])
    met: bool = True

    @property
    def unstolen_s(self) -> float:
        """Its duration without what was taken from the CPU that lost most, in s."""
        return max(0.0, self.seconds - max(self.stolen_s, default=0.0))

    def is_of(self, state: State, commands: tuple[str, ...]) -> bool:
        """Say whether it is the result of these commands in this state of the tree."""
        return (self.commit, self.diff, self.commands) == (state.commit, state.diff, commands)


def write(result: Result, folder: Path) -> None:
    """Keep a result; one that it replaces stays beside it.

    Raises:
        BenchError: It cannot be written.
    """
    path = folder / f"{result.part}.json"
    try:
        if path.exists():
            path.replace(path.with_name(f"{result.part}{BEFORE}"))
        write_json(path, {"schema": SCHEMA, **asdict(result)})
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error


def write_json(path: Path, value: Mapping[str, object]) -> None:
    """Write a file of JSON, whole or not at all.

    Raises:
        BenchError: It cannot be written.
    """
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        BenchError: It cannot be written.
    """
    try:
        replace_file(path, text.encode())
    except RunFolderError as error:
        raise BenchError(str(error)) from error


def read(path: Path) -> Result | None:
    """Return a result that was kept; None: there is none, or it is of another version."""
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if kept.pop("schema") != SCHEMA:
            return None
        for name in ("commands", "stolen_s", "failures"):
            kept[name] = tuple(kept[name])
        kept["verdict"] = Verdict(kept["verdict"])
        return Result(**kept)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def all_results(nights: Path) -> list[Result]:
    """Return every result of every night."""
    found = (read(path) for path in sorted(nights.glob("*/*.json")) if path.name != SUMMARY)
    return [result for result in found if result is not None]
