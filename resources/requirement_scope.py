# SPDX-License-Identifier: Apache-2.0
"""A suite selects requirements of its target: the run notes them, and keeps the file that they are in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from reports.durable import replace_file
from reports.run.current import open_run
from reports.run.folder import RunFolder
from reports.run.robot_variable import robot_variable
from reports.run.selected import (
    KEPT,
    SelectedFile,
    SelectedSuite,
    chosen_stack,
    suite_name,
    with_nothing_selected,
    with_selected,
)


def select(suite: Path, file: Path, requirements: Iterable[str]) -> None:
    """Note in the open run what a suite selects of its target; without a run nothing happens.

    Args:
        suite: File of the suite.
        file: The requirements file.
        requirements: Ids of those of its requirements that the suite selects.

    Raises:
        RunFolderError: The run folder cannot be written.
        OSError: The file cannot be read.
    """
    run = open_run()
    if run is None or run.finalised:
        return
    more = SelectedFile(_keep(run, file).name, tuple(requirements))
    selected = run.manifest.asked or ()
    target, name, stack = _place(selected, suite)
    run.update(asked=with_selected(selected, target, name, more, stack))


def select_nothing(suite: Path) -> None:
    """Note in the open run that a suite selects nothing of its target; what it has selected before stays.

    Raises:
        RunFolderError: The run folder cannot be written.
    """
    run = open_run()
    if run is None or run.finalised:
        return
    selected = run.manifest.asked or ()
    run.update(asked=with_nothing_selected(selected, *_place(selected, suite)))


def _place(selected: Sequence[SelectedSuite], suite: Path) -> tuple[str, str, str | None]:
    """Return target, name and network stack of a suite that runs."""
    target, name = robot_variable("TARGET"), suite_name(suite)
    return target, name, chosen_stack(selected, target, name, robot_variable("STACK"))


def _keep(run: RunFolder, file: Path) -> Path:
    """Copy a file into the evidence, once; one of the same name and other bytes stands beside it."""
    data = file.read_bytes()
    kept = run.evidence_folder(KEPT.name) / file.name
    if kept.exists() and kept.read_bytes() != data:
        kept = kept.with_name(f"{file.stem}-{hashlib.sha256(data).hexdigest()[:8]}{file.suffix}")
    if not kept.exists():
        replace_file(kept, data)
    return kept
