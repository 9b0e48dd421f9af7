# SPDX-License-Identifier: Apache-2.0
"""A replay that was repeated for others has no record, and one that went badly cannot pass for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.daq_replay.role import ReplayRole
from reports.rejudge.latency import latency_discrepancies
from reports.rejudge.missing import missing_discrepancies
from reports.run.folder import MANIFEST, MEASUREMENTS, RunFolder
from tests.reports.sample_run import Disturbance, add_attempt

PLACE = "evidence/daq_producer/embedded"
OWN, LOAD = 13, 33
CALM = Disturbance()
LATE_NS = 60_000_000
OWN_LATE = Disturbance(path_delay_ns={OWN: LATE_NS})
LOAD_LATE = Disturbance(path_delay_ns={LOAD: LATE_NS})
UNNAMED = f"{PLACE}/attempt-2/recv.ndjson: a replay that no record names"


def make_run(results: Path, *replays: Disturbance, named: tuple[int, ...] = (1,)) -> Path:
    """Make a run whose target produced in the place of producer 1; records are of the replays named."""
    run = RunFolder.create(results, "virtual", "ci", simulated=True, commit="0" * 40)
    for number, disturbance in enumerate(replays, start=1):
        add_attempt(run, number, disturbance, number, simulated=True, target="embedded", producers=(1,))
        ReplayRole("embedded", 1, "linux-rt").write(
            run.path / "evidence/daq_replay/embedded" / f"attempt-{number}"
        )
    (run.path / "evidence/daq_replay").rename(run.path / "evidence/daq_producer")
    run.update(outcome="pass")
    run.close()
    records = (run.path / MEASUREMENTS).read_text().replace("/daq_replay/", "/daq_producer/").splitlines()
    folders = [f"{PLACE}/attempt-{number}/" for number in named]
    kept = [line for line in records if any(folder in line for folder in folders)]
    (run.path / MEASUREMENTS).write_text("".join(f"{line}\n" for line in kept))
    return run.path


def unnamed(run: Path) -> list[str]:
    manifest = json.loads((run / MANIFEST).read_text())
    records = [json.loads(line) for line in (run / MEASUREMENTS).read_text().splitlines()]
    return [
        each for each in missing_discrepancies(run, manifest, records) if "a replay that no record" in each
    ]


def test_a_replay_for_the_load_alone_needs_no_record(tmp_path: Path) -> None:
    """The streams that the target sends had their verdict; verify refused each such run."""
    assert unnamed(make_run(tmp_path, LOAD_LATE, CALM)) == []


@pytest.mark.parametrize(
    "replays",
    [
        pytest.param((LOAD_LATE, OWN_LATE), id="over in it"),
        pytest.param((OWN_LATE, CALM), id="no verdict before it"),
        pytest.param((CALM, CALM), id="nobody had asked for it"),
    ],
)
def test_a_replay_that_a_record_should_name(tmp_path: Path, replays: tuple[Disturbance, ...]) -> None:
    assert unnamed(make_run(tmp_path, *replays)) == [UNNAMED]


def test_the_replay_before_it_cannot_be_hidden(tmp_path: Path) -> None:
    run = make_run(tmp_path, OWN_LATE, CALM, named=(2,))
    assert unnamed(run) == [UNNAMED.replace("attempt-2", "attempt-1")]


@pytest.mark.parametrize("damage", ["recv.ndjson", "plan.toml"])
def test_one_that_cannot_be_judged_is_named(tmp_path: Path, damage: str) -> None:
    run = make_run(tmp_path, LOAD_LATE, CALM)
    (run / PLACE / "attempt-2" / damage).write_text("{")
    assert unnamed(run) == [UNNAMED]


def test_no_record_at_all_excuses_nothing(tmp_path: Path) -> None:
    assert len(unnamed(make_run(tmp_path, LOAD_LATE, CALM, named=()))) == 2


def test_a_verdict_that_came_again_counts_replays_without_a_record(tmp_path: Path) -> None:
    """Clean, over and clean is a pass, and the third replay has no record: verify worked out no verdict."""
    run = make_run(tmp_path, LOAD_LATE, OWN_LATE, CALM, named=(1, 2))
    assert unnamed(run) == []
    records = [json.loads(line) for line in (run / MEASUREMENTS).read_text().splitlines()]
    for record in records:
        if record["outcome"] == "fail":
            record["outcome"] = "inconclusive"
    last = sorted(records, key=lambda each: "attempt-1" in each["evidence"][0]["path"])
    assert latency_discrepancies(run, last) == ([], len(records))
