# SPDX-License-Identifier: Apache-2.0
"""The command line `python -m reports why`: what happened to messages that were over their budgets."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reports.daq_replay.excerpts import EXCERPTS_MAX, ReplayExcerpts, excerpts_of_run, narrated
from reports.errors import ReportError
from reports.run.folder import MANIFEST, named_run


def add_why(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "why",
        help="tell what happened around messages that were over their budgets",
        description=(
            "The worst message of each stream of each replay, from 50 ms before it was due to 5 ms after it"
            f" was read, in ms from when it was due; at most {EXCERPTS_MAX}, the worst."
        ),
    )
    parser.add_argument("run", type=named_run)
    parser.add_argument("--stream", type=int, metavar="ID", help="this stream alone, several of its messages")
    parser.set_defaults(action=_why)


def _why(options: argparse.Namespace) -> int:
    run: Path = options.run
    if not (run / MANIFEST).exists():
        raise ReportError(f"{run}: no run folder: it has no {MANIFEST}")
    found = excerpts_of_run(run, options.stream)
    if not found:
        print("no replay of a pattern is in this run")
    streams = frozenset[int]().union(*(replay.streams for replay in found))
    if options.stream is not None and streams and options.stream not in streams:
        raise ReportError(
            f"--stream {options.stream}: no replay of this run has it; there are {_numbers(streams)}"
        )
    for replay in found:
        print(f"{replay.place}: {_counted(replay)}")
        for problem in replay.problems:
            print(f"  not known: {problem}")
        for excerpt in replay.worst:
            print()
            print("\n".join(narrated(excerpt)))
        if replay.worst:
            print()
    return 0


def _counted(replay: ReplayExcerpts) -> str:
    """Return how many messages were late, in words."""
    if replay.late is None:
        return "how many messages were over the budget is not known"
    late = sum(replay.late.values())
    streams = "1 stream" if len(replay.late) == 1 else f"{len(replay.late)} streams"
    shown = f" of {streams}; {len(replay.worst)} shown" if late else ""
    return f"{late} message{'s' * (late != 1)} over the budget{shown}"


def _numbers(streams: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(streams)))
