# SPDX-License-Identifier: Apache-2.0
"""The targets of a run, and where each has its evidence and its page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import cast

from reports.record.measurement import Measurement
from reports.run.folder import EVIDENCE
from reports.run.manifest import Manifest
from reports.run.selected_before import selected_in

MACHINE_FACTS = frozenset({"hostname", "kernel", "os"})
"""Facts of a machine have one of these."""


def targets_of(run: Path, manifest: Manifest, records: Iterable[Measurement]) -> tuple[str, ...]:
    """Return the targets of a run in its order: those asked for, those read back, those measured.

    A target of which nothing was measured is one too: its page says so.

    Args:
        run: The run folder.
        manifest: Its manifest.
        records: Its measurements.
    """
    facts = ((name, cast("object", each)) for name, each in manifest.target.items())
    read_back = [
        name
        for name, each in facts
        if isinstance(each, dict) and MACHINE_FACTS & cast("dict[str, object]", each).keys()
    ]
    asked = [each.target for each in selected_in(run, manifest) if each.target]
    return tuple(dict.fromkeys([*asked, *read_back, *(record.subject.target for record in records)]))


def evidence_of(run: Path, capability: str, target: str, targets: Sequence[str] = ()) -> Path:
    """Return the folder that holds the evidence of a capability and a target; it need not exist.

    It is `evidence/CAPABILITY/TARGET`. Older run folders, of one target each, have it in
    `evidence/CAPABILITY`.

    Args:
        run: The run folder.
        capability: `daq_replay`, `clock_sync`, …
        target: Empty: nothing is known of it, and no target has a folder of its own.
        targets: All targets of the run: with several, each has only its own folder.
    """
    folder = run / EVIDENCE / capability
    own = folder / target
    return own if len(targets) > 1 or own.is_dir() else folder


def target_of_file(name: str, targets: Iterable[str]) -> str | None:
    """Return the target that a file of the run folder belongs to; None: to no single one.

    The first part of its path that names a target decides, also `consoles/TARGET.log`.
    """
    known = set(targets)
    path = PurePosixPath(name)
    return next((part for part in (*path.parts[:-1], path.name, path.stem) if part in known), None)


def page_names(page: str, targets: Sequence[str]) -> dict[str, str]:
    """Return the name of each target's page beside the page of the run; no two are alike.

    Args:
        page: Name of the run's page, such as `qualification.html`.
        targets: Names; what is not fit for a file's name becomes `_`.
    """
    path = PurePosixPath(page)
    names: dict[str, str] = {}
    for target in targets:
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", target)
        name, number = f"{path.stem}-{plain}{path.suffix}", 1
        while name.lower() in {taken.lower() for taken in names.values()}:
            number += 1
            name = f"{path.stem}-{plain}-{number}{path.suffix}"
        names[target] = name
    return names
