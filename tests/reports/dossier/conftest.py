# SPDX-License-Identifier: Apache-2.0
"""A dossier that several test files look at, written once: rendering takes seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from reports.dossier.gather import gather
from reports.dossier.model import Dossier
from reports.run_folder import RunFolder
from tests.reports.dossier.sample import finished_run
from tests.reports.sample_run import Disturbance

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Written:
    """A run of a simulated bench in which one stream fails, and its dossier.

    Attributes:
        files: The PDF as two processes write it that have nothing in common but the run folder.
    """

    run: RunFolder
    dossier: Dossier
    files: tuple[Path, Path]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Return a dossier, written twice."""
    folder = tmp_path_factory.mktemp("dossiers")
    late = Disturbance(path_delay_ns={33: 15_000_000})
    run = finished_run(tmp_path_factory.mktemp("results"), late, simulated=True)
    settings = (
        {"TZ": "UTC", "PYTHONHASHSEED": "0", "LC_ALL": "C"},
        {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "4711", "LC_ALL": "C.UTF-8"},
    )
    files = (folder / "one.pdf", folder / "two.pdf")
    kept = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "reports", "dossier", str(run.path), "--output", str(file)],
            cwd=cwd,
            env={**kept, "PYTHONPATH": str(ROOT), **setting},
            stdout=subprocess.DEVNULL,
        )
        for file, cwd, setting in zip(files, (ROOT, folder), settings, strict=True)
    ]
    assert [process.wait() for process in processes] == [0, 0]
    return Written(run, gather([run.path]), files)
