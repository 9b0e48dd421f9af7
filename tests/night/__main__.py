# SPDX-License-Identifier: Apache-2.0
"""`make nightly`: the night shift, part by part; what is done stays done.

    python -m tests.night [--fuzz-s S] [--bench FILE] [--again] [--hours H] [--list] [PART...]

Each part's result goes to results/night/STATE/PART.json, and after every part summary.json and summary.html
beside it are written anew. A part that has a result for this state of the tree is not run again.

With --hours a night leaves to the next what does not fit, and begins with what the last one has left.

Exit codes, of the parts that are asked for: 0 each passed, was skipped or is left to the next night; 1 one
has failed; 2 bad input; 3 no work tree of git; 4 none has failed, but one is inconclusive, or the night was
broken off or had time for none; 5 a result cannot be written, or another night runs in this tree.
"""

from __future__ import annotations

import argparse
import fcntl
import math
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hw.errors import BenchError, BenchwrightError
from tests.night.fuzz import seconds_of
from tests.night.hours import fits, hours_of, in_turn, leave
from tests.night.page import render
from tests.night.parts import ROOT, Part, parts, selected
from tests.night.process import GRACE_S, Interrupts
from tests.night.result import SUMMARY, all_results, write_json, write_text
from tests.night.shift import Night, result_line, run_part
from tests.night.state import state_of
from tests.night.summary import Summary, summarise

NIGHTS = Path("results/night")
PAGE = "summary.html"
LIST = "list"
VIRTUAL_BENCH = "hw/benches/virtual.yaml"
Table = Callable[[int, str], Sequence[Part]]


def main(
    arguments: list[str] | None = None, table: Table = parts, root: Path = ROOT, grace_s: float = GRACE_S
) -> int:
    """Run what is asked for; return the exit code.

    Args:
        arguments: Of the command line.
        table: Returns all parts.
        root: The source tree.
        grace_s: For a part that is ended.
    """
    options = _parser().parse_args(arguments)
    words = [word for word in options.parts if word != LIST]
    try:
        there = table(seconds_of(options.fuzz_s), options.bench)
        wanted = selected(there, words)
        hours = hours_of(options.hours)
        if options.list or LIST in options.parts:
            _print_list(wanted)
            return 0
        state = state_of(root)
        folder = root / NIGHTS / state.folder_name
        with Interrupts() as interrupts, _alone(root / NIGHTS):
            folder.mkdir(parents=True, exist_ok=True)
            if hours < math.inf:
                wanted = in_turn(root / NIGHTS, wanted)
            ends_s = time.monotonic() + 3600 * hours
            night = Night(root, folder, state, again=options.again, grace_s=grace_s, ends_s=ends_s)
            summary = run_night(night, there, wanted, interrupts)
    except BenchwrightError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    _print_end(summary, folder)
    return summary.exit_code


def run_night(night: Night, table: Sequence[Part], wanted: Sequence[Part], interrupts: Interrupts) -> Summary:
    """Run the parts, and write the summary after each.

    Args:
        night: Where, and of which state.
        table: All parts: what has a result already, of whatever state, stands in the summary, too.
        wanted: Those to run.
        interrupts: One ends the night.

    Raises:
        BenchwrightError: A result cannot be written.
    """
    interrupted, later, left, first = "", list[str](), [part.name for part in wanted], ""
    earlier = all_results(night.folder.parent)
    for part in wanted:
        kept = None if night.again else night.kept(part)
        if kept is not None:
            print(f"night     {result_line(part.name, kept)} (kept)", flush=True)
            left.remove(part.name)
            continue
        if state_of(night.root) != night.state:
            print("night     broken off: the source tree has changed", file=sys.stderr)
            break
        first = first or part.name
        if not fits(part, night.left_s, earlier):
            later.append(part.name)
            continue
        if not interrupts.count:
            print(f"night     {part.name} ...", flush=True)
            result = run_part(night, part, interrupts)
            if result is not None:
                print(f"night     {result_line(part.name, result)}", flush=True)
                _write(night, table, wanted)
                left.remove(part.name)
                continue
            if not interrupts.count:
                later.append(part.name)
                continue
        interrupted = part.name
        print(f"night     interrupted in {part.name}", file=sys.stderr)
        break
    if night.left_s < math.inf:
        leave(night.folder.parent, left, first if first in later else "")
    return _write(night, table, wanted, interrupted, later)


def _write(
    night: Night,
    table: Sequence[Part],
    wanted: Sequence[Part],
    interrupted: str = "",
    later: Sequence[str] = (),
) -> Summary:
    """Write what there is to say so far, as JSON and as a page."""
    commands = {part.name: part.commands for part in table}
    asked = [part.name for part in wanted]
    results = all_results(night.folder.parent)
    summary = summarise(night.state, commands, asked, results, interrupted=interrupted, later=later)
    write_json(night.folder / SUMMARY, summary.to_json())
    write_text(night.folder / PAGE, render(summary))
    return summary


@contextmanager
def _alone(nights: Path) -> Generator[None]:
    """Hold the lock of a tree's nights.

    Raises:
        BenchError: Somebody else holds it.
    """
    nights.mkdir(parents=True, exist_ok=True)
    with (nights / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BenchError(f"night: another night runs in this tree ({nights})") from error
        yield


def _print_list(listed: Sequence[Part]) -> None:
    for part in listed:
        print(f"{part.name:33} {part.about} (at most {part.limit_s / 3600:.3g} h)")


def _print_end(summary: Summary, folder: Path) -> None:
    for row in summary.rows:
        for name in row.result.failures:
            print(f"night     {row.result.verdict}: {row.result.part}: {name}", file=sys.stderr)
    for row in summary.slower():
        print(f"night     slower: {row.slower_text()}")
    if summary.not_run:
        print(f"night     not run: {' '.join(summary.not_run)}", file=sys.stderr)
    if summary.later:
        print(f"night     left to the next night: {' '.join(summary.later)}")
    print(f"night     exit code {summary.exit_code}; {folder / PAGE}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.night", description="Run what the gate leaves out, part by part."
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"name or pattern; all without one; `{LIST}` lists them"
    )
    parser.add_argument("--fuzz-s", default="600", metavar="S", help="for each fuzz target and campaign")
    parser.add_argument("--bench", default=VIRTUAL_BENCH, metavar="FILE", help="bench of the qualifications")
    parser.add_argument("--hours", metavar="H", help="end after so many hours, go on there next night")
    parser.add_argument("--again", action="store_true", help="run also what has a result for this state")
    parser.add_argument("--list", action="store_true", help="print the parts and what each does")
    return parser


if __name__ == "__main__":
    sys.exit(main())
