# SPDX-License-Identifier: Apache-2.0
"""The command line `python -m reports patterns`: those of a site's own series, or of all that a run holds."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np

from reports.errors import ReportError
from reports.latencies import PolledAt, latencies_of_run
from reports.patterns.detect import detect
from reports.patterns.drift import Rates, known_rates, tested_for_drift
from reports.patterns.finding import Finding, Parameter
from reports.patterns.recorded import between_points
from reports.patterns.series import PERIODS_MIN, Series, read_csv, series_of
from reports.units import NS_PER_MS, NS_PER_S

PPM = 1_000_000
UNITS_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def add_patterns(commands: Any) -> None:
    """Add the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "patterns",
        help="find ramps, grids, gaps, outliers, changes of level and warm-up in a run, or in a CSV file",
        description=(
            "Of a run: loops and their parts, legs, clock errors, in ms. Of a file the first two columns are"
            " times in s and values; empty and nan are missing. Each finding has its parameters with"
            " intervals of 95 %, and how often noise alone shows as much."
        ),
    )
    parser.add_argument("file", type=Path, nargs="?", metavar="RUN|FILE", help="a run folder, or a CSV file")
    parser.add_argument(
        "--between",
        nargs=2,
        metavar="FILE:POINT",
        help="instead: two recorded points of programs of one machine, such as source.bwevents:ring.write"
        " sink.bwevents:ring.read; what lies between is searched in ms",
    )
    parser.add_argument(
        "--only", metavar="WORDS", default="", help="of a run: series whose place or name has these words"
    )
    parser.add_argument("--unit", choices=tuple(UNITS_S), help="of a file's values (default ms)")
    parser.add_argument(
        "--grid", type=float, metavar="WIDTH", help="of a poll, in that unit: are ramps as high?"
    )
    parser.add_argument(
        "--rate-ppm",
        type=float,
        metavar="PPM",
        help="of the source's clock less the poll's: are ramps as steep?",
    )
    parser.set_defaults(action=_patterns)


def _patterns(options: argparse.Namespace) -> int:
    if options.grid is not None and not 0 < options.grid < math.inf:
        raise ReportError(f"--grid {options.grid:g}: must be a number above 0")
    if options.rate_ppm is not None and not abs(options.rate_ppm) < PPM:
        raise ReportError(f"--rate-ppm {options.rate_ppm:g}: must be between -{PPM} and {PPM}")
    if (options.file is None) == (options.between is None):
        raise ReportError("needs a run folder, a CSV file, or two recorded points with --between")
    is_run = options.between is None and options.file.is_dir()
    if options.only and not is_run:
        raise ReportError(f"--only {options.only}: of a run alone")
    if options.unit and (is_run or options.between is not None):
        raise ReportError(f"--unit {options.unit}: of a CSV file alone; here it is ms")
    options.unit = options.unit or "ms"
    if options.between is not None:
        return _of_points(options)
    if is_run:
        return _of_run(options)
    try:
        series = series_of(*read_csv(options.file))
    except ReportError as error:
        text = str(error)
        where = str(options.file)
        raise ReportError(text if where in text else f"{where}: {text}") from error
    _say_all(str(options.file), series, options)
    return 0


def _of_points(options: argparse.Namespace) -> int:
    """Say what messages between two recorded points show, in ms."""
    options.unit = "ms"
    what = " to ".join(options.between)
    at_s, took_s = between_points(*options.between)
    try:
        series = series_of(at_s, took_s * (NS_PER_S / NS_PER_MS))
    except ReportError as error:
        raise ReportError(f"{what}: {error}") from error
    _say_all(what, series, options)
    return 0


def _of_run(options: argparse.Namespace) -> int:
    """Say what each series of a run shows, in ms; one that is too short is said to be."""
    if not (options.file / "run.json").exists():
        raise ReportError(f"{options.file}: no run.json: not a run folder")
    series, problems = latencies_of_run(options.file)
    for problem in problems:
        print(problem)
    chosen = [each for each in series if options.only in f"{each.place}: {each.name}"]
    if not chosen:
        among = f" of {len(series)} has {options.only!r}" if series else " of loops, legs or clocks"
        raise ReportError(f"{options.file}: no series{among}")
    for each in chosen:
        what = f"{each.place}: {each.name}"
        try:
            at_s = (each.at_ns - each.at_ns[:1]) / NS_PER_S
            _say_all(what, series_of(at_s, each.value_ns / NS_PER_MS), options, each.polled)
        except ReportError as error:
            print(f"{what}: {error}")
    return 0


def _say_all(what: str, series: Series, options: argparse.Namespace, polled: PolledAt | None = None) -> None:
    found = detect(series)
    rates = Rates(options.grid, options.rate_ppm, UNITS_S[options.unit])
    if polled is not None and options.grid is None and options.rate_ppm is None:
        rates = known_rates(polled)
    longest_s = series.length_s / PERIODS_MIN
    print(
        f"{what}: {len(series.values)} values, {series.length_s:.4g} s;"
        f" periods up to {longest_s:.3g} s: one of P takes {PERIODS_MIN} P"
    )
    median, high, most = (float(np.quantile(series.values, share)) for share in (0.5, 0.99, 1.0))
    print(f"  median {median:.4g} {options.unit}, p99 {high:.4g}, at most {most:.4g}")
    for remark in found.remarks:
        print(f"  {remark}")
    for each in found.findings:
        _say(tested_for_drift(each, rates), options.unit)
    if not found.findings:
        print("  nothing but noise")


def _say(finding: Finding, unit: str) -> None:
    words = ", ".join(_words(name, each, unit) for name, each in finding.parameters.items())
    print(f"  {finding.kind:<17} {words}; false alarms {_chance(finding.false_alarms)}")
    if finding.says:
        print(f"  {'':<17} {finding.says}")


def _words(name: str, each: Parameter, unit: str) -> str:
    return f"{name} {each.value:.5g} ({each.low:.5g} .. {each.high:.5g}) {each.unit.replace('value', unit)}"


def _chance(chance: float) -> str:
    return f"{chance:.1g}" if chance > 1e-6 else "below 1e-6"
