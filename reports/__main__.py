# SPDX-License-Identifier: Apache-2.0
"""`python -m reports`: render, verify and show run folders.

Exit codes: 0 done; 1 `verify` found a difference, `standstill` another reason; 2 bad input (one line on
stderr).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from reports.durable import replace_file
from reports.errors import ReportError
from reports.integrity import SUMS, changed_files, read_sums, sha256_file, write_sums
from reports.page import PAGE, render, write_page
from reports.page_model import gather
from reports.record import measurement_schema
from reports.run_folder import RunFolder
from reports.standstill import objections
from reports.units import format_value

SCHEMA_FILE = Path(__file__).with_name("measurement.schema.json")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m reports", description="Reports made from run folders.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("render", help="write qualification.html from the run folder alone")
    one.add_argument("run", type=Path)
    one.add_argument("--output", type=Path, help="write the page here instead of into the run folder")
    one.set_defaults(action=_render)
    for name, action, text in (
        ("verify", _verify, "find any changed byte of a finalised run folder"),
        ("show", _show, "print the verdict and what did not pass"),
        (
            "standstill",
            _standstill,
            "tell whether only the standstill of a simulated bench's machine left no verdict",
        ),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("run", type=Path)
        command.set_defaults(action=action)
    schema = commands.add_parser("schema", help="write measurement.schema.json from the dataclasses")
    schema.set_defaults(action=_schema)
    options = parser.parse_args(arguments)
    try:
        return int(options.action(options))
    except ReportError as error:
        print(f"reports: {error}", file=sys.stderr)
        return 2


def _render(options: argparse.Namespace) -> int:
    """Render the page; of a finalised run only the page's own line of the sums is renewed."""
    run: Path = options.run
    if options.output is not None:
        replace_file(options.output, render(run).encode())
        print(options.output)
        return 0
    if not RunFolder.open(run).finalised:
        print(write_page(run))
        return 0
    changed = [problem for problem in changed_files(run) if not problem.startswith(f"{PAGE}:")]
    if changed:
        raise ReportError(f"{changed[0]} since the run was finalised; --output renders it elsewhere")
    print(write_page(run))
    if read_sums(run).get(PAGE) != sha256_file(run / PAGE):
        write_sums(run)
    return 0


def _verify(options: argparse.Namespace) -> int:
    run: Path = options.run
    problems = changed_files(run)
    if not problems:
        gather(run)
        print(f"{run}: {len(read_sums(run))} files unchanged; {SUMS} is {sha256_file(run / SUMS)}")
        return 0
    for problem in problems:
        print(problem)
    return 1


def _show(options: argparse.Namespace) -> int:
    report = gather(options.run)
    manifest = report.manifest
    simulated = "  SIMULATED" if report.simulated else ""
    print(f"{report.outcome.upper()}{simulated}  {manifest.run_id}  {manifest.bench}  {manifest.profile}")
    print("  " + ", ".join(f"{count} {outcome}" for outcome, count in report.counts.items() if count))
    if report.worst is not None:
        r = report.worst
        what = f"{r.requirement} {r.subject.stream or r.quantity}"
        print(f"  worst margin {format_value(r.margin, r.unit)}: {what}")
    for record in report.records:
        if record.outcome != "pass":
            print(f"  {record.outcome:<12} {record.requirement}  {record.reason}")
    for problem in report.problems:
        print(f"  problem      {problem}")
    return 0


def _standstill(options: argparse.Namespace) -> int:
    found = objections(options.run)
    for line in found:
        print(line)
    if not found:
        print(f"{options.run}: nothing but the standstill of its machine kept this run from a verdict")
    return 1 if found else 0


def _schema(_options: argparse.Namespace) -> int:
    text = json.dumps(measurement_schema(), indent=1) + "\n"
    replace_file(SCHEMA_FILE, text.encode())
    print(SCHEMA_FILE.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
