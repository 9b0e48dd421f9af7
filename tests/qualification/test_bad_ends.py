# SPDX-License-Identifier: Apache-2.0
"""Whole runs that end badly: interrupted, without terminal, disk or power; killed ones: `make bench-restore`.

The machine is as before after each of them, and what was measured until then is kept. The machine may have
more to do: only what carries the mark of a test's own bench and runs counts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.lab.killed_run import MARK, MachineState, machine_state, marked_processes
from hw.bench import BenchSpec, load_bench
from hw.reservation import LOCK_FOLDER
from tests.patience import wait_until
from tests.simulation.processes import guests_of
from tests.simulation.trial import ROOT, TARGET, VIRTUAL_BENCH

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

NATIVE_BENCH = VIRTUAL_BENCH.with_name("native.yaml")
SUITE = "robot/daq_replay"
DEADLINE_S = 120.0
"""For the next thing that a run says, and for its end: it only ends a hang."""


@dataclass(frozen=True)
class OwnBench:
    """The virtual bench by a name of its own: whoever qualifies a target meanwhile holds the other one."""

    file: Path
    spec: BenchSpec
    mark: str
    """In the environment of all that the test starts."""
    before: MachineState

    def check_undone(self) -> None:
        """Nothing of a run lives, and the machine is as it was before."""
        wait_until(lambda: not marked_processes(self.mark), f"the end of all with the mark {self.mark}")
        assert machine_state(self.spec).changes(self.before) == {}


@pytest.fixture(params=[VIRTUAL_BENCH])
def own(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[OwnBench]:
    """Write the file of the bench, and mark what the test starts, as its children inherit it."""
    file = tmp_path / "bench.yaml"
    name = f"ends-{os.getpid()}"
    kind: Path = request.param
    file.write_text(kind.read_text().replace(f"name: {kind.stem}\n", f"name: {name}\n", 1))
    spec = load_bench(file)
    assert spec.name == name
    mark = f"{os.getpid()}-{tmp_path.name}"
    monkeypatch.setenv(MARK, mark)
    yield OwnBench(file, spec, mark, machine_state(spec))
    (LOCK_FOLDER / f"{name}.lock").unlink(missing_ok=True)


@contextmanager
def run_of_a_qualification(
    own: OwnBench, folder: Path, results: Path | None = None
) -> Generator[subprocess.Popen[str]]:
    """Start a qualification; whatever a test does to it, it has ended when the context is left."""
    argv = [sys.executable, "-m", "resources.qualify", "--bench", str(own.file), "--suite", SUITE]
    argv += ["--targets", TARGET, "--results", str(results or folder / "results")]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            argv,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def wait_for(text: str, folder: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a qualification has said something."""
    deadline = time.monotonic() + DEADLINE_S
    while text not in (folder / "log").read_text():
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.1)


def only_run(results: Path) -> Path:
    """Return the one run folder."""
    runs = [path for path in results.iterdir() if path.is_dir() and not path.is_symlink()]
    assert len(runs) == 1
    return runs[0]


def wait_for_first_answers(folder: Path, process: subprocess.Popen[str]) -> Path:
    """Wait until producer 3 says that it sends, in the first replay of a run; return what it says."""
    wait_for("known-delay check: producer 3", folder, process)
    attempt = only_run(folder / "results") / "evidence" / "daq_replay" / TARGET / "attempt-1"
    answers = attempt / "known_delay" / "send-p03.ndjson"
    while not (answers.exists() and '"progress"' in answers.read_text()):
        assert process.poll() is None
        time.sleep(0.1)
    return answers


def test_interrupted_run_saves_its_data_and_cleans_up(own: OwnBench, tmp_path: Path) -> None:
    """Ctrl-C in mid-measurement: no verdict (exit code 4), a complete run folder, a clean machine."""
    with run_of_a_qualification(own, tmp_path) as process:
        answers = wait_for_first_answers(tmp_path, process)
        process.send_signal(signal.SIGINT)
        code = process.wait(DEADLINE_S)
    said = (tmp_path / "log").read_text()
    assert code == 4, said
    own.check_undone()
    run = only_run(tmp_path / "results")
    assert subprocess.run([sys.executable, "-m", "reports", "verify", str(run)], cwd=ROOT).returncode == 0
    for name in ("recv", "send-p03", "witness"):
        lines = (answers.parent / f"{name}.ndjson").read_text().splitlines()
        last = json.loads(lines[-1])
        assert (last["type"], last["complete"]) == ("result", False), name
    assert (answers.parent / "t-linux-rt.pcap").stat().st_size > 0
    manifest = json.loads((run / "run.json").read_text())
    assert (manifest["counts"]["pass"], manifest["outcome"]) == (0, "inconclusive")
    assert "The run was interrupted" in said
    assert "fatal error" not in (run / "qualification.html").read_text()


@pytest.mark.parametrize("own", [NATIVE_BENCH], indirect=True)
def test_run_whose_terminal_is_closed_cleans_up(own: OwnBench, tmp_path: Path) -> None:
    """A closed window in mid-measurement (SIGHUP, and nobody to write to): as after an interrupt."""
    ours, its = os.openpty()
    argv = [sys.executable, "-m", "resources.qualify", "--bench", str(own.file), "--suite", SUITE]
    argv += ["--results", str(tmp_path / "results")]
    # setsid: the terminal becomes that of the session, whose processes get SIGHUP when it goes.
    process = subprocess.Popen(["setsid", "--ctty", *argv], cwd=ROOT, stdin=its, stdout=its, stderr=its)
    os.close(its)
    said = b""
    try:
        while b"warming up" not in said:
            said += os.read(ours, 4096)
        os.close(ours)
        code = process.wait(DEADLINE_S)
    finally:
        process.kill()
        process.wait()
    assert code == 4
    own.check_undone()
    manifest = json.loads((only_run(tmp_path / "results") / "run.json").read_text())
    assert (manifest["outcome"], manifest["end_utc"] is None) == ("inconclusive", False)


def test_run_whose_target_dies_is_a_bench_fault(own: OwnBench, tmp_path: Path) -> None:
    """QEMU of the target is killed in mid-measurement: exit code 5, the node named, the rest kept."""
    with run_of_a_qualification(own, tmp_path) as process:
        answers = wait_for_first_answers(tmp_path, process)
        os.kill(guests_of(own.spec)[TARGET], signal.SIGKILL)
        code = process.wait(DEADLINE_S)
    said = " ".join((tmp_path / "log").read_text().split())
    assert code == 5, said
    assert "linux-rt lost its power while it measured" in said
    own.check_undone()
    run = only_run(tmp_path / "results")
    assert subprocess.run([sys.executable, "-m", "reports", "verify", str(run)], cwd=ROOT).returncode == 0
    assert json.loads(answers.read_text().splitlines()[-1])["type"] == "result"


def test_run_on_a_full_disk_is_a_bench_fault(own: OwnBench, tmp_path: Path) -> None:
    """The run folder's disk fills in mid-run: exit code 5, the disk named, what was written stays."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)], check=True)
    try:
        with run_of_a_qualification(own, tmp_path, disk / "results") as process:
            code = process.wait(DEADLINE_S)
        said = " ".join((tmp_path / "log").read_text().split())
        assert code == 5, said
        assert "No space left on device" in said
        assert str(disk) in said
        run = only_run(disk / "results")
        assert json.loads((run / "run.json").read_text())["bench"] == own.file.stem
        assert (run / "evidence" / "provisioning" / TARGET / "facts-before.json").stat().st_size > 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    own.check_undone()
