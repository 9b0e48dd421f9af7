# SPDX-License-Identifier: Apache-2.0
"""Run folders and other programs' statistics into the store."""

from __future__ import annotations

from pathlib import Path

from dashboards.branch import ADHOC
from dashboards.points import RunPoints, run_points
from dashboards.rtc_testbench import import_statistics, is_statistics
from dashboards.store import Change, Store
from hw.errors import ConfigError
from reports.errors import ReportError
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from reports.run.integrity import read_sums, sha256_file


def read_run(path: Path, branch: str) -> RunPoints:
    """Return the points of a run folder.

    Raises:
        ConfigError: It is no run folder, its records are damaged, or they are not what was finalised.
    """
    try:
        folder = RunFolder.open(path)
        if folder.finalised:
            sums = read_sums(folder.path)
            for name in (MANIFEST, MEASUREMENTS):
                if sums.get(name) != sha256_file(folder.path / name):
                    raise ConfigError(f"{path}: {name} has changed since the run was finalised")
        return run_points(folder, branch)
    except (ReportError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from error


def import_path(
    store: Store, path: Path, branch: str | None, *, start_ns: int | None = None, tai: bool = True
) -> tuple[RunPoints, Change]:
    """Put a run folder or a file of statistics into the store; return what it was and what became of it.

    Args:
        store: The store.
        path: A run folder, or a file of RTC-Testbench's statistics.
        branch: Class of the branch; None: as it is stored already, else `adhoc`.
        start_ns: Start of the run for statistics without a time.
        tai: Whether the times of statistics are TAI.

    Raises:
        ConfigError: The path is neither, or damaged.
        StoreError: The store cannot take it.
    """
    if path.is_dir():
        run = read_run(path, branch or store.branch_of_run(_run_id(path)) or ADHOC)
    elif path.is_file() and is_statistics(path):
        run = import_statistics(path, branch or ADHOC, start_ns=start_ns, tai=tai)
    else:
        raise ConfigError(f"{path}: neither a run folder nor statistics of RTC-Testbench")
    return run, store.add_run(run)


def _run_id(path: Path) -> str:
    try:
        return RunFolder.open(path).run_id
    except ReportError as error:
        raise ConfigError(str(error)) from error
