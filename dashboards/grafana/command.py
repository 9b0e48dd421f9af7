# SPDX-License-Identifier: Apache-2.0
"""`python -m dashboards grafana`: write the files that Grafana reads, or compare those that are mounted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dashboards.grafana.alerts import NO_RUN_DAYS
from dashboards.grafana.files import OUTPUT, differences, files, write
from hw.errors import ConfigError

SAME, DIFFERENT = 0, 1


def add_grafana(commands: Any) -> None:
    """Add the command to those of `python -m dashboards`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "grafana", help="write dashboards, data source and alert rules for Grafana"
    )
    parser.add_argument("--check", action="store_true", help="compare with the files in DIR; exit 1: differs")
    parser.add_argument(
        "--output", type=Path, default=OUTPUT, metavar="DIR", help="folder (default: results/grafana)"
    )
    parser.add_argument(
        "--no-run-days",
        type=int,
        default=NO_RUN_DAYS,
        metavar="N",
        help=f"alert after so many days without a run (default {NO_RUN_DAYS})",
    )
    parser.set_defaults(action=run)


def run(options: argparse.Namespace) -> int:
    """Write or check the files; return the exit code."""
    if options.no_run_days < 1:
        raise ConfigError("grafana: need --no-run-days >= 1")
    written = files(options.no_run_days)
    if not options.check:
        write(options.output, written)
        print(f"{len(written)} files in {options.output}")
        return SAME
    found = differences(options.output, written)
    for line in found:
        print(line)
    return DIFFERENT if found else SAME
