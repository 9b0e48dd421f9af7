# SPDX-License-Identifier: Apache-2.0
"""`python -m dashboards trends`: the page of trends."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from dashboards.branch import CLASSES
from dashboards.store import DEFAULT_STORE, Store
from dashboards.trends.page import DEFAULT_PAGE, write_page
from dashboards.trends.selection import Selection, since_text


def add_trends(commands: Any) -> None:
    """Add the command to those of `python -m dashboards`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "trends", help="make one HTML page of everything in the store, which needs no server"
    )
    parser.add_argument(
        "--store", type=Path, default=DEFAULT_STORE, help=f"the store's file (default {DEFAULT_STORE})"
    )
    parser.add_argument(
        "--output", type=Path, default=DEFAULT_PAGE, metavar="FILE", help=f"page (default {DEFAULT_PAGE})"
    )
    parser.add_argument("--bench", help="only runs of this bench")
    parser.add_argument("--target", help="only series of this target, and runs that have some")
    parser.add_argument("--profile", help="only runs of this profile")
    parser.add_argument("--branch", choices=CLASSES, help="only runs of this class of branch")
    parser.add_argument("--since", metavar="TIME", help="only runs since then: 2026-01-31 or with T12:00:00Z")
    parser.set_defaults(action=_trends)


def _trends(options: argparse.Namespace) -> int:
    selection = Selection(
        bench=options.bench,
        target=options.target,
        profile=options.profile,
        branch=options.branch,
        since_ns=None if options.since is None else since_text(options.since),
    )
    with Store(options.store, create=False) as store:
        runs = write_page(store, selection, options.output)
    size_mb = options.output.stat().st_size / 1e6
    print(f"{options.output}: {runs} run{'' if runs == 1 else 's'}, {size_mb:.1f} MB")
    return 0
