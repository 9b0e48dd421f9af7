# SPDX-License-Identifier: Apache-2.0
"""One exit code for a run: the worst thing that happened decides (docs/exit-codes.md)."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from hw.errors import BenchError
from reports.record.measurement import (
    RULE,
    SCHEMA,
    Conditions,
    Limit,
    Measurement,
    Outcome,
    Subject,
    Uncertainty,
    utc_now,
)
from reports.run.failed_tests import FailedTest
from reports.run.folder import RunFolder
from reports.run.manifest import TestCounts as Counts
from reports.run.outcome import BAD_INPUT, BENCH_FAULT, FAIL, NO_CAPABILITY, NO_VERDICT, PASS, outcome_of
from reports.run.selected import SelectedFile, SelectedSuite, unmeasured
from resources import qualify
from resources.qualify import exit_code

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Run:
    """What a run left behind; as it is, all is well."""

    robot_code: int = 0
    outcomes: tuple[Outcome, ...] = ("pass", "pass")
    messages: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    passed: int = 2
    skipped: int = 0

    def code(self, folder: Path) -> int:
        """Write it as a run folder; return the exit code."""
        run = RunFolder.create(folder, "virtual", "ci", simulated=True)
        for number, outcome in enumerate(self.outcomes):
            run.append(record(run.run_id, f"R-{number}", outcome))
        run.update(
            tests=Counts(self.passed, len(self.messages), self.skipped),
            failed_tests=tuple(
                FailedTest("", f"t{n}", " ".join(m.split())) for n, m in enumerate(self.messages)
            ),
        )
        for problem in self.problems:
            run.add_problem(problem)
        run.close()
        run.finalise()
        return exit_code(self.robot_code, outcome_of(run))


def record(run_id: str, requirement: str, outcome: Outcome) -> Measurement:
    """Return a record with an outcome."""
    return Measurement(
        SCHEMA, run_id, "test", requirement, "sync_offset", "max", 5, "ns", 5, 3, 0, 0,
        Limit(10, None, "the test"), Uncertainty.from_parts([]), 5, RULE, outcome, "",
        Subject("virtual", "linux-rt"), Conditions("ci"), True, (), utc_now(),
    )  # fmt: skip


CONFIG = "Parent suite setup failed:\nCONFIG ERROR: site.toml: requirements.name: missing"
BENCH = "Parent suite setup failed:\nBENCH ERROR: node linux-rt is off"
MEASUREMENT = "Parent suite setup failed:\nMEASUREMENT ERROR: nothing has been replayed"
BUG = "Parent suite setup failed:\nKeyError: 'clocks'"
FAILED = "FAIL: DAQ-031: 61 ms is over the limit"
INCONCLUSIVE = "INCONCLUSIVE: DAQ-031: generator late"
UNSET = "UNSET: DAQ-031: no sample"


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (Run(), PASS),
        (Run(1, ("pass", "fail"), (FAILED,)), FAIL),
        (Run(1, ("pass", "inconclusive"), (INCONCLUSIVE,)), NO_VERDICT),
        (Run(1, ("pass", "unset"), (UNSET,)), NO_VERDICT),
        (Run(1, ("pass", "error"), ("ERROR: DAQ-031",)), BENCH_FAULT),
        (Run(2, (), (CONFIG, CONFIG), passed=0), BAD_INPUT),
        (Run(2, (), (BENCH, BENCH), passed=0), BENCH_FAULT),
        (Run(2, (), (MEASUREMENT, MEASUREMENT), passed=0), NO_VERDICT),
        (Run(2, (), (BUG, BUG), passed=0), BENCH_FAULT),
        (Run(0, (), passed=0, skipped=2), NO_CAPABILITY),
        (Run(0, ("pass",), skipped=1), PASS),
        (Run(252, (), passed=0), BAD_INPUT),
        (Run(253, ("pass",)), NO_VERDICT),
        (Run(255, ("pass",)), BENCH_FAULT),
        (Run(0, (), passed=0), BAD_INPUT),
        (Run(0, ()), NO_VERDICT),  # tests passed, but nothing was measured
        (Run(254, problems=("render: disk full",)), BENCH_FAULT),
        # The worse of two things.
        (Run(2, ("fail", "inconclusive"), (FAILED, INCONCLUSIVE)), FAIL),
        (Run(2, ("fail",), (FAILED, BENCH)), FAIL),
        (Run(2, ("inconclusive",), (INCONCLUSIVE, BENCH)), BENCH_FAULT),
        (Run(2, ("pass",), (MEASUREMENT, CONFIG)), BAD_INPUT),
        (Run(2, ("pass",), (BENCH, CONFIG)), BAD_INPUT),
        (Run(253, ("fail",), (FAILED,)), FAIL),
        (Run(254, ("inconclusive",), (INCONCLUSIVE,), ("finalise: disk full",)), BENCH_FAULT),
        (Run(1, ("pass", "pass"), ("AssertionError: of a site's own keyword",)), FAIL),
    ],
)
def test_the_worst_decides(tmp_path: Path, run: Run, code: int) -> None:
    assert run.code(tmp_path) == code


@pytest.mark.parametrize("bad", ["inconclusive", "unset", "error", "fail"])
@pytest.mark.parametrize("robot_code", [0, 1, 250, 251, 253, 254, 255])
@pytest.mark.parametrize("messages", [(), (INCONCLUSIVE,), (BENCH,), (MEASUREMENT,), (CONFIG,)])
def test_one_requirement_that_is_not_met_is_never_a_pass(
    tmp_path: Path, bad: Outcome, robot_code: int, messages: tuple[str, ...]
) -> None:
    code = Run(robot_code, ("pass", bad), messages).code(tmp_path)
    assert code != PASS
    assert (code == FAIL) == (bad == "fail")


@pytest.mark.parametrize("robot_code", [1, 17, 250, 251, 252, 253, 254, 255])
def test_a_robot_that_did_not_end_well_is_never_a_pass(tmp_path: Path, robot_code: int) -> None:
    assert Run(robot_code).code(tmp_path) != PASS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bench", "absent.yaml"], "absent.yaml: No such file or directory"),
        (["--profile", "hasty"], "no profile 'hasty'; there are: quick, ci, nightly, acceptance, soak"),
        (["--suite", "robot/absent"], "--suite robot/absent: must be a .robot file, or a folder with some"),
        (["--suite", "docs"], "--suite docs: must be a .robot file"),
        (["--prof", "ci"], "unrecognized arguments: --prof"),
    ],
)
def test_bad_arguments_are_refused_before_anything_runs(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "resources.qualify", "--results", str(tmp_path), *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == BAD_INPUT
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_bench_that_is_held_is_said_once_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def held(name: str) -> None:
        raise BenchError(f"bench {name!r} is held by root (process 7)")

    monkeypatch.setattr(qualify, "reserve", held)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert qualify.main(["--results", str(tmp_path)]) == BENCH_FAULT
    assert capsys.readouterr().err == "qualify: bench 'virtual' is held by root (process 7)\n"
    assert list(tmp_path.iterdir()) == []


def test_a_virtual_bench_without_root_is_no_capability(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    def lock(_spec: object) -> None:
        pytest.fail("its lock belongs to root")

    monkeypatch.setattr(qualify, "require_free", lock)
    assert qualify.main(["--bench", str(ROOT / "hw/benches/native.yaml")]) == NO_CAPABILITY
    assert "needs root" in capsys.readouterr().err


def test_a_run_goes_on_when_nobody_reads_what_it_says(tmp_path: Path) -> None:
    """As of `make qualify | head`: who prints is not ended by it."""
    script = f"seq 20000; seq 20000 >&2; touch {tmp_path}/done"
    program = (
        "import subprocess, sys\n"
        "from resources.qualify import relay, say_on\n"
        f"child = subprocess.Popen(['sh', '-c', {script!r}], stdout=-1, stderr=-1)\n"
        "for each in relay(child): each.join()\n"
        "child.wait()\n"
        "for number in range(20000): say_on(sys.stdout, 'Verdict: PASS')\n"
        "sys.exit(7)\n"
    )
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"1\n"
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 7
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize(
    ("asked", "require_all", "code", "said"),
    [
        (48, True, NO_VERDICT, "47 of 48 asked not measured"),
        (48, False, PASS, "47 of 48"),
        (1, True, PASS, ""),
    ],
)
def test_less_measured_than_asked(
    tmp_path: Path, asked: int, require_all: bool, code: int, said: str
) -> None:
    run = RunFolder.create(tmp_path, "virtual", "ci", simulated=True)
    run.append(record(run.run_id, "R-0", "pass"))
    ids = tuple(f"R-{number}" for number in range(asked))
    suite = SelectedSuite("", "daq_replay/latency_budgets.robot", (SelectedFile("site.toml", ids),))
    run.update(tests=Counts(1, 0, 0), asked=(suite,))
    run.close()
    run.finalise()
    came_out = outcome_of(run)
    assert exit_code(0, came_out, require_all=require_all) == code
    assert said in unmeasured(came_out.states)
    assert bool(said) == bool(unmeasured(came_out.states))
