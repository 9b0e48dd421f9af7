# SPDX-License-Identifier: Apache-2.0
"""A file of a run that is damaged in whatever way is refused by an error of ours, or read: never a traceback.

pytest tests/reports/test_hostile_evidence.py --hostile-files 2000    # of each file that a run can have
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from reports.clock_read.readings import load_cost, load_readings
from reports.clock_sync.trial import load_trial
from reports.errors import ReportError
from reports.latency.evidence import load_replay
from reports.page.model import gather_run
from reports.rejudge.run import rejudge
from reports.requirements import read_set
from reports.run.folder import RunFolder
from reports.run.integrity import read_sums, write_sums
from reports.timed_edges.trial import load_edge_trial, load_witnesses, write_witnesses
from tests.reports.clock_run import add_clock_trial
from tests.reports.hostile import damaged
from tests.reports.sample_clock import compare_answer
from tests.reports.sample_edges import add_edges, sample_witnesses
from tests.reports.sample_read_latency import add_readings, latency_answer
from tests.reports.sample_run import make_run

ROOT = Path(__file__).resolve().parents[2]
Read = Callable[[Path], object]
"""Reads a damaged file, which lies where it lay in the run."""


def _costs(file: Path) -> object:
    readings = load_readings(file.parent)
    return [load_cost(file.parent, reading) for reading in readings.readings]


def _records(file: Path) -> object:
    run = RunFolder.open(file.parent)
    return [run.records(), run.manifest]


READERS: dict[str, Read] = {
    "run.json": _records,
    "measurements.jsonl": _records,
    "SHA256SUMS": lambda file: read_sums(file.parent),
    "evidence/requirements/*.toml": lambda file: read_set(file.read_bytes(), file.name),
    "evidence/daq_replay/**/attempt-1/*": lambda file: load_replay(file.parent),
    "evidence/clock_sync/**/chrony/*": lambda file: load_trial(file.parent),
    "evidence/clock_read_latency/**/*": _costs,
    "evidence/timed_edges/**/tgpio-latch/*.*": lambda file: load_edge_trial(file.parent),
    "evidence/timed_edges/witnesses/witnesses.json": lambda file: load_witnesses(file.parent),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with everything that is looked at here."""
    made = make_run(tmp_path_factory.mktemp("hostile"), close=False)
    add_clock_trial(made, compare_answer(100))
    add_readings(made, latency_answer())
    add_edges(made, 200)
    witnesses = made.evidence_folder("timed_edges", "witnesses")
    write_witnesses(witnesses, sample_witnesses())
    shutil.copy(ROOT / "robot" / "requirements" / "daq12.toml", made.evidence_folder("requirements"))
    made.close()
    write_sums(made.path)
    return made.path


@pytest.fixture
def rounds(pytestconfig: pytest.Config) -> int:
    """Return how often each file is damaged."""
    return int(str(pytestconfig.getoption("--hostile-files")))


def _read_all(read: Read, file: Path, rounds: int) -> tuple[int, int]:
    """Damage a file again and again and read it; return how often it was read and refused."""
    random, whole = Random(f"{file.name} {rounds}"), file.read_bytes()
    counts = [0, 0]
    try:
        read(file)
        for _ in range(rounds):
            file.write_bytes(damaged(whole, random))
            try:
                read(file)
            except ReportError:
                counts[1] += 1
            else:
                counts[0] += 1
    finally:
        file.write_bytes(whole)
    return counts[0], counts[1]


@pytest.mark.parametrize("pattern", READERS)
def test_a_damaged_file_is_refused_or_read(run: Path, pattern: str, rounds: int, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    names: set[str] = set()
    for file in sorted(copy.glob(pattern)):
        name = re.sub(r"\d+", "N", file.name)  # of the senders, one
        if file.is_file() and file.suffix not in {".npz", ".pcap"} and name not in names:
            names.add(name)
            assert sum(_read_all(READERS[pattern], file, rounds)) == rounds
    assert names, f"the sample run has no {pattern}"


def test_a_run_with_a_damaged_file_is_drawn_and_judged_again_or_refused(
    run: Path, rounds: int, tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    files = sorted(
        file for file in copy.rglob("*.*") if file.suffix in {".json", ".jsonl", ".ndjson", ".toml"}
    )
    random = Random(rounds)
    for _ in range(rounds // 6):
        file = random.choice(files)
        whole = file.read_bytes()
        file.write_bytes(damaged(whole, random))
        try:
            rejudge(copy)
            with suppress(ReportError):
                gather_run(copy)
        finally:
            file.write_bytes(whole)
