# SPDX-License-Identifier: Apache-2.0
"""What measuring clocks asks of a bench, and what is kept of a servo's words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from hw.bench import BenchSpec, load_bench
from hw.errors import CapabilityError, ConfigError
from hw.open_bench import OpenBench
from hw.provisioning import TARGETS
from reports.clock_sync.logs import ServoSeries
from reports.clock_sync.trial import ClockTrial, Lock, ServerReplies, load_trial, write_trial
from reports.clock_sync.two_way_reference import TWO_WAY
from resources.clock_sync.lab import ClockLab
from resources.clock_sync.servo_summary import servo_summary
from resources.clock_sync.settings import STACKS, SYSTEM_CLOCK, ClockSettings, load_stack, stacks_of_any_kind
from resources.clock_sync.stack import ClockStack
from resources.clock_sync.stack_trials import holdover_trial, load_on_target, locked_trial
from resources.clock_sync.timecard import make_page
from resources.clock_sync.trial import (
    TrialSettings,
    measure_trial,
    reference_of,
    timecard_of,
    with_counter_timecard,
)
from resources.loads.kinds import CpuLoad, DiskLoad, NetworkLoad
from resources.profiles import load_profile
from tests.reports.sample_clock import SECOND_NS, START_TAI_NS, compare_answer, write_clock_trial

VIRTUAL = Path(__file__).resolve().parents[3] / "hw" / "benches" / "virtual.yaml"


@pytest.fixture(scope="module")
def spec() -> BenchSpec:
    return load_bench(VIRTUAL)


def _bench(spec: BenchSpec) -> OpenBench:
    """Stand for an open bench of which nothing but the description is asked."""

    def node(_name: str) -> None:
        return None

    bench: Any = SimpleNamespace(spec=spec, node=node)
    return cast(OpenBench, bench)


def _lab(spec: BenchSpec, folder: Path, profile: str = "ci") -> ClockLab:
    return ClockLab(_bench(spec), spec.targets["linux-rt"], load_profile(profile), folder, print)


def test_a_bench_without_time_server_cannot(spec: BenchSpec, tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match=r"no time server; add benchwright\.time_server"):
        _lab(replace(spec, time_server=None), tmp_path)


def test_a_target_without_timecard_cannot(spec: BenchSpec) -> None:
    target = replace(spec.targets["linux-rt"], timecard=None)
    with pytest.raises(CapabilityError, match=r"add benchwright\.targets\.linux-rt\.timecard"):
        timecard_of(target)


def test_a_target_without_timecard_is_held_against_two_way_transfer(spec: BenchSpec) -> None:
    windows = spec.targets["windows"]
    assert windows.timecard is None
    assert reference_of(windows).clock == TWO_WAY
    assert reference_of(spec.targets["linux-rt"]).clock == "card"


def test_a_target_without_timecard_needs_a_time_server_for_its_stacks_only(
    spec: BenchSpec, tmp_path: Path
) -> None:
    bare = replace(spec, time_server=None)
    lab = ClockLab(_bench(bare), spec.targets["windows"], load_profile("ci"), tmp_path, print)
    with pytest.raises(CapabilityError, match=r"no time server; add benchwright\.time_server"):
        assert lab.server


def test_a_stack_that_the_kind_has_not_is_refused(spec: BenchSpec, tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match="no clock stack 'w32time'"):
        _lab(spec, tmp_path).running("w32time", tmp_path)


def test_a_profile_has_to_say_how_long(spec: BenchSpec, tmp_path: Path) -> None:
    profile = replace(load_profile("ci"), name="unknown")
    with pytest.raises(ConfigError, match=r"times\.toml: unknown: missing"):
        ClockLab(_bench(spec), spec.targets["linux-rt"], profile, tmp_path, print)


def test_an_unknown_load_is_refused(spec: BenchSpec, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must be one of cpu, disk, network, .*; found 'gpu'"):
        load_on_target(_lab(spec, tmp_path), "gpu")


def test_loads_of_a_profile_are_those_of_the_target(spec: BenchSpec, tmp_path: Path) -> None:
    """A fifth of the link from producer 1, every processor, one that writes; each has its longest time."""
    lab = _lab(spec, tmp_path)
    duration_s = lab.times.measure_s + 60
    assert load_on_target(lab, "cpu") == CpuLoad("linux-rt", duration_s)
    assert load_on_target(lab, "disk") == DiskLoad("linux-rt", duration_s)
    assert load_on_target(lab, "network") == NetworkLoad(
        "linux-rt",
        duration_s,
        rate_mbit=200,
        sender=spec.producers[1].node,
        address=lab.target.test_address,
    )


def test_without_a_producer_nobody_loads_the_network(spec: BenchSpec, tmp_path: Path) -> None:
    lab = _lab(replace(spec, producers={}), tmp_path)
    with pytest.raises(CapabilityError, match="no producer 1 that could load the network"):
        load_on_target(lab, "network")


def _servo(clock: Any, times_s: list[float], offsets_ns: list[int]) -> ServoSeries:
    base = START_TAI_NS if clock == "tai" else 0
    n = len(times_s)
    return ServoSeries(
        program="ptp4l",
        source="master",
        clock=clock,
        time_ns=np.array([base + round(second * SECOND_NS) for second in times_s], np.int64),
        offset_ns=np.array(offsets_ns, np.int64),
        freq_ppb=np.zeros(n),
        path_delay_ns=np.array([1000.0] * (n - 1) + [np.nan]),
        state=("s2",) * n,
    )


@pytest.mark.parametrize(
    ("clock", "times_s"),
    [("tai", [-30.0, -1.0, 1.0, 5.0, 9.0]), ("monotonic", [70.0, 99.0, 101.0, 105.0, 109.5])],
)
def test_only_what_the_servo_said_meanwhile_counts(tmp_path: Path, clock: str, times_s: list[float]) -> None:
    write_clock_trial(tmp_path, compare_answer(seconds=10))
    trial = load_trial(tmp_path)
    servo = servo_summary(trial, _servo(clock, times_s, [900_000, 800_000, 100, -500, 100]))
    assert (servo.observations, servo.mean_ns, servo.max_abs_ns) == (3, -100.0, 500)
    assert servo.mean_path_delay_ns == 1000.0


@pytest.mark.parametrize(("clock", "times_s"), [("tai", [-30.0, -20.0]), ("monotonic", [70.0, 80.0])])
def test_a_servo_that_was_silent_meanwhile(tmp_path: Path, clock: str, times_s: list[float]) -> None:
    """After an outage the last line is long past: it tells nothing of when the comparison was."""
    write_clock_trial(tmp_path, compare_answer(seconds=10, start_monotonic_ns=100 * SECOND_NS))
    servo = servo_summary(load_trial(tmp_path), _servo(clock, times_s, [5, 6]))
    assert (servo.observations, servo.mean_ns, servo.max_abs_ns) == (0, None, None)


def test_what_the_servo_said_after_the_comparison_does_not_count(tmp_path: Path) -> None:
    write_clock_trial(tmp_path, compare_answer(seconds=10, start_monotonic_ns=100 * SECOND_NS))
    servo = servo_summary(
        load_trial(tmp_path), _servo("monotonic", [99.0, 101.0, 109.0, 112.0], [9, 2, 4, 9])
    )
    assert (servo.observations, servo.mean_ns, servo.max_abs_ns) == (2, 3.0, 4)


class _Stack:
    """A clock stack that only notes what is done with it."""

    def __init__(self, name: str, folder: Path, done: list[str]) -> None:
        self.name, self.folder, self.done = name, folder, done
        self.settings = ClockSettings()
        self.own_interval_s = 1.0
        self.device = "realtime"
        self.spec = load_stack(name, simulated=True)

    def __enter__(self) -> _Stack:
        self.done.append(f"start {self.name}")
        return self

    def __exit__(self, *_error: object) -> None:
        self.done.append(f"stop {self.name}, logs to {self.folder.name}")

    def wait_locked(self, _deadline_s: float) -> Lock:
        self.done.append(f"lock {self.name}")
        return Lock(1.0, "rule")

    def keep_running(self, duration_s: float) -> None:
        assert duration_s <= 10

    def cut_off(self) -> None:
        self.done.append(f"cut off {self.name}")


class _NotingLab(ClockLab):
    """A lab whose stacks note what is done with them."""

    done: list[str]

    def running(self, clock: str, folder: Path, *_more: object, **_options: object) -> Any:
        self.end_kept()
        return _Stack(clock, folder, self.done)

    def measured(self, stack: Any, *_args: object, **_options: object) -> Any:
        self.done.append(f"measure {stack.name} in {stack.folder.name}")


def _noting_lab(spec: BenchSpec, folder: Path) -> _NotingLab:
    lab = _NotingLab(_bench(spec), spec.targets["linux-rt"], load_profile("ci"), folder, lambda _line: None)
    lab.done = []
    return lab


def _requirement(clock: str) -> Any:
    return SimpleNamespace(of=clock, lock_within_s=60)


def test_holdover_goes_on_with_the_stack_that_was_measured(spec: BenchSpec, tmp_path: Path) -> None:
    """It is locked already; its logs go to a folder of their own, those of the trial before stay."""
    lab = _noting_lab(spec, tmp_path)
    locked_trial(lab, _requirement("chrony"))
    holdover_trial(lab, _requirement("chrony"))
    lab.end_kept()
    assert lab.done == [
        "start chrony",
        "lock chrony",
        "measure chrony in chrony",
        "cut off chrony",
        "measure chrony in chrony-holdover",
        "stop chrony, logs to chrony-holdover",
    ]


def test_a_stack_that_was_left_is_taken_off_before_another_is_put_on(spec: BenchSpec, tmp_path: Path) -> None:
    lab = _noting_lab(spec, tmp_path)
    locked_trial(lab, _requirement("phc2sys"))
    holdover_trial(lab, _requirement("chrony"))
    assert lab.done[3:6] == ["stop phc2sys, logs to phc2sys", "start chrony", "lock chrony"]


def test_a_stack_that_was_left_ends_with_the_lab(spec: BenchSpec, tmp_path: Path) -> None:
    lab = _noting_lab(spec, tmp_path)
    locked_trial(lab, _requirement("chrony"))
    lab.__exit__(None, None, None)
    assert lab.done[-1] == "stop chrony, logs to chrony"


def test_a_stack_at_another_interval_is_not_gone_on_with(spec: BenchSpec, tmp_path: Path) -> None:
    lab = _noting_lab(spec, tmp_path)
    locked_trial(lab, _requirement("chrony"))
    with lab.locked(_requirement("chrony"), tmp_path / "other", 4):
        assert lab.done[-2:] == ["start chrony", "lock chrony"]


def test_another_clock_than_the_systems_cannot_be_seen_by_two_way_transfer(
    spec: BenchSpec, tmp_path: Path
) -> None:
    windows = spec.targets["windows"]
    write_clock_trial(tmp_path, compare_answer())
    facts = replace(load_trial(tmp_path).facts, device="timeservice", timecard=reference_of(windows))
    with pytest.raises(CapabilityError, match="two-way transfer sees the system's clock alone"):
        measure_trial(_bench(spec), windows, facts, TrialSettings(1), tmp_path)
    assert reference_of(with_counter_timecard(windows)).clock.startswith("card:")
    linux = spec.targets["linux-rt"]
    assert with_counter_timecard(linux) == linux


class _LoggingStack:
    """A stack of a kind of target whose daemons run, and whose logs come with their names as their text."""

    def __init__(self, name: str, folder: Path, kind: str) -> None:
        self.folder = folder
        self.spec = load_stack(name, simulated=True, path=TARGETS / kind / STACKS)
        self._logs = self.spec.logs

    servo_log, answers_log = ClockStack.servo_log, ClockStack.answers_log

    def require_running(self) -> None:
        pass

    def fetch_logs(self) -> None:
        for log in self.spec.logs:
            file = self.folder / "target" / log.kept[0].replace("/", "-")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(file.name)


def _measured(
    spec: BenchSpec, folder: Path, monkeypatch: pytest.MonkeyPatch, stack: tuple[str, str], kind: str = "sync"
) -> ClockTrial:
    """Return what is kept of a trial of a stack, (target, name), whose own folder is another one."""
    place = folder / "trial"
    write_clock_trial(place, compare_answer())
    facts = replace(load_trial(place).facts, kind=kind, device=SYSTEM_CLOCK)

    def measure(*_args: object) -> ClockTrial:
        write_trial(place, facts)
        return load_trial(place)

    monkeypatch.setattr("resources.clock_sync.lab.measure_trial", measure)
    lab = ClockLab(_bench(spec), spec.targets["linux-rt"], load_profile("ci"), folder, lambda _line: None)
    logging: Any = _LoggingStack(stack[1], folder / "stack", stack[0])
    lab.measured(logging, facts, TrialSettings(1), place)
    return load_trial(place)


@pytest.mark.parametrize(
    ("stack", "log", "log_format"),
    [
        (("linux-rt", "chrony"), "chrony-statistics.log", "chrony-statistics"),
        (("linux-rt", "ntp-user"), "bw-ntp-user.log", "bw-ntp-user"),
        (("linux-rt", "timeservice"), "bw-timed.log", "bw-timed"),
        (("linux-rt", "ptp-software"), "ptp4l.log", "ptp4l"),
        (("linux-rt", "ptp-hardware"), "ptp4l.log", "ptp4l"),  # phc2sys goes on without the grandmaster
        (("linux-rt", "phc2sys"), "phc2sys.log", "phc2sys"),
        (("windows", "timeservice"), "bw-timed.log", "bw-timed"),
    ],
)
def test_a_trial_names_the_log_by_which_its_stack_heard_its_server(
    spec: BenchSpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stack: tuple[str, str],
    log: str,
    log_format: str,
) -> None:
    trial = _measured(spec, tmp_path, monkeypatch, stack)
    assert trial.facts.hearing == ServerReplies(log, log_format)
    assert (trial.folder / log).read_text() == log


@pytest.mark.parametrize(
    "stack", [("linux-rt", "free-run"), ("windows", "as-found"), ("windows", "w32time")], ids=str
)
def test_a_stack_whose_log_has_no_answers_is_not_asked_for_them(
    spec: BenchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: tuple[str, str]
) -> None:
    assert _measured(spec, tmp_path, monkeypatch, stack).facts.hearing is None


def test_every_stack_was_looked_at() -> None:
    """A new one has to say whether its log has its server's answers: in one of the two tests above."""
    known = {"chrony", "ntp-user", "timeservice", "ptp-software", "ptp-hardware", "phc2sys"}
    assert set(stacks_of_any_kind(lambda _spec: True)) == known | {"free-run", "as-found", "w32time"}


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        *((kind, True) for kind in ("sync", "interval", "load", "asymmetry", "pattern", "edges")),
        *((kind, False) for kind in ("holdover", "oscillator", "step", "grandmaster", "impaired", "events")),
    ],
)
def test_a_trial_that_disturbs_its_stack_is_not_asked_for_answers(
    spec: BenchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, asked: bool
) -> None:
    trial = _measured(spec, tmp_path, monkeypatch, ("linux-rt", "chrony"), kind)
    assert (trial.facts.hearing is not None) == asked


@pytest.mark.parametrize(
    ("clock", "there", "made"),
    [("card", False, False), ("card:C:/p", True, False), ("card:C:/p", False, True)],
)
def test_a_page_that_is_a_file_is_made_once(
    spec: BenchSpec, tmp_path: Path, clock: str, there: bool, made: bool
) -> None:
    put: list[tuple[int, str]] = []

    def note(local: Path, remote: str) -> None:
        put.append((local.stat().st_size, remote))

    def page(_name: str) -> Path | None:
        return tmp_path if there else None

    def node(_name: str) -> Any:
        return SimpleNamespace(put=note)

    bench: Any = SimpleNamespace(spec=spec, node=node, virtual=SimpleNamespace(timecard_page=page))
    make_page(bench, "windows", clock)
    assert put == ([(32768, "C:/p")] if made else [])
