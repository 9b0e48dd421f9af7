# SPDX-License-Identifier: Apache-2.0
"""Run the parts that have no result yet, and say what came of each."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hw.steal import stolen_s
from tests.night import names
from tests.night.machine import machine
from tests.night.parts import OWN, Part, Step
from tests.night.process import GRACE_S, INTERRUPTED, TIMED_OUT, Interrupts, ProcessEnd, run_bounded
from tests.night.result import Result, Verdict, read, write
from tests.night.state import State, state_of

TREE_CHANGED = "the source tree was changed while it ran"
_VERDICTS = {0: Verdict.PASSED, 3: Verdict.SKIPPED, 4: Verdict.INCONCLUSIVE}
_OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL")
_REASON_CHARACTERS = 600


@dataclass(frozen=True)
class Night:
    """Where a night runs, and of which state its results are.

    Attributes:
        root: The source tree.
        folder: For the results of this state.
        state: The tree's.
        again: Run also what has a result.
        grace_s: For a part that is ended (tests.night.process).
        ends_s: When it ends, by the monotonic clock.
    """

    root: Path
    folder: Path
    state: State
    again: bool = False
    grace_s: float = GRACE_S
    ends_s: float = math.inf

    @property
    def left_s(self) -> float:
        """How long it goes on, in s."""
        return max(0.0, self.ends_s - time.monotonic())

    def kept(self, part: Part) -> Result | None:
        """Return the result of a part in this state; None: it has none, and neither has what was skipped."""
        result = read(self.folder / f"{part.name}.json")
        if result is None or not result.is_of(self.state, part.commands):
            return None
        return None if result.verdict is Verdict.SKIPPED else result


def run_part(night: Night, part: Part, interrupts: Interrupts) -> Result | None:
    """Run a part and keep its result; return None if an interrupt or the night's end left it without one.

    Raises:
        BenchError: The result cannot be written.
    """
    own = night.folder / part.name
    for ending in (names.FAILED, names.RUN):
        own.with_name(own.name + ending).unlink(missing_ok=True)
    began_utc, began_s, stolen_before_s = _now(), time.monotonic(), stolen_s()
    with own.with_name(own.name + names.LOG).open("wb") as log:
        ended, step = _run_steps(night, part, interrupts, log)
    if ended.why == INTERRUPTED or (ended.why == TIMED_OUT and night.left_s == 0):
        return None
    verdict, reason = _judge(ended, step, own, part.limit_s)
    figures = _figures(own)
    result = Result(
        part=part.name,
        commit=night.state.commit,
        diff=night.state.diff,
        commands=part.commands,
        machine=machine(),
        began_utc=began_utc,
        ended_utc=_now(),
        exit_code=ended.exit_code,
        verdict=verdict,
        reason=reason,
        seconds=round(time.monotonic() - began_s, 2),
        stolen_s=tuple(
            round(after - before, 2) for before, after in zip(stolen_before_s, stolen_s(), strict=False)
        ),
        load_max=round(ended.load_max, 2),
        log=own.name + names.LOG,
        failures=() if verdict in (Verdict.PASSED, Verdict.SKIPPED) else tuple(part.names(own)),
        run=names.run_folder(own),
        figures=figures.get("figures", {}),
        bars=figures.get("bars", {}),
        met=figures.get("met", True),
    )
    if verdict is Verdict.PASSED and state_of(night.root) != night.state:
        result = replace(result, verdict=Verdict.INCONCLUSIVE, reason=TREE_CHANGED)
    write(result, night.folder)
    return result


def _run_steps(night: Night, part: Part, interrupts: Interrupts, log: Any) -> tuple[ProcessEnd, Step]:
    """Run the steps of a part until one does not end with 0; return how the last has ended."""
    deadline_s = time.monotonic() + min(part.limit_s, night.left_s)
    environment = {name: value for name, value in os.environ.items() if name not in _OF_MAKE}
    load_max = 0.0
    ended, step = ProcessEnd(0, "", 0.0), part.steps[0]
    for step in part.steps:
        argv = [word.replace(OWN, str(night.folder / part.name)) for word in step.argv]
        ended = run_bounded(
            argv, log, max(0.0, deadline_s - time.monotonic()), interrupts,
            folder=night.root, environment=environment, grace_s=night.grace_s,
        )  # fmt: skip
        load_max = max(load_max, ended.load_max)
        if ended.exit_code != 0 or ended.why:
            break
    return replace(ended, load_max=load_max), step


def _judge(ended: ProcessEnd, step: Step, own: Path, limit_s: float) -> tuple[Verdict, str]:
    """Return the verdict, and why it is not *passed*."""
    if ended.why == TIMED_OUT:
        return Verdict.FAILED, f"timed out after {limit_s:g} s"
    if ended.exit_code == 0:
        return Verdict.PASSED, ""
    verdict = Verdict.FAILED if step.is_pytest else _VERDICTS.get(ended.exit_code, Verdict.FAILED)
    said = _last_said(own.with_name(own.name + names.LOG))
    return verdict, said if verdict is Verdict.SKIPPED else f"exit code {ended.exit_code}: {said}"


def _last_said(log: Path) -> str:
    """Return the last line of a log that is not indented, and what follows it."""
    lines = [line for line in _text(log).splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if not line[0].isspace()]
    said = "; ".join(line.strip() for line in lines[starts[-1] if starts else 0 :]).replace(":; ", ": ")
    return said[:_REASON_CHARACTERS]


def _figures(own: Path) -> dict[str, Any]:
    """Return the object that a benchmark prints as its last line; empty where there is none."""
    for line in reversed(_text(own.with_name(own.name + names.LOG)).splitlines()):
        if line.startswith('{"bench":'):
            try:
                return json.loads(line)
            except ValueError:
                return {}
    return {}


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def result_line(name: str, result: Result) -> str:
    """Return a result in a line, as `.ci/run` says its steps."""
    minutes, seconds = divmod(round(result.seconds), 60)
    said = f"{result.verdict}: {result.reason}" if result.reason else str(result.verdict)
    said += "" if result.met else ", bars not met"
    return f"{name:33} {minutes:3} min {seconds:02} s, {stolen_text(result.stolen_s)} s stolen, {said}"


def stolen_text(stolen: Sequence[float]) -> str:
    """Return what was stolen from each CPU, in s, without the unit."""
    return " + ".join(f"{value:.2f}" for value in stolen)
