# SPDX-License-Identifier: Apache-2.0
"""The command line `python -m dashboards runs`: which runs the store knows, as a dossier reads it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from dashboards.bench_key import changes
from dashboards.points import utc_text
from dashboards.store import Store
from dashboards.store.connection import guarded, stored_object
from reports.dossier.earlier import SCHEMA
from reports.durable import replace_file

_RUNS = "SELECT number, run_id, time_ns, bench, outcome, facts FROM run WHERE source = 'run' ORDER BY number"
_TARGETS = (
    "SELECT DISTINCT json_extract(tags, '$.target') FROM point JOIN series ON series.id = series"
    " WHERE run = ? AND json_extract(tags, '$.target') IS NOT NULL ORDER BY 1"
)


def add_runs(commands: Any) -> argparse.ArgumentParser:
    """Add the command and return its parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "runs", help="write which runs are stored, for `python -m reports dossier --history`"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", required=True)
    parser.set_defaults(action=_write)
    return parser


def _write(options: argparse.Namespace) -> int:
    with Store(options.store, create=False) as store:
        document = {"schema": SCHEMA, "runs": stored_runs(store)}
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    replace_file(options.output, text.encode())
    print(options.output)
    return 0


def stored_runs(store: Store) -> list[dict[str, Any]]:
    """Return the runs in the order in which they were stored, each with what had changed for its targets.

    A fact is held against the last run that has it; that of another target is no change. Raises StoreError.
    """
    known: dict[str, dict[str, str]] = {}
    found: list[dict[str, Any]] = []
    with guarded(store.path):
        for number, run_id, time_ns, bench, outcome, text in store.connection.execute(_RUNS).fetchall():
            facts: dict[str, str] = stored_object(store.path, text)
            before = known.setdefault(bench, {})
            names = [str(row[0]) for row in store.connection.execute(_TARGETS, (number,))]
            targets = {
                name: "; ".join(
                    changes(before, {k: v for k, v in facts.items() if k.startswith(("host.", f"{name}."))})
                )
                for name in names
            }
            before |= facts
            start_utc = utc_text(time_ns)
            found.append(
                {
                    "run_id": run_id,
                    "start_utc": start_utc,
                    "bench": bench,
                    "outcome": outcome,
                    "targets": targets,
                }
            )
    return found
