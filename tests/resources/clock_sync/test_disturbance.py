# SPDX-License-Identifier: Apache-2.0
"""Disturbing a clock: what is done in which order, and that nothing is left after an error."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import MeasurementError
from hw.path_settings import PathSettings, RandomLoss
from hw.protocols import READY_S
from hw.router import PathDirection
from reports.clock_sync.disturbance import load_disturbance
from reports.clock_sync.trial import ClockTrial, Lock, TrialFacts, load_trial, write_trial
from resources.clock_sync import disturbed_trial
from resources.clock_sync.config import STANDBY, Place, server_files
from resources.clock_sync.disturbance import ClockDisturber
from resources.clock_sync.disturbance_settings import DisturbanceSettings, PathImpairment
from resources.clock_sync.disturbed_trial import EventLog
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.lock import RateGoal
from resources.clock_sync.settings import ClockSettings, StackSpec, load_stack
from tests.reports.sample_clock import compare_answer, offset_requirement, write_clock_trial

SPEC = load_bench(Path(__file__).parents[3] / "hw" / "benches" / "virtual.yaml")
LEADER = "525415.fffe.bf1175"
TEMPLATES = Path(__file__).resolve().parents[3] / "targets" / "linux-rt" / "clock"
CHRONY = offset_requirement("CLK-CHRONY", "chrony", limit_ns=2_000_000, lock_within_s=90)
PTP = offset_requirement("CLK-PTP", "ptp-software", limit_ns=2_000_000, lock_within_s=120)
SETTINGS = DisturbanceSettings(
    oscillator_ppb=100_000,
    step_share=0.5,
    path=PathImpairment(300, 200, 5.0),
    oscillator_s=20,
    grandmaster_s=20,
    repeats=2,
    stacks=("chrony",),
    grandmaster=("ptp-software",),
    impaired_s=10,
    impaired=("chrony",),
)


@dataclass
class _Stack:
    """A stack that locks at once, or does not; it writes down what is asked of it."""

    name: str
    did: list[str]
    standby: bool = False
    follows: str = LEADER
    deaf: bool = False
    fails_at: str = ""
    goals: list[RateGoal | None] = field(default_factory=list[RateGoal | None])

    @property
    def settings(self) -> ClockSettings:
        return ClockSettings(standby=self.standby)

    @property
    def spec(self) -> StackSpec:
        return load_stack("ptp-software", simulated=True)

    def __enter__(self) -> _Stack:
        self.do("start")
        return self

    def __exit__(self, *_: object) -> None:
        self.do("stop")

    def do(self, what: str) -> None:
        self.did.append(f"{self.name} {what}" if what in ("start", "stop") else what)
        if self.fails_at and what.startswith(self.fails_at):
            raise MeasurementError(f"{what} fails")

    def wait_locked(self, deadline_s: float, goal: RateGoal | None = None) -> Lock:
        assert deadline_s > 0
        self.goals.append(goal)
        self.do("lock" if goal is None else f"lock at {goal.freq_ppb / 1000:g} ppm")
        return Lock(5.0, "rule", 1.1)

    def silence_server(self) -> None:
        self.do("silence")
        self.follows = self.follows if self.deaf else STANDBY["clock_identity"]

    def bring_back_server(self) -> None:
        self.do("bring back")
        self.follows = LEADER

    def servo_text(self) -> str:
        lines = [f"ptp4l[1.000]: selected best master clock {self.follows}\n"] if self.follows else []
        lines += [
            f"ptp4l[{second}.000]: master offset         10 s2 freq  -33000 path delay    500000\n"
            for second in range(10, 60)
        ]
        return "".join(lines)

    def require_running(self) -> None:
        if self.deaf:
            raise MeasurementError("ptp4l is gone")


def _tool(_node: str, tool: str) -> str:
    return tool


@dataclass
class _Router:
    did: list[str]

    def configure(self, paths: list[PathDirection], settings: PathSettings) -> None:
        assert paths == [PathDirection("grandmaster", "switch")]
        assert isinstance(settings.loss, RandomLoss)
        self.did.append(f"impair {(settings.delay_us, settings.jitter_us, settings.loss.percent)}")

    def clear(self) -> None:
        self.did.append("clear")


@dataclass
class _Job:
    did: list[str]

    def wait_ready(self, _timeout_s: float = READY_S) -> None: ...

    def wait(self, _timeout_s: float) -> int:
        return 0

    def stop(self) -> None:
        self.did.append("end bw-wander")

    def fetch(self) -> Path:
        return Path()


@dataclass
class _Lab:
    """A lab whose measurement is what disturbs it, and a trial that was made beforehand."""

    folder: Path
    did: list[str] = field(default_factory=list[str])
    stacks: list[_Stack] = field(default_factory=list[_Stack])
    changes: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def bench(self) -> Any:
        return SimpleNamespace(spec=SPEC, router=lambda: _Router(self.did), node=self._node, tool=_tool)

    @property
    def target(self) -> Any:
        return SimpleNamespace(node="linux-rt")

    def progress(self, _line: str) -> None: ...

    def _node(self, _name: str) -> Any:
        return SimpleNamespace(run=self._run, start=self._start)

    def _run(self, argv: list[str]) -> None:
        self.did.append(" ".join(argv))

    def _start(self, argv: list[str], _stem: Path) -> _Job:
        self.did.append(" ".join(argv[:5]))
        return _Job(self.did)

    def running(self, clock: str, _folder: Path, *, standby: bool = False) -> _Stack:
        self.stacks.append(_Stack(clock, self.did, standby, **self.changes))
        return self.stacks[-1]

    def facts(self, stack: _Stack, kind: str, lock: Lock) -> TrialFacts:
        write_clock_trial(self.folder / "made", compare_answer())
        return replace(load_trial(self.folder / "made").facts, clock=stack.name, kind=kind, lock=lock)

    def measured(
        self,
        _stack: _Stack,
        facts: TrialFacts,
        _settings: object,
        folder: Path,
        during: Callable[[], None] | None = None,
    ) -> ClockTrial:
        self.did.append("measure")
        write_clock_trial(folder, compare_answer())
        if during is not None:
            during()
        write_trial(folder, facts)
        return load_trial(folder)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Lab:
    monkeypatch.setattr(disturbed_trial, "CALM_S", 0.0)
    return _Lab(tmp_path)


@contextmanager
def disturbing(lab: _Lab) -> Generator[ClockDisturber]:
    disturber = ClockDisturber(cast(ClockLab, lab), SETTINGS)
    try:
        yield disturber
    finally:
        disturber.close()


def test_oscillator_changes_to_both_sides_and_back(lab: _Lab) -> None:
    with disturbing(lab) as disturber:
        trial, done = disturber.oscillator_trial(CHRONY_AS_PTP)
    assert lab.did == [
        "ptp-software start", "lock", "measure",
        "bw-wander --base-ppb 100000 --steps-ms 20", "lock at 67 ppm", "end bw-wander", "lock at -33 ppm",
        "bw-wander --base-ppb -100000 --steps-ms 20", "lock at -133 ppm", "end bw-wander", "lock at -33 ppm",
        "ptp-software stop",
    ]  # fmt: skip
    assert [event.what for event in done.events[:2]] == [
        "oscillator +100 ppm",
        "oscillator +100 ppm, taken back",
    ]
    assert len(done.locks) == 2 * SETTINGS.repeats
    assert {goal.tolerance_ppb for goal in lab.stacks[0].goals if goal is not None} == {25_000}
    assert load_disturbance(trial.folder) == done


CHRONY_AS_PTP = replace(CHRONY, subject=("clock", "ptp-software"))
"""The fake's log is one of ptp4l."""


def test_oscillator_is_given_back_when_the_servo_does_not_follow(lab: _Lab) -> None:
    lab.changes = {"fails_at": "lock at 67"}
    with disturbing(lab) as disturber:
        with pytest.raises(MeasurementError, match="lock at 67 ppm fails"):
            disturber.oscillator_trial(CHRONY_AS_PTP)
        assert lab.did[-2:] == ["end bw-wander", "ptp-software stop"]


def test_step_is_a_share_of_the_limit_and_the_stack_runs_on(lab: _Lab) -> None:
    with disturbing(lab) as disturber:
        _trial, done, step_ns = disturber.step_trial(CHRONY)
        disturber.step_trial(CHRONY)
        assert lab.did.count("chrony start") == 1
        disturber.step_trial(replace(CHRONY, subject=("clock", "ptp-software")))
    assert step_ns == CHRONY.upper_ns // 2
    assert "bw-setclock --step-ns 1000000" in lab.did
    assert [event.what for event in done.events] == ["clock put ahead by 1000 us"]
    assert [what for what in lab.did if what.endswith(("start", "stop"))] == [
        "chrony start",
        "chrony stop",
        "ptp-software start",
        "ptp-software stop",
    ]


def test_a_stack_that_failed_is_not_used_again(lab: _Lab) -> None:
    with disturbing(lab) as disturber:
        lab.changes = {"fails_at": "lock"}
        with pytest.raises(MeasurementError):
            disturber.step_trial(CHRONY)
        lab.changes = {}
        disturber.step_trial(CHRONY)
    assert [what for what in lab.did if what.startswith("chrony")] == ["chrony start", "chrony stop"] * 2


def test_target_follows_the_standby_and_then_the_grandmaster_again(lab: _Lab) -> None:
    with disturbing(lab) as disturber:
        _trial, done = disturber.grandmaster_trial(PTP)
    assert lab.stacks[0].standby
    assert lab.did[1:-1] == ["lock", "measure", *["silence", "lock", "bring back", "lock"] * SETTINGS.repeats]
    lost, back = done.events[:2]
    assert (lost.what, back.what) == ("grandmaster lost", "grandmaster back")
    assert lost.found.startswith(f"{LEADER} → {STANDBY['clock_identity']} after ")
    assert back.found.startswith(f"{STANDBY['clock_identity']} → {LEADER} after ")


@pytest.mark.parametrize("follows", ["", STANDBY["clock_identity"]])
def test_nothing_is_begun_with_the_wrong_grandmaster(lab: _Lab, follows: str) -> None:
    lab.changes = {"follows": follows}
    with disturbing(lab) as disturber, pytest.raises(MeasurementError, match="not the better grandmaster"):
        disturber.grandmaster_trial(PTP)
    assert "silence" not in lab.did
    assert lab.did[-1] == "ptp-software stop"


def test_a_target_that_does_not_change_over_is_an_error(lab: _Lab) -> None:
    lab.changes = {"deaf": True}
    with disturbing(lab) as disturber, pytest.raises(MeasurementError, match="ptp4l is gone"):
        disturber.grandmaster_trial(PTP)
    assert lab.did[-2:] == ["silence", "ptp-software stop"]


def test_path_is_impaired_locked_measured_and_fixed(lab: _Lab) -> None:
    with disturbing(lab) as disturber:
        trial, done = disturber.impaired_trial(CHRONY)
    assert lab.did[1:-1] == ["lock", "impair (300, 200, 5.0)", "lock", "measure", "clear"]
    assert trial.facts.impairment == "delay 300 us, jitter 200 us, loss 5 %, one way"
    assert done.events[0].what == trial.facts.impairment
    assert len(done.locks) == 1


def test_path_is_mended_after_an_error(lab: _Lab) -> None:
    with disturbing(lab) as disturber:
        disturber.step_trial(CHRONY)
        lab.stacks[0].fails_at = "lock"
        with pytest.raises(MeasurementError):
            disturber.impaired_trial(CHRONY)
        lab.stacks[0].fails_at = ""
    assert lab.did[-1] == "chrony stop"
    assert lab.did.count("clear") == sum(what.startswith("impair") for what in lab.did)


def test_time_to_lock_counts_from_the_begin_and_is_no_more_exact_than_the_act() -> None:
    log = EventLog(began_s=time.monotonic() - 20.0)
    log.add("it", 10.0, 11.5, Lock(3.0, "rule", 1.0))
    log.add("it", 19.5, 19.9, Lock(0.1, "rule", 5.0))
    log.add("it", 10.0, 11.0, Lock(3.0, "rule"))
    first, short, unknown = (event.lock for event in log.events)
    assert first is not None
    assert first.after_s == pytest.approx(10.0, abs=2.0)
    assert first.bound_s == 2.5
    assert short is not None
    assert short.bound_s == short.after_s
    assert unknown is not None
    assert unknown.bound_s is None


def test_standby_serves_the_same_clock_under_its_own_name() -> None:
    stack = load_stack("ptp-software", simulated=True)
    place = Place("10.77.0.50", "test0", "", simulated=True)
    alone = server_files(TEMPLATES, stack, ClockSettings().effective(stack), place)
    files = server_files(TEMPLATES, stack, ClockSettings(standby=True).effective(stack), place)
    assert set(files) - set(alone) == {"ptp4l-standby.conf"}
    assert files["ptp4l-server.conf"] == alone["ptp4l-server.conf"]
    leader, standby = (dict(_words(files[name])) for name in ("ptp4l-server.conf", "ptp4l-standby.conf"))
    assert int(leader["priority1"]) < int(standby["priority1"])
    differing = {"priority1", "clockIdentity", "uds_address"}
    assert {key for key in leader if leader[key] != standby[key]} == differing


def _words(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.count(" ") and line[0] not in "#["]
    return [line.split(None, 1) for line in lines]
