# SPDX-License-Identifier: Apache-2.0
"""The command line `python -m reports timeline`: what a run holds of events, exported or processed."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.durable import draft_of, write_error
from reports.errors import ReportError
from reports.run.folder import MANIFEST, named_run
from reports.timeline.export_ctf import write_ctf
from reports.timeline.export_parquet import require_pyarrow, write_parquet
from reports.timeline.export_perfetto import write_perfetto
from reports.timeline.placed_events import Timeline
from reports.timeline.processing.command import process_run, recompute_run
from reports.timelines import timelines_of_run

Writer = Callable[[Timeline, Path], None]
WRITERS: Mapping[str, Writer] = {"ctf": write_ctf, "perfetto": write_perfetto, "parquet": write_parquet}


def add_timeline(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "timeline",
        help="write the events of a run for other tools, or what a graph of filters makes of them",
        description=(
            "Messages of replays that were over their budgets or close to them, and kernel recordings:"
            " exported, a folder each below PATH, or processed by a graph of filters. Without either the"
            " graphs that the run holds are computed again. Exit 1: other bytes than before; 3: what the"
            " format needs is not installed."
        ),
    )
    parser.add_argument("run", type=named_run)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--export", choices=tuple(WRITERS), help="the format; needs --output")
    what.add_argument(
        "--process",
        type=Path,
        metavar="FILE",
        help="a graph of filters, NAME.toml; its folder of filters is code that runs",
    )
    what.add_argument(
        "--recompute",
        action="store_true",
        help="compute the graphs that the run holds again",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="PATH",
        help="a folder: a new one, or empty; of a graph in place of the run's evidence/timeline/NAME",
    )
    parser.set_defaults(action=_timeline)


def _timeline(options: argparse.Namespace) -> int:
    if options.export is not None:
        if options.output is None:
            raise ReportError("timeline: --export needs --output PATH")
        return _export(options)
    if options.process is not None:
        return process_run(options.run, options.process, options.output)
    if options.output is not None:
        raise ReportError("timeline: --output goes with --export or --process")
    return recompute_run(options.run)


def _export(options: argparse.Namespace) -> int:
    run: Path = options.run
    output: Path = options.output
    if not (run / MANIFEST).exists():
        raise ReportError(f"{run}: no run folder: it has no {MANIFEST}")
    if output.resolve().is_relative_to(run.resolve()):
        raise ReportError(f"{output}: lies in the run folder, whose files are listed and summed")
    if os.path.lexists(output) and (not output.is_dir() or any(output.iterdir())):
        raise ReportError(f"{output}: exists and is no empty folder")
    if options.export == "parquet":
        require_pyarrow()
    timelines, problems = timelines_of_run(run)
    for problem in problems:
        print(f"reports: not read: {problem}", file=sys.stderr)
    with_events = [each for each in timelines if len(each)]
    for each in timelines:
        _say(each)
    if not with_events:
        raise ReportError(f"{run}: no event of it has a place: there is nothing to export")
    export(with_events, WRITERS[options.export], output)
    print(output)
    return 0


def export(timelines: Sequence[Timeline], write: Writer, output: Path) -> None:
    """Write timelines into folders below a new one, which has its name only when all of it is written.

    Args:
        timelines: Each goes to its place below the folder.
        write: Of the format.
        output: The folder; it must not exist, or be empty.

    Raises:
        ReportError: It cannot be written, or a timeline not be exported.
    """
    draft = draft_of(output.absolute())
    try:
        draft.mkdir(parents=True)
        for each in timelines:
            write(each, draft / each.place)
        draft.replace(output)
    except OSError as error:
        raise write_error(output, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _say(timeline: Timeline) -> None:
    flows = f", {len(timeline.flows)} flows" if len(timeline.flows) else ""
    found = f"{len(timeline)} events on {len(timeline.tracks)} lanes{flows}"
    print(f"{timeline.place}: {found}; by {timeline.by}")
    for reason, count in timeline.left_out.items():
        print(f"  left out: {count} events: {reason}")
