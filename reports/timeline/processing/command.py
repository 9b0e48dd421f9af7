# SPDX-License-Identifier: Apache-2.0
"""What `python -m reports timeline` says of graphs that it computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reports.timeline.processing.kept_results import Kept, again, process


def process_run(run: Path, file: Path, output: Path | None) -> int:
    """Compute a graph of a run, and say where its results are, or what differs; return the exit code."""
    return _say([process(run, file, output)])


def recompute_run(run: Path) -> int:
    """Compute all graphs of a run again, and say what differs; return the exit code."""
    return _say(again(run))


def _say(found: Sequence[Kept]) -> int:
    for each in found:
        files = "1 result" if each.files == 1 else f"{each.files} results"
        if each.differences is None:
            print(f"{each.folder}: {files}")
        elif not each.differences:
            print(f"{each.folder}: {files} computed again: the same bytes")
        for difference in each.differences or ():
            print(f"{each.folder}: {difference}")
        for words in each.left_out:
            print(f"  left out: {words}")
    return int(any(each.differences for each in found))
