# SPDX-License-Identifier: Apache-2.0
"""An acceptance that is killed, asked to end, or loses its power goes on; nothing is lost or done twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reports.run.integrity import SUMS, changed_files
from resources.accept.__main__ import main
from resources.accept.folder import JOURNAL, AcceptanceFolder
from tests.patience import HANG_S, wait_until

PROGRAM = Path(__file__).with_name("controller.py")
PARTS = 4
PAUSE_S = 0.04
PLAN = """\
schema = "benchwright.acceptance/1"
name = "made-up"
profile = "ci"

[[parts]]
bench = "hw/benches/native.yaml"
targets = ["linux"]
suites = ["robot/daq_replay", "robot/rt_baseline", "robot/stacks", "robot/software_latency"]
longest_min = 5
variables = {REQUIREMENTS = "SITE"}
"""
Json = dict[str, Any]


class Acceptance:
    """A made-up acceptance in a folder, and its controller."""

    def __init__(self, place: Path, outcomes: str = "pass", pause_s: float = PAUSE_S) -> None:
        self.path, self.plan, self.site = place / "hall", place / "plan.toml", place / "site.toml"
        self.site.write_text("# what this site asks\n")
        self.plan.write_text(PLAN.replace("SITE", str(self.site)))
        self.outcomes, self.pause_s = outcomes, pause_s

    def start(self, verb: str) -> subprocess.Popen[str]:
        """Start the controller: `run` or `resume`."""
        argv = [sys.executable, str(PROGRAM), verb, str(self.path), str(self.plan), self.outcomes]
        return subprocess.Popen(
            [*argv, str(self.pause_s)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def do(self, verb: str) -> tuple[int, str]:
        """Run it to its end; its exit code, and what it said."""
        process = self.start(verb)
        output, errors = process.communicate(timeout=HANG_S)
        return process.returncode, output + errors

    def events(self) -> list[Json]:
        """Return the journal."""
        return [json.loads(line) for line in (self.path / JOURNAL).read_text().splitlines()]

    def wait_for(self, event: str, count: int = 1) -> None:
        """Wait until the journal has so many of an event."""

        def there() -> bool:
            try:
                return Counter(each["event"] for each in self.events())[event] >= count
            except (OSError, ValueError):
                return False

        wait_until(there, f"{count} x {event}")

    def has_values(self) -> bool:
        """Say whether a run has a value."""
        return any(file.stat().st_size for file in (self.path / "runs").glob("*/measurements.jsonl"))

    def require_sound(self) -> None:
        """Check that each part has one result, and that no run was touched, lost or counted twice."""
        ended = [each for each in self.events() if each["event"] == "end"]
        assert sorted(each["part"] for each in ended) == list(range(1, PARTS + 1))
        told = [each["run"] for each in self.events() if each.get("run")]
        runs = {f"runs/{each.name}" for each in (self.path / "runs").iterdir() if not each.is_symlink()}
        assert len(told) == len(set(told))
        # A run that was killed before its folder had its name is a draft without a result.
        assert {each for each in runs if not each.startswith("runs/.")} == set(told)
        for each in ended:
            assert changed_files(self.path / each["run"]) == []
            made = json.loads((self.path / each["run"] / "run.json").read_text())
            assert made["profile"] == f"part{each['part']}"


@pytest.fixture
def here(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in the tree, from where the plan's files are."""
    monkeypatch.chdir(repository)


pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("outcomes", "code"), [("pass", 0), ("pass,fail", 1), ("pass,pass,pass,pass:4", 0), ("pass,pass:5", 4)]
)
def test_each_part_is_a_run_and_the_whole_is_their_worst(tmp_path: Path, outcomes: str, code: int) -> None:
    """By its run, not its exit code; but one that says that the bench was at fault is no result."""
    hall = Acceptance(tmp_path, outcomes, pause_s=0)
    ended, said = hall.do("run")
    assert ended == code, said
    if ":5" not in outcomes:
        hall.require_sound()
        assert f"{PARTS} of {PARTS} parts are settled" in said
        assert "dossier: make dossier RUN=" in said
    else:
        assert said.count("exit code 5 and no result") > 3
    assert hall.do("resume")[0] == code, "nothing is left to do"


@pytest.mark.parametrize("seed", range(5))
def test_a_controller_that_is_killed_goes_on(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    hall = Acceptance(tmp_path)
    process = hall.start("run")
    for _ in range(2):
        hall.wait_for("begin")
        time.sleep(draw.uniform(0, 3 * PAUSE_S * PARTS))
        process.kill()
        process.communicate(timeout=HANG_S)
        process = hall.start("resume")
    output, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, output + errors
    hall.require_sound()
    for each in hall.events():
        if each["event"] == "broken":
            assert each["cause"] == "the controller was killed, or the power went"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_that_is_asked_to_end_says_where_it_was(tmp_path: Path, number: signal.Signals) -> None:
    hall = Acceptance(tmp_path, pause_s=0.5)
    process = hall.start("run")
    hall.wait_for("begin", 1)
    wait_until(hall.has_values, "a value")
    process.send_signal(number)
    output, errors = process.communicate(timeout=HANG_S)
    assert (process.returncode, f"broken off by {number.name}" in errors) == (4, True), output + errors
    last = hall.events()[-1]
    assert (last["event"], last["cause"], last["failing"]) == ("broken", number.name, False)
    assert (hall.path / last["run"] / SUMS).exists(), "what it had measured is kept"
    hall.pause_s = 0
    assert hall.do("resume")[0] == 0
    hall.require_sound()


def test_a_failing_part_that_is_cut_is_never_a_pass(tmp_path: Path) -> None:
    for attempt in range(2):
        place = tmp_path / str(attempt)
        place.mkdir()
        hall = Acceptance(place, "fail,pass,pass,pass", pause_s=0.1)
        process = hall.start("run")
        hall.wait_for("begin", 1)
        wait_until(hall.has_values, "a value")
        process.send_signal(signal.SIGKILL if attempt % 2 else signal.SIGTERM)
        process.communicate(timeout=HANG_S)
        hall.outcomes, hall.pause_s = "pass", 0  # who hoped for better luck
        code, said = hall.do("resume")
        assert code == 1, said
        first = [each for each in hall.events() if each["part"] == 1]
        assert [each["event"] for each in first] in (["begin", "broken"], ["begin", "end"])
        if first[-1]["event"] == "broken":
            assert first[-1]["failing"]
            assert main(["waive", str(hall.path), "1", "--reason", " ", "--approver", "A. Smith"]) == 2
            assert main(["waive", str(hall.path), "1", "--reason", "a fuse", "--approver", "A. Smith"]) == 4
            assert hall.do("resume")[0] == 0
            assert [each["event"] for each in hall.events() if each["part"] == 1][2:] == [
                "waive",
                "begin",
                "end",
            ]


def test_what_is_measured_has_to_stay_what_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hall = Acceptance(tmp_path, pause_s=0)
    assert hall.do("run")[0] == 0
    for file in (hall.site, hall.path / "plan.toml"):
        before = file.read_text()
        file.write_text(before + "\n# a little wider\n")
        assert main(["resume", str(hall.path)]) == 2
        assert f"{file}: must be as when the acceptance began" in capsys.readouterr().err
        file.write_text(before)
    hall.site.unlink()
    assert main(["status", str(hall.path)]) == 2
    assert str(hall.site) in capsys.readouterr().err


def test_a_journal_that_was_changed_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hall = Acceptance(tmp_path, "fail", pause_s=0)
    assert hall.do("run")[0] == 1
    journal = hall.path / JOURNAL
    lines = journal.read_text().splitlines(keepends=True)
    for changed in (
        [lines[0], lines[1].replace('"fail"', '"pass"'), *lines[2:]],
        lines[2:],
        [*lines[:-2], lines[-1]],
        ["nonsense\n", *lines[1:]],
    ):
        journal.write_text("".join(changed))
        assert main(["status", str(hall.path)]) == 2
        assert f"{journal}: line" in capsys.readouterr().err
    journal.write_text("".join(lines) + lines[0][:30])  # a line that the power has cut
    assert main(["status", str(hall.path)]) == 1
    assert hall.do("resume")[0] == 1
    assert journal.read_text() == "".join(lines)


def test_two_controllers_do_not_go_on_with_one(tmp_path: Path) -> None:
    hall = Acceptance(tmp_path, pause_s=0.1)
    process = hall.start("run")
    hall.wait_for("begin", 1)
    code, said = hall.do("resume")
    assert (code, "another controller goes on with it" in said) == (5, True)
    process.communicate(timeout=HANG_S)
    hall.require_sound()


def test_a_part_that_breaks_too_often_has_no_verdict(tmp_path: Path) -> None:
    hall = Acceptance(tmp_path, pause_s=0.15)
    process = hall.start("run")
    for _ in range(3):
        begun = sum(each["event"] == "begin" for each in hall.events()) if hall.path.exists() else 0
        hall.wait_for("begin", max(1, begun))
        process.kill()
        process.communicate(timeout=HANG_S)
        process = hall.start("resume")
    process.communicate(timeout=HANG_S)
    folder = AcceptanceFolder.reopen(hall.path)
    states = folder.states()
    assert all(each.is_settled for each in states)
    if len(states[0].breaks) > 2:
        assert (states[0].words, process.returncode) == ("no verdict, broken off too often", 4)
