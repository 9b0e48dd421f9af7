# SPDX-License-Identifier: Apache-2.0
"""The run folder survives kills, torn lines and full disks, and says what is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reports.errors import RunFolderError
from reports.record.measurement import Measurement
from reports.run.folder import RESULTS, RunFolder, named_run
from reports.run.integrity import changed_files
from reports.run.manifest import Manifest
from tests.reports.sample_run import Disturbance, make_run

ROOT = Path(__file__).resolve().parents[3]

WRITER = """
import dataclasses, sys
from pathlib import Path
from reports.run.folder import RESULTS, RunFolder, named_run
run = RunFolder.open(Path(sys.argv[1]))
record = run.records().measurements[0]
for number in range(int(sys.argv[2])):
    run.append(dataclasses.replace(record, test=f"{number} " + "x" * int(sys.argv[3])))
    print(number, flush=True)
"""


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path / "results")


def record_of(run: RunFolder) -> Measurement:
    return run.records().measurements[0]


def test_a_new_run_has_its_name_its_manifest_and_room_for_evidence(tmp_path: Path):
    run = RunFolder.create(tmp_path / "results", "virtual", "ci")
    assert re.fullmatch(r"\d{8}T\d{6}Z-virtual-ci(-\d+)?", run.path.name)
    assert (run.path / "evidence").is_dir()
    manifest = Manifest.from_text((run.path / "run.json").read_text())
    assert (manifest.bench, manifest.profile, manifest.end_utc) == ("virtual", "ci", None)
    assert [path.name for path in run.path.parent.iterdir()] == [run.path.name]


def test_runs_that_start_in_the_same_second_get_folders_of_their_own(tmp_path: Path):
    runs = [RunFolder.create(tmp_path, "virtual", "ci") for _ in range(6)]
    assert len({run.path for run in runs}) == len({run.run_id for run in runs}) == 6


@pytest.mark.parametrize("name", ["", "../up", "a/b", "-rf", "a b", "a\n"])
def test_a_bench_whose_name_is_no_file_name_is_refused(tmp_path: Path, name: str):
    with pytest.raises(RunFolderError, match="only letters"):
        RunFolder.create(tmp_path, name, "ci")
    assert list(tmp_path.iterdir()) == []


def test_records_come_back_as_they_were_written(run: RunFolder):
    records = run.records()
    assert records.torn is None
    assert len(records.measurements) == 48
    assert RunFolder.open(run.path).records() == records


def test_a_record_of_another_run_is_refused(run: RunFolder, tmp_path: Path):
    other = RunFolder.create(tmp_path / "other", "virtual", "ci")
    with pytest.raises(RunFolderError, match="record of run"):
        other.append(record_of(run))


@pytest.mark.parametrize("cut", [1, 20, 300])
def test_a_torn_last_line_is_reported_set_aside_and_not_counted(run: RunFolder, cut: int):
    path = run.path / "measurements.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    records = run.records()
    assert len(records.measurements) == 47
    torn = records.torn
    assert torn is not None
    assert RunFolder.open(run.path).fix() == torn
    assert run.records().torn is None
    assert [p.read_text() for p in (run.path / "evidence").glob("torn-record-*.txt")] == [torn]
    run.append(record_of(run))
    assert len(run.records().measurements) == 48


def test_a_damaged_line_in_the_middle_is_an_error_with_its_number(run: RunFolder):
    path = run.path / "measurements.jsonl"
    lines = path.read_text().split("\n")
    lines[6] = lines[6].replace('"value":', '"valeu":')
    path.write_text("\n".join(lines))
    with pytest.raises(RunFolderError, match=re.escape("measurements.jsonl:7: valeu: unknown key")):
        run.records()


def test_what_was_appended_survives_sigkill(run: RunFolder):
    before = len(run.records().measurements)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(run.path), "100000", "50000"],
        stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) == 20:
            writer.send_signal(signal.SIGKILL)
            break
    said = [line for line in writer.stdout.read().split("\n") if line]
    writer.wait()
    writer.stdout.close()
    appended = len(run.records().measurements) - before
    assert appended >= 21 + len(said)
    RunFolder.open(run.path).fix()
    run.append(record_of(run))


@pytest.mark.simulated
def test_a_full_disk_is_named_and_leaves_whole_lines_only(run: RunFolder, tmp_path: Path):
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    small = tmp_path / "small"
    small.mkdir()
    command = f"""
        mount -t tmpfs -o size=2M tmpfs {small} && cp -r {run.path} {small}/run &&
        {{ {sys.executable} {script} {small}/run 100000 1000; echo "code $?"; }}
        cp {small}/run/measurements.jsonl {tmp_path}/
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-c", command],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert "the disk is full" in done.stderr
    written, code = done.stdout.split()[-3], done.stdout.split()[-1]
    assert code == "1"
    shutil.copy(tmp_path / "measurements.jsonl", run.path / "measurements.jsonl")
    records = run.records()
    assert records.torn is None
    assert len(records.measurements) == 48 + int(written) + 1


def test_facts_join_and_attempts_are_numbered(tmp_path: Path):
    run = RunFolder.create(tmp_path, "virtual", "ci")
    run.update(target={"kernel": "6.12"}, tools={"a": "1"})
    run.update(target={"nic": "igb"}, simulated=True, bench="site-1")
    assert run.manifest.bench == "site-1", "its own name, not that of its file"
    assert [
        run.add_attempt("daq_replay", "inconclusive", "not quiet"),
        run.add_attempt("daq_replay", "pass"),
    ] == [1, 2]
    again = RunFolder.open(run.path).manifest
    assert again.target == {"kernel": "6.12", "nic": "igb"}
    assert again.simulated is True
    assert [(a.number, a.outcome) for a in again.attempts] == [(1, "inconclusive"), (2, "pass")]


def test_closing_counts_and_one_simulated_record_makes_the_run_simulated(tmp_path: Path):
    run = make_run(tmp_path / "results", Disturbance(lost={12: 1}))
    run.update(simulated=False)
    run.close()
    assert run.manifest.counts == {"pass": 47, "fail": 1, "inconclusive": 0, "unset": 0, "error": 0}
    assert run.manifest.simulated is True
    assert run.manifest.end_utc is not None


def test_finalising_sums_every_file_and_points_latest_at_the_run(run: RunFolder):
    run.finalise()
    assert changed_files(run.path) == []
    assert (run.path.parent / "latest").readlink() == Path(run.path.name)
    done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=run.path, check=False)
    assert done.returncode == 0
    second = RunFolder.create(run.path.parent, "virtual", "ci")
    second.finalise()
    assert (run.path.parent / "latest").readlink() == Path(second.path.name)


def test_a_finalised_run_refuses_every_change(run: RunFolder):
    record = record_of(run)
    run.finalise()
    for change in (
        lambda: run.append(record),
        lambda: run.update(simulated=False),
        lambda: run.add_problem("late"),
        run.finalise,
        run.fix,
        lambda: run.evidence_folder("late"),
    ):
        with pytest.raises(RunFolderError, match="finalised"):
            change()


def test_a_file_in_the_place_of_latest_is_not_overwritten(run: RunFolder):
    (run.path.parent / "latest").write_text("precious")
    with pytest.raises(RunFolderError, match="not a link"):
        run.finalise()
    assert (run.path.parent / "latest").read_text() == "precious"


def test_evidence_is_hashed_and_stays_inside(run: RunFolder, tmp_path: Path):
    file = run.evidence_folder("scope") / "wave.bin"
    file.write_bytes(b"abc")
    evidence = run.evidence(file)
    assert evidence.path == "evidence/scope/wave.bin"
    assert evidence.sha256.startswith("ba7816bf")
    outside = tmp_path / "outside"
    outside.touch()
    for path in (outside, run.path / "evidence" / "missing"):
        with pytest.raises(RunFolderError):
            run.evidence(path)


def test_what_is_no_run_folder_is_refused(tmp_path: Path):
    with pytest.raises(RunFolderError, match="no run folder"):
        RunFolder.open(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps({"schema": "benchwright.run/1"}))
    with pytest.raises(RunFolderError, match=re.escape("run.json.run_id: missing key")):
        RunFolder.open(tmp_path)


def test_a_results_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(RunFolderError, match="results"):
        RunFolder.create(tmp_path / "results", "virtual", "ci")


def test_a_run_is_named_by_its_path_or_its_name_below_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (RESULTS / "20261124T000000Z-virtual-ci").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    assert named_run("20261124T000000Z-virtual-ci") == RESULTS / "20261124T000000Z-virtual-ci"
    assert named_run("elsewhere") == Path("elsewhere")
    assert named_run("none") == Path("none")
