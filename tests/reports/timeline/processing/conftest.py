# SPDX-License-Identifier: Apache-2.0
"""A run for graphs of filters."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.reports.realtime_ethernet.sample import write_ring_sample
from tests.reports.sample_run import Disturbance, make_run, write_evidence
from tests.reports.timeline.processing.graph_sample import GRAPH, PLACE, SITE


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run with late messages of a stream, and a kernel recording."""
    path = make_run(tmp_path_factory.mktemp("whole")).path
    folder = path / "evidence" / PLACE
    folder.mkdir(parents=True)
    write_evidence(folder, Disturbance(path_delay_ns={33: 15_000_000}), seed=3)
    (path / "evidence" / "realtime_ethernet").mkdir()
    write_ring_sample(path / "evidence" / "realtime_ethernet" / "linux-rt")
    return path


@pytest.fixture
def run(whole_run: Path, tmp_path: Path) -> Path:
    """Return a copy of it, and two folders above the graph and the code of its site."""
    path = tmp_path / "results" / whole_run.name
    shutil.copytree(whole_run, path)
    (tmp_path / "late.toml").write_text(GRAPH)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "ours.py").write_text(SITE)
    return path
