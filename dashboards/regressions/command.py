# SPDX-License-Identifier: Apache-2.0
"""`python -m dashboards advise [RUN]`: what the history says of a run, into its folder and its page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from dashboards.run_import import import_path
from dashboards.store import Store
from hw.errors import BenchError, ConfigError
from reports.errors import RecordError, ReportError
from reports.history.advice import ADVICE, Advice
from reports.run.folder import RunFolder, newer_words

LATEST = Path("results/latest")


def add_command(commands: Any) -> argparse.ArgumentParser:
    """Add the command to a command line, and return it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "advise", help="put what the history says of a run into its folder and page"
    )
    parser.add_argument(
        "run", nargs="?", type=Path, default=LATEST, metavar="RUN", help=f"run folder (default {LATEST})"
    )
    parser.add_argument(
        "--again", action="store_true", help="ask once more, where the folder has advice already"
    )
    parser.add_argument(
        "--repository", type=Path, default=Path(), help="Git repository of the runs' commits (default: here)"
    )
    parser.set_defaults(action=_advise)
    return parser


def _advise(options: argparse.Namespace) -> int:
    from dashboards.regressions.run_advice import advise_run  # numpy is nothing for the other commands

    path: Path = options.run
    try:
        folder = RunFolder.open(path)
        for line in newer_words(path):
            print(f"dashboards: {line}", file=sys.stderr)
    except ReportError as error:
        raise ConfigError(str(error)) from error
    with Store(options.store) as store:
        if store.branch_of_run(folder.run_id) is None:
            import_path(store, folder.path, None)
        advice = advise_run(store, folder.run_id, options.repository)
    try:
        print(put_advice(folder, advice, again=options.again))
    except RecordError as error:
        raise ConfigError(str(error)) from error
    except ReportError as error:
        raise BenchError(str(error)) from error
    return 0


def put_advice(folder: RunFolder, advice: Advice, *, again: bool = False) -> str:
    """Put advice into a run folder and its page; return a line that says what is there now.

    What a finalised folder has stays as it is unless `again` is given.

    Raises:
        ReportError: Something else of the folder has changed since it was finalised, or it cannot be written.
    """
    from reports.page.renewal import holds, renew  # matplotlib takes a second

    if not again and holds(folder.path, ADVICE):
        return f"{folder.run_id}: has its advice already; --again asks once more"
    renew(folder.path, {ADVICE: advice.to_bytes()})
    return f"{folder.run_id}: {summary(advice)}"


def summary(advice: Advice) -> str:
    """Return the advice in one line."""
    count = len(advice.new_patterns or ())
    words = f"; {count} new {'pattern' if count == 1 else 'patterns'}" if count else ""
    return f"{_of_values(advice)}{words}"


def _of_values(advice: Advice) -> str:
    if not advice.series:
        return "no value that is followed over time"
    if not advice.series_ready:
        least, most = advice.history_least, advice.history_most
        runs = f"{least}" if least == most else f"{least} to {most}"
        return f"{runs} of {advice.runs_needed} earlier runs, no statement yet"
    words: list[str] = []
    kinds = [change.kind for change in advice.changes]
    if kinds or advice.tells_changes:
        words.append(f"{kinds.count('regression')} regressions, {kinds.count('improvement')} improvements")
    elif advice.branch == advice.compared_with:
        words.append(
            f"{advice.history_most} of {advice.change_needs} earlier runs, no statement on changes yet"
        )
    words += [f"{len(advice.beyond)} values beyond their baseline ({advice.beyond_by_chance:.2g} by chance)"]
    return f"{'; '.join(words)}; {advice.series_ready} of {advice.series} series have enough history"
