# SPDX-License-Identifier: Apache-2.0
"""The command line `python -m reports dossier`: gather a dossier and write it."""

from __future__ import annotations

import argparse
import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from reports.dossier.deviations import LIMIT
from reports.dossier.errors import DossierError
from reports.dossier.gather import gather, named_file, waivers_of
from reports.dossier.model import Dossier, Request, to_dossier_bytes
from reports.durable import replace_file
from reports.run.benches import (
    BENCHES,
    TrustedSeals,
    default_list,
    read_benches,
    read_fingerprint,
)
from reports.run.folder import RunFolder, named_run

DATA_SUFFIX = ".json"
_REASONS_SHOWN = 8


def add_dossier(commands: Any) -> argparse.ArgumentParser:
    """Add the command and return its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "dossier",
        help="write the acceptance dossier of runs as PDF (exit 1: a run changed, 4: it did not end)",
    )
    parser.add_argument("run", type=named_run, nargs="+", help="a finalised run folder")
    parser.add_argument("--waivers", type=Path, metavar="FILE", help="decisions of persons, TOML")
    parser.add_argument(
        "--requirements",
        type=Path,
        metavar="FILE",
        action="append",
        default=[],
        help="requirements that hold before those that the runs kept; may be given again",
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="runs that the store knows (`python -m dashboards runs`): earlier ones are named",
    )
    parser.add_argument("--title")
    parser.add_argument("--operator", metavar="NAME", help="who ran the tests; else a field to be filled in")
    parser.add_argument(
        "--reviewer", metavar="NAME", help="who judges the dossier; else a field to be filled in"
    )
    parser.add_argument(
        "--date",
        type=_date,
        metavar="YYYY-MM-DD",
        help="of the dossier; else the last day of runs and waivers",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help=f"else ID.pdf here; FILE{DATA_SUFFIX}: its data alone"
    )
    add_seals(parser)
    parser.set_defaults(action=write)
    return parser


def add_seals(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which seals count."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--sealed-by",
        type=_fingerprint,
        metavar="FINGERPRINT",
        action="append",
        default=[],
        help="the runs have to be sealed by the bench whose `key` this is; may be given again",
    )
    group.add_argument(
        "--benches",
        type=Path,
        metavar="FILE",
        help=f"they have to be sealed by a bench of this list; else {BENCHES} beside the key of the seal",
    )


def seals_asked(options: argparse.Namespace) -> tuple[tuple[str, ...], Path | None]:
    """Return the fingerprints that were named, and the list of benches; None: neither named nor there."""
    named: tuple[str, ...] = tuple(options.sealed_by)
    return named, None if named else options.benches or default_list()


def trusted_seals(options: argparse.Namespace) -> TrustedSeals | None:
    """Return what seals are held against; None: nothing was named and no list is there.

    Raises:
        ReportError: The list cannot be read, or is wrong.
    """
    named, path = seals_asked(options)
    if path is None:
        return TrustedSeals(named) if named else None
    return TrustedSeals((), read_benches(named_file("benches", path).text.encode(), str(path)))


def _fingerprint(text: str) -> str:
    try:
        return read_fingerprint(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _date(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no date YYYY-MM-DD") from error


def write(options: argparse.Namespace) -> int:
    """Write the dossier that the command line asks for, and say what it says."""
    files = [named_file("requirements", path) for path in options.requirements]
    files += [named_file("waivers", options.waivers)] if options.waivers else []
    files += [named_file("history", options.history)] if options.history else []
    named, benches = seals_asked(options)
    files += [named_file("benches", benches)] if benches else []
    asked = Request(
        options.title, options.date, options.operator, options.reviewer, tuple(files), sealed_by=named
    )
    for problem in future_waivers(asked):
        raise DossierError(problem)
    dossier = gather(options.run, asked)
    output: Path = options.output or Path(f"{dossier.id}.pdf")
    replace_file(output, rendered(dossier, options.run, output))
    print(output)
    print(f"{dossier.id}: {dossier.conclusion.word.upper()}")
    for reason in dossier.conclusion.reasons[:_REASONS_SHOWN]:
        print(f"  {reason}")
    if len(dossier.conclusion.reasons) > _REASONS_SHOWN:
        print(f"  … {len(dossier.conclusion.reasons)} in all")
    if moved := sum(each.kind == LIMIT for each in dossier.deviations):
        print(f"  limits other than the published ones: {moved}; the dossier has both")
    return 0


def future_waivers(asked: Request) -> list[str]:
    """Return, in words, which waivers are dated after today: of that the data of a dossier know nothing.

    Raises:
        DossierError: The file of waivers is wrong.
    """
    return waivers_of(asked).future(datetime.datetime.now(datetime.UTC).date())


def rendered(dossier: Dossier, runs: list[Path], output: Path) -> bytes:
    """Return the bytes of a dossier's file: its data, or its pages with the data inside."""
    if output.suffix == DATA_SUFFIX:
        return to_dossier_bytes(dossier)
    page: Any = import_module("reports.dossier.page")  # loads what draws and prints: seconds
    data: bytes = page.write_dossier(dossier, {RunFolder.open(path).run_id: path for path in runs})
    return data
