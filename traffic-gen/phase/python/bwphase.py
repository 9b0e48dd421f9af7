# SPDX-License-Identifier: Apache-2.0
"""Programs of Python that take part in an experiment, like those of C with `bwphase.h`.

Use:
    phases = Phases()

    @phases.phase("listen")
    def listen(parameters):
        ...
        return {"port": 4711}     # numbers that go with the answer, or None

    sys.exit(phases.run())

This file stands alone: copy it beside the program. A function that raises ends the experiment with the text
of what it raised. While it runs, what it and the
programs that it starts print to stdout goes to stderr, and disturbs nothing.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import Any, TextIO

Work = Callable[[dict[str, Any]], Mapping[str, float] | None]
_NAME = re.compile(r"[a-z0-9-]{1,63}")


class Phases:
    """The phases that a program has work in."""

    def __init__(self) -> None:
        """Begin with none."""
        self._work: dict[str, Work] = {}

    def phase(self, name: str) -> Callable[[Work], Work]:
        """Have the function below called in a phase.

        Args:
            name: Of a-z, 0-9 and hyphen, 63 at most.

        Raises:
            ValueError: It is no such name, or has a function.
        """
        if not _NAME.fullmatch(name) or name in self._work:
            raise ValueError(f"phase {name!r}: must be 1..63 of a-z, 0-9 and hyphen, once in a program")

        def register(work: Work) -> Work:
            self._work[name] = work
            return work

        return register

    def run(self, commands: TextIO | None = None, answers: TextIO | None = None) -> int:
        """Hand over control; return the exit code: 0 at the end of the phases, 2: a line was no phase.

        Args:
            commands: Where the controller's lines come from; None: stdin.
            answers: Where they are answered; None: stdout.
        """
        told = commands or sys.stdin
        answered = answers or _own_stdout()

        def say(kind: str, **more: object) -> None:
            answered.write(json.dumps({"type": kind, **more}, separators=(",", ":")) + "\n")
            answered.flush()

        say("ready", schema="benchwright.phase/1", phases=list(self._work))
        for line in iter(told.readline, ""):
            try:
                asked = json.loads(line)
                name, parameters = str(asked["name"]), asked["parameters"]
            except (ValueError, KeyError, TypeError):
                print(f"bwphase: no phase: {line[:80]!r}", file=sys.stderr)
                return 2
            work = self._work.get(name)
            if work is None:
                say("failed", phase=name, reason="the program has no such phase", values={})
                continue
            try:
                with redirect_stdout(sys.stderr):
                    values = _checked(work(parameters))
            except Exception as error:  # noqa: BLE001 - whatever it is, the experiment has to hear of it
                say("failed", phase=name, reason=f"{type(error).__name__}: {error}", values={})
            else:
                say("done", phase=name, values=values)
        return 0


def _own_stdout() -> TextIO:
    """Return stdout for answers alone; what else is printed, by programs started here too, is stderr's."""
    sys.stdout.flush()
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _checked(values: Mapping[str, float] | None) -> dict[str, float]:
    """Return the numbers of an answer; raises ValueError for what is none of JSON's."""
    for name, value in (values or {}).items():
        if not math.isfinite(value):
            raise ValueError(f"{name}: must be a number, found {value}")
    return dict(values or {})
