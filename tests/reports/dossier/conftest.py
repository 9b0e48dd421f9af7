# SPDX-License-Identifier: Apache-2.0
"""A small dossier that several test files look at, written once: rendering takes seconds."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from reports.dossier.model import Dossier, to_dossier_bytes
from reports.run.folder import RunFolder
from reports.run.seal import KEY_VARIABLE
from tests.reports.dossier.sample import finished_run, gather, write_benches
from tests.reports.sample_run import Disturbance

ROOT = Path(__file__).resolve().parents[3]
FAILS = "DAQ-033"
WRITE = """
import json, sys
from pathlib import Path
from reports.dossier.model import from_dossier_json
from reports.dossier.page import write_dossier
dossier = from_dossier_json(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
Path(sys.argv[3]).write_bytes(write_dossier(dossier, {dossier.runs[0].manifest.run_id: Path(sys.argv[2])}))
"""
"""Write the PDF of a dossier's data: argument 1, with the run folder, 2, to a file, 3."""


@dataclass(frozen=True)
class DossierSample:
    """A run of a simulated bench in which a stream fails, and a dossier of some of its requirements.

    Attributes:
        files: The PDF as two processes write it that have nothing in common but the run folder.
    """

    run: RunFolder
    dossier: Dossier
    files: tuple[Path, Path]


@pytest.fixture(scope="module", autouse=True)
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the list of a site's benches, where the command line looks for it."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, str(folder / "seal.key"))
        yield write_benches(folder / "benches.toml", "bench-1", "virtual")


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> DossierSample:
    """Return a dossier, written twice."""
    folder = tmp_path_factory.mktemp("dossiers")
    late = Disturbance(path_delay_ns={33: 15_000_000})
    run = finished_run(tmp_path_factory.mktemp("results"), late, simulated=True)
    dossier = small(gather([run.path]))
    data = folder / "data.json"
    data.write_bytes(to_dossier_bytes(dossier))
    settings = (
        {"TZ": "UTC", "PYTHONHASHSEED": "0", "LC_ALL": "C"},
        {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "4711", "LC_ALL": "C.UTF-8"},
    )
    files = (folder / "one.pdf", folder / "two.pdf")
    kept = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, str(data), str(run.path), str(file)],
            cwd=cwd,
            env={**kept, "PYTHONPATH": str(ROOT), **setting},
        )
        for file, cwd, setting in zip(files, (ROOT, folder), settings, strict=True)
    ]
    assert [process.wait() for process in processes] == [0, 0]
    return DossierSample(run, dossier, files)


def small(dossier: Dossier) -> Dossier:
    """Return a dossier with a few of its requirements, those that fail among them, and a few files."""
    (target,), (run,) = dossier.targets, dossier.runs
    rows = [row for row in target.requirements if row.id == FAILS] + list(target.requirements[:4])
    return dataclasses.replace(
        dossier,
        targets=(dataclasses.replace(target, requirements=tuple(rows)),),
        runs=(dataclasses.replace(run, files=run.files[:8]),),
    )
