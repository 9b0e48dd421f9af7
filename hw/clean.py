# SPDX-License-Identifier: Apache-2.0
"""`python -m hw clean [BENCH]`: undo now what the next start of the bench would undo first.

It also removes the temporary folders that killed runs, of whatever bench, have left.
"""

from __future__ import annotations

import argparse
from pathlib import Path

DEFAULT_BENCH = Path("hw/benches/virtual.yaml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the subcommand."""
    parser.add_argument(
        "bench", nargs="?", type=Path, default=DEFAULT_BENCH, help=f"bench file (default: {DEFAULT_BENCH})"
    )


def run(arguments: argparse.Namespace) -> int:
    """Undo, and print how many changes that were, and how many temporary folders.

    Args:
        arguments: Those of the command line.

    Returns:
        The exit code.

    Raises:
        BenchError: Somebody holds the bench, or a change could not be undone.
    """
    from hw.scratch import remove_orphans
    from hw.session import clean  # needs the Python environment, which `doctor` beside it does without

    count = clean(arguments.bench)
    print(f"{arguments.bench}: {count} changes undone" if count else f"{arguments.bench}: nothing to undo")
    if folders := len(remove_orphans()):
        print(f"{folders} temporary folder{'s' if folders > 1 else ''} of dead processes removed")
    return 0
