# SPDX-License-Identifier: Apache-2.0
"""Parts of an acceptance, one after the other: each a run of its own in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, cast

from hw.errors import MeasurementError
from reports.errors import ReportError
from reports.run.folder import MANIFEST, MEASUREMENTS, SUMS, RunFolder
from reports.run.integrity import changed_files
from reports.run.outcome import FAIL, NO_CAPABILITY, NO_VERDICT, PASS, outcome_of
from resources.accept.folder import AcceptanceFolder
from resources.accept.plan_file import Part
from resources.accept.state import Standing, next_part

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDING_S = 120.0
"""What a part may take to close its bench once it is asked to end."""
LOOK_S = 0.1
RESULTS = (PASS, FAIL, NO_CAPABILITY, NO_VERDICT)
"""Exit codes of a run that has a result."""
Progress = Callable[[str], None]
Command = Callable[[Part, str, Path], Sequence[str]]
"""From a part, the profile and where run folders go to the command that makes its run."""


def qualify(part: Part, profile: str, runs: Path) -> Sequence[str]:
    """Return the command that makes a part's run; it does not outlive the controller."""
    options = part.arguments(profile)
    command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-m", "resources.qualify"]
    return [*command, "--results", str(runs), *options]


class Controller:
    """Goes on with an acceptance until all parts are settled, or it is asked to end."""

    def __init__(
        self,
        folder: AcceptanceFolder,
        say: Progress,
        undo: Callable[[Path], None],
        command: Command = qualify,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            folder: Held by the caller.
            say: Called with a line of text now and then.
            undo: Undoes what a killed run has left of a bench, from its file.
            command: Makes the run of a part.
        """
        self._folder, self._say, self._command, self._undo = folder, say, command, undo
        self._asked_to_end = ""

    def settle_open_part(self) -> None:
        """Find out what became of a part that had begun when the controller was killed.

        A run that had come to its end is its result, and never runs again. Else the part was broken off.

        Raises:
            BenchwrightError: What is left on its bench cannot be undone.
        """
        states = self._folder.states()
        for number, each in enumerate(states, 1):
            if each.standing is Standing.OPEN:
                self._undo(self._folder.plan.parts[number - 1].bench)
                self._end(number, each.attempts, None, "the controller was killed, or the power went")

    def run(self) -> None:
        """Run parts until all are settled.

        Raises:
            MeasurementError: It was asked to end: the acceptance waits to be resumed.
        """
        before = {number: signal.signal(number, self._end_asked) for number in _taken_signals()}
        try:
            while not self._asked_to_end and (number := next_part(self._folder.states())) is not None:
                self._run_part(self._folder.plan.parts[number - 1])
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._asked_to_end:
            raise MeasurementError(
                f"broken off by {self._asked_to_end}; `resume {self._folder.path}` goes on"
            )

    def _run_part(self, part: Part) -> None:
        attempt = self._folder.states()[part.number - 1].attempts + 1
        count = len(self._folder.plan.parts)
        again = f", attempt {attempt}" if attempt > 1 else ""
        self._say(f"part {part.number} of {count}{again}: {part.words}, at most {part.longest_min} min")
        self._folder.note("begin", part.number, attempt=attempt)
        command = self._command(part, self._folder.plan.profile, self._folder.runs)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        cause = self._wait(process, 60 * part.longest_min)
        code = process.wait()
        if not cause and code < 0:
            cause = f"its process was ended by signal {-code}"
        self._end(part.number, attempt, None if cause else code, cause)

    def _wait(self, process: subprocess.Popen[bytes], longest_s: float) -> str:
        """Wait for the end of a part; return why it was broken off, empty: it was not."""
        deadline_s = time.monotonic() + longest_s
        while process.poll() is None:
            late = f"it took longer than {longest_s / 60:g} min" if time.monotonic() > deadline_s else ""
            if self._asked_to_end or late:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(ENDING_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                return self._asked_to_end or late
            time.sleep(LOOK_S)
        return ""

    def _end(self, number: int, attempt: int, code: int | None, cause: str) -> None:
        """Write how a part has ended.

        Args:
            number: Of the part.
            attempt: Counted from 1.
            code: Exit code of its run; None: it was broken off.
            cause: Why; empty: it was not.
        """
        run = self._new_run()
        named = "" if run is None else str(run.relative_to(self._folder.path))
        outcome = "" if run is None or code not in (None, *RESULTS) else whole_outcome(run)
        if outcome:
            os.sync()  # the run before what says that it is there
            self._folder.note("end", number, attempt=attempt, outcome=outcome, run=named)
            self._say(f"part {number}: {outcome}: {named}")
            return
        if not cause:
            cause = f"its run ended with exit code {code} and no result"
        failing = run is not None and is_failing(run)
        self._folder.note("broken", number, attempt=attempt, cause=cause, failing=failing, run=named)
        self._say(f"part {number}: broken off: {cause}{'; values of it were failing' if failing else ''}")
        if run is not None and not (run / SUMS).exists():
            # Its page and sums: what it had measured belongs to the dossier.
            argv = [sys.executable, "-m", "reports", "finish", str(run)]
            subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def _new_run(self) -> Path | None:
        """Return the run folder that no event names yet; None: there is none."""
        named = {run for each in self._folder.states() for run in each.runs}
        runs = [
            each
            for each in sorted(self._folder.runs.iterdir())
            if (each / MANIFEST).is_file()
            and not each.is_symlink()
            and str(each.relative_to(self._folder.path)) not in named
        ]
        return runs[-1] if runs else None

    def _end_asked(self, number: int, _frame: FrameType | None) -> None:
        self._asked_to_end = self._asked_to_end or signal.Signals(number).name


def whole_outcome(run: Path) -> str:
    """Return how a run came out that came to its end; empty: it did not, or is not as it was sealed."""
    try:
        folder = RunFolder.open(run)
        manifest = folder.manifest
        is_whole = (
            manifest.end_utc is not None and manifest.finished_utc is None and manifest.interrupted is None
        )
        if not folder.finalised or not is_whole or changed_files(run):
            return ""
        return str(outcome_of(folder).outcome)
    except (ReportError, OSError):
        return ""


def is_failing(run: Path) -> bool:
    """Say whether a run has a value that fails, as far as its records can be read."""
    try:
        lines = (run / MEASUREMENTS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    for line in lines:
        try:
            record: Any = json.loads(line)
        except ValueError:
            continue  # torn when it broke
        if cast("dict[str, Any]", record).get("outcome") == "fail" if isinstance(record, dict) else False:
            return True
    return False


def _taken_signals() -> list[signal.Signals]:
    return [each for each in ENDING_SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
