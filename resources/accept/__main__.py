# SPDX-License-Identifier: Apache-2.0
"""An acceptance over hours or days: `python -m resources.accept VERB …`.

check PLAN              read the plan and all that it names; nothing is started
plan PLAN               list the parts in their order, and the longest time
run PLAN                seal the plan, and run its parts, each a run of its own, into a new folder
resume FOLDER           go on after Ctrl-C, a kill, a reboot or a power cut
status FOLDER           say how each part stands, and with what the dossier is made
waive FOLDER PART       let a part run again whose values were failing when it was broken off

A part with a result never runs again. Exit codes: 0 all parts passed; 1 one failed; 2 bad input, or what is
measured is not what it was; 4 a part has no verdict, or is still to run; 5 somebody else goes on with it, or
what was left cannot be undone. See docs/acceptance.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from hw.errors import BenchError, BenchwrightError, ConfigError
from reports.errors import ReportError
from resources.accept.folder import AcceptanceFolder
from resources.accept.plan_file import read_plan
from resources.accept.run import Controller
from resources.accept.state import exit_code
from resources.qualify import say_on

RESULTS = Path("results/acceptance")


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked for; the exit code."""
    given = _parser().parse_args(arguments)
    try:
        return _do(given)
    except BenchwrightError as error:
        print(f"accept: {error}", file=sys.stderr)
        return error.exit_code
    except (ReportError, OSError) as error:
        print(f"accept: {error}", file=sys.stderr)
        return BenchError.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m resources.accept",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, about in (
        ("check", "read the plan and all that it names; nothing is started"),
        ("plan", "list the parts in their order, and the longest time"),
        ("run", "seal the plan, and run its parts into a new folder"),
    ):
        verb = verbs.add_parser(name, help=about, description=about)
        verb.add_argument("plan", type=Path, metavar="PLAN", help="the plan, TOML")
        if name == "run":
            text = f"new folder (default: {RESULTS}/NAME-DATE)"
            verb.add_argument("--output", type=Path, metavar="FOLDER", help=text)
    for name, about in (
        ("resume", "go on where it was broken off"),
        ("status", "say how each part stands; nothing is started"),
        ("waive", "let a part run again whose values were failing when it was broken off"),
    ):
        verb = verbs.add_parser(name, help=about, description=about)
        verb.add_argument("folder", type=Path, metavar="FOLDER", help="that `run` has made")
        if name == "waive":
            verb.add_argument("part", type=int, metavar="PART", help="its number")
            verb.add_argument("--reason", required=True, help="why what was measured decides nothing")
            verb.add_argument("--approver", required=True, help="who answers for it, by name")
    return parser


def _do(given: argparse.Namespace) -> int:
    if given.verb in ("check", "plan"):
        plan = read_plan(given.plan)
        print(plan.listed() if given.verb == "plan" else f"{given.plan}: {len(plan.parts)} parts")
        return 0
    if given.verb == "run":
        stamp = time.strftime("%Y%m%d-%H%M%S")
        output = given.output or RESULTS / f"{read_plan(given.plan).name}-{stamp}"
        folder = AcceptanceFolder.create(output, given.plan)
        say_on(sys.stdout, folder.plan.listed())
        return go_on(Controller(folder, _say, _undo), folder)
    folder = AcceptanceFolder.reopen(given.folder)
    if given.verb == "resume":
        return go_on(Controller(folder, _say, _undo), folder)
    if given.verb == "waive":
        waive(folder, given.part, given.reason, given.approver)
    return tell(folder)


def go_on(controller: Controller, folder: AcceptanceFolder) -> int:
    """Run what is not settled, and say how all stands; the exit code."""
    with folder.held():
        controller.settle_open_part()
        controller.run()
    return tell(folder)


def waive(folder: AcceptanceFolder, part: int, reason: str, approver: str) -> None:
    """Note that a named person lets a part run again whose values were failing when it was broken off.

    Raises:
        ConfigError: There is no such part, it needs no waiver, or nobody is named.
    """
    if not 1 <= part <= len(folder.plan.parts):
        raise ConfigError(f"PART: must be 1..{len(folder.plan.parts)}, found {part}")
    for option, text in (("--reason", reason), ("--approver", approver)):
        if not any(each.isalnum() for each in text):
            raise ConfigError(f"{option}: must say something, found {text!r}")
    state = folder.states()[part - 1]
    if state.standing != "failed, broken off":
        raise ConfigError(f"PART: {part} is {state.words}; only a part that failed when it broke is waived")
    with folder.held():
        folder.note("waive", part, reason=reason, approver=approver)


def tell(folder: AcceptanceFolder) -> int:
    """Say how each part stands; the exit code of the whole."""
    states = folder.states()
    for part, state in zip(folder.plan.parts, states, strict=True):
        say_on(sys.stdout, f"{part.number:4}  {state.words:12}  {part.words}  {state.run}".rstrip())
        for cause in state.breaks:
            say_on(sys.stdout, f"      broken off: {cause}")
    settled = sum(each.is_settled for each in states)
    code = exit_code(states)
    words = {0: "PASS", 1: "FAIL"}.get(code, "NO VERDICT")
    say_on(sys.stdout, f"{folder.plan.name}: {words}: {settled} of {len(states)} parts are settled")
    runs = [str(folder.path / run) for each in states for run in each.runs]
    if runs:
        say_on(sys.stdout, f'dossier: make dossier RUN="{" ".join(runs)}"')
    return code


def _undo(bench: Path) -> None:
    from hw.session import open_bench  # what only looks at an acceptance does without

    with open_bench(bench):
        pass  # to open it is to undo what a killed run has left


def _say(line: str) -> None:
    say_on(sys.stdout, f"{time.strftime('%H:%M:%S')} {line}")


if __name__ == "__main__":
    sys.exit(main())
