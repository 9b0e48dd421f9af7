# SPDX-License-Identifier: Apache-2.0
"""A file of a run that is damaged in whatever way is refused by an error of ours, or read: never a traceback.

pytest tests/reports/test_hostile_evidence.py --hostile-files 2000    # of each file that a run can have
pytest tests/reports/test_hostile_evidence.py --fuzz-s 600            # of each kind of file, so long
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from dashboards.run_import import read_run
from hw.errors import BenchwrightError
from reports.clock_read.readings import load_cost, load_readings
from reports.clock_sync.disturbance import Disturbance, Event, load_disturbance, write_disturbance
from reports.clock_sync.tai_utc import NodeTaiUtc, load_tai_utc, write_tai_utc
from reports.clock_sync.trial import Lock, load_trial
from reports.daq_replay.emulation import read_emulation
from reports.daq_replay.evidence import load_replay
from reports.daq_replay.known_delay import KnownDelay
from reports.daq_replay.stack_proof import StackEnd, StackProof
from reports.dossier.environment import provisioning_of
from reports.errors import ReportError
from reports.history.advice import parse_advice
from reports.page.model import gather_run
from reports.patterns.kept import read_patterns
from reports.realtime_ethernet.evidence import load_messages, load_thread_shares
from reports.rejudge.run import rejudge
from reports.requirement_forms import read_set
from reports.run.folder import RunFolder
from reports.run.integrity import read_sums, write_sums
from reports.stacks.verdict import load_comparison
from reports.timed_edges.trial import load_edge_trial, load_witnesses, write_witnesses
from reports.timed_edges.waveforms import load_waveforms
from reports.tools.answers import recv_progress
from tests.campaign import Campaign
from tests.reports.clock_run import add_clock_trial
from tests.reports.hostile import damaged
from tests.reports.patterns.sample_patterns import ramp_series, write_sample_patterns
from tests.reports.realtime_ethernet.sample import write_ring_sample, write_traced_sample
from tests.reports.sample_advice import BENCH_CHANGE, advice_of
from tests.reports.sample_clock import compare_answer
from tests.reports.sample_edges import add_edges, sample_witnesses
from tests.reports.sample_read_latency import add_readings, latency_answer
from tests.reports.sample_run import make_run
from tests.reports.stacks.sample import write_sample_turns

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
Read = Callable[[Path], object]
"""Reads a damaged file, which lies where it lay in the run."""


def _costs(file: Path) -> object:
    readings = load_readings(file.parent)
    return [load_cost(file.parent, reading) for reading in readings.readings]


def _threads(file: Path) -> object:
    traced = load_messages(file.parent).traced
    return traced and not traced.missing and load_thread_shares(file.parent, traced)


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
    "evidence/timed_edges/**/tgpio-latch/waveforms.json": load_waveforms,
    "evidence/daq_replay/**/attempt-1/known_delay.json": KnownDelay.read,
    "evidence/daq_replay/attempt-1/stack_proof.json": StackProof.read,
    "evidence/daq_replay/bytes/attempt-1/stack_proof.json": StackProof.read,
    "evidence/daq_replay/**/attempt-1/recv.ndjson": lambda file: recv_progress(file, range(200)),
    "evidence/daq_replay/attempt-1/emulation.ndjson": read_emulation,
    "evidence/clock_sync/disturbed/disturbance.json": lambda file: load_disturbance(file.parent),
    "evidence/clock_sync/disturbed/tai-utc.json": lambda file: load_tai_utc(file.parent),
    "evidence/realtime_ethernet/linux/messages.json": _threads,
    "evidence/realtime_ethernet/linux/traced-64*": _threads,
    "evidence/realtime_ethernet/ring/traced-64-ring.gz": _threads,
    "evidence/stacks/linux/*.*": lambda file: load_comparison(file.parent),
    "evidence/provisioning/linux-rt/*.*": lambda file: provisioning_of(file.parents[3], "run", "linux-rt"),
    "evidence/history/advice.json": lambda file: parse_advice(file.read_bytes()),
    "evidence/patterns/found.json": lambda file: read_patterns(file.parents[2]),
}


def _add_more(made: RunFolder) -> None:
    """Add what the sample run lacks: messages, a disturbed clock, provisioning, emulator, proofs, advice."""
    write_traced_sample(made.evidence_folder("realtime_ethernet", "linux"))
    write_ring_sample(made.evidence_folder("realtime_ethernet", "ring"))
    write_sample_turns(made.evidence_folder("stacks", "linux"), rounds=2)
    disturbed = made.evidence_folder("clock_sync", "disturbed")
    lock = Lock(12, "offset", 1)
    write_disturbance(disturbed, Disturbance("chrony", "step", (Event("step +1 ms", 20, lock, ""),)))
    write_tai_utc(disturbed, [NodeTaiUtc("host", 37), NodeTaiUtc("linux-rt", 0)])
    provisioning = made.evidence_folder("provisioning", "linux-rt")
    item = {"type": "item", "item": "governor", "wanted": "performance", "found": "powersave", "status": "ok",
            "changed": True, "note": ""}  # fmt: skip
    (provisioning / "apply.ndjson").write_text(2 * (json.dumps(item) + "\n"))
    for when, kernel in (("before", "6.1"), ("after", "6.12")):
        facts = {"type": "facts", "kernel": kernel, "cpu": {"model": "x", "count": 4}, "irq": [1, 2]}
        (provisioning / f"facts-{when}.json").write_text(json.dumps(facts))
    (made.evidence_folder("daq_replay", "attempt-1") / "emulation.ndjson").write_text(
        '{"stream":10,"sequence":7,"period_ns":1000,"vcpu_ran_ns":[[-1000,0],[0,900]]}\n'
        '{"overdue_tai_ns":[5000,9000],"period_ns":1000,"vcpu_ran_ns":[[-1000,0],[0,0],[4000,10]]}\n'
    )
    StackProof("rtdip", 1480, "t", {"t": StackEnd(10**9, 7, 8), "p01": StackEnd(0, 0, 0)}).write(
        made.evidence_folder("daq_replay", "attempt-1")
    )
    StackProof("user", None, "t", {"t": StackEnd(None, 7, 8, 10**12), "p01": StackEnd(None, 0, 0, 0)}).write(
        made.evidence_folder("daq_replay", "bytes", "attempt-1")
    )
    (made.evidence_folder("history") / "advice.json").write_bytes(
        advice_of(made.path, bench_change=BENCH_CHANGE).to_bytes()
    )
    write_sample_patterns(made.path, ramp_series("clock_sync/x", "clock error"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run with everything that is looked at here."""
    made = make_run(tmp_path_factory.mktemp("hostile"), close=False)
    add_clock_trial(made, compare_answer(100))
    add_readings(made, latency_answer())
    add_edges(made, 200)
    witnesses = made.evidence_folder("timed_edges", "witnesses")
    write_witnesses(witnesses, sample_witnesses())
    shutil.copy(
        ROOT / "robot" / "daq_replay" / "requirements" / "daq12.toml", made.evidence_folder("requirements")
    )
    _add_more(made)
    made.close()
    write_sums(made.path)
    return made.path


@pytest.fixture
def rounds(pytestconfig: pytest.Config) -> int:
    """Return how often each file is damaged."""
    return int(str(pytestconfig.getoption("--hostile-files")))


def _read_one(read: Read, file: Path, random: Random, campaign: Campaign) -> None:
    """Damage a file, read it, and put it back."""
    whole = file.read_bytes()
    data = damaged(whole, random)
    file.write_bytes(data)
    try:
        with campaign.trying(data):
            try:
                read(file)
            except ReportError:
                campaign.reached.add(f"{file.name} refused")
            else:
                campaign.reached.add(f"{file.name} read")
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize("pattern", READERS)
def test_damaged_evidence(run: Path, pattern: str, rounds: int, tmp_path: Path, campaign: Campaign) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    files: dict[str, Path] = {}
    for file in sorted(copy.glob(pattern)):
        if file.is_file() and file.suffix not in {".npz", ".pcap"}:
            files.setdefault(re.sub(r"\d+", "N", file.name), file)  # of the senders, one
    assert files, f"the sample run has no {pattern}"
    for file in files.values():
        READERS[pattern](file)
    for random in campaign.rounds(rounds):
        for file in files.values():
            _read_one(READERS[pattern], file, random, campaign)


def test_damaged_run(run: Path, rounds: int, tmp_path: Path, campaign: Campaign) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    files = sorted(
        file for file in copy.rglob("*.*") if file.suffix in {".json", ".jsonl", ".ndjson", ".toml"}
    )
    for random in campaign.rounds(rounds // 6):
        file = random.choice(files)
        whole = file.read_bytes()
        data = damaged(whole, random)
        file.write_bytes(data)
        try:
            with campaign.trying(f"{file.relative_to(copy)}\n".encode() + data):
                rejudge(copy)
                with suppress(ReportError):
                    gather_run(copy)
                with suppress(BenchwrightError):
                    read_run(copy, "adhoc")
        finally:
            file.write_bytes(whole)
        campaign.reached.add(file.name)
