# SPDX-License-Identifier: Apache-2.0
"""The keywords of the time service: what each judges, and what a reader who was not told comes to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from robot.api import Error, SkipExecution

from hw.bench import load_bench
from hw.errors import ConfigError, MeasurementError
from reports import RunFolder
from reports.clock_sync.disturbance import Disturbance, Event, write_disturbance
from reports.clock_sync.trial import ClockTrial, Lock, load_trial, write_trial
from resources.clock_sync.time_service import TimeServiceTrials
from resources.clock_sync.time_service_events import TimeServiceEvents
from resources.clock_sync.time_service_keywords import TimeServiceLibrary
from resources.profiles import load_profile
from tests.reports.clock_sync.test_reported_bound import ramp, told
from tests.reports.sample_clock import START_TAI_NS, compare_answer, write_clock_trial

ROOT = Path(__file__).resolve().parents[3]
FILE = ROOT / "robot" / "clock_sync" / "requirements" / "clock_time_service_virtual.toml"
STEP_NS = 250_000_000


def trial_of(run: RunFolder, answer: dict[str, Any], kind: str = "sync") -> ClockTrial:
    folder = run.evidence_folder("clock_sync", "linux-rt", "timeservice", kind)
    write_clock_trial(folder, answer)
    facts = replace(load_trial(folder).facts, clock="timeservice", device="timeservice", kind=kind)
    write_trial(folder, replace(facts, two_way=None))
    return load_trial(folder)


def library_of(monkeypatch: pytest.MonkeyPatch, profile: str = "ci") -> TimeServiceLibrary:
    """Return the library with a lab that offers the service and does nothing."""
    spec = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")

    def offered(_clock: str) -> None:
        return None

    lab: Any = SimpleNamespace(
        bench=SimpleNamespace(spec=spec),
        target=spec.targets["linux-rt"],
        profile=load_profile(profile),
        require_offered=offered,
    )
    library = TimeServiceLibrary(FILE)
    monkeypatch.setattr(library, "_lab", lab)
    return library


def outcomes(run: RunFolder) -> dict[str, str]:
    return {record.quantity: record.outcome for record in run.records().measurements}


def answer_with(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, found: Any) -> None:
    def act(*_args: object) -> Any:
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(where, name, act)


def test_steady_state_judges_offset_bound_and_lock(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    trial = trial_of(run, told(compare_answer()))
    answer_with(monkeypatch, TimeServiceTrials, "steady", trial)
    library_of(monkeypatch).time_service_should_stay_within_its_limit()
    names = ("lock_time", "sync_offset", "bound_missed", "u_missed", "u_width", "reads_left_out")
    assert outcomes(run) == dict.fromkeys(names, "pass")


def test_a_bound_that_does_not_hold_fails(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    trial = trial_of(run, told(compare_answer(), bound_missed=9, bound_missed_beyond_window=9))
    answer_with(monkeypatch, TimeServiceTrials, "steady", trial)
    with pytest.raises(AssertionError, match="FAIL: CLK-TIMESERVICE-BOUND: 4500 ppm is over 0 ppm"):
        library_of(monkeypatch).time_service_should_stay_within_its_limit()
    assert outcomes(run)["sync_offset"] == "pass"


def test_what_did_not_lock_leaves_a_record_of_each(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    answer_with(monkeypatch, TimeServiceTrials, "steady", MeasurementError("not locked within 60 s"))
    with pytest.raises(Error, match="not locked"):
        library_of(monkeypatch).time_service_should_stay_within_its_limit()
    assert set(outcomes(run).values()) == {"unset"}
    assert len(outcomes(run)) == 6


def test_a_drift_is_judged_where_the_profile_synchronises_as_the_paper(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder
) -> None:
    """By itself, or behind the test of the bound: whichever comes first measures."""
    # ppb: twice the limit, to either side.
    trial = trial_of(run, told(ramp(-100, seconds=4000)), "holdover")
    measured: list[str] = []

    def measure(*_: object) -> ClockTrial:
        measured.append("holdover")
        return trial

    monkeypatch.setattr(TimeServiceTrials, "holdover", measure)
    with pytest.raises(SkipExecution, match="the limit is for 300 s"):
        library_of(monkeypatch).holdover_should_drift_no_faster_than_its_limit()
    assert not measured
    of_acceptance = library_of(monkeypatch, "acceptance")
    with pytest.raises(AssertionError, match=r"FAIL: CLK-TIMESERVICE-HOLDOVER: .100 ppb"):
        of_acceptance.holdover_should_drift_no_faster_than_its_limit()
    of_acceptance.time_service_should_hold_its_bound_in_holdover()
    assert measured == ["holdover"]


def test_a_drift_that_was_not_measured_leaves_a_record(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder
) -> None:
    answer_with(monkeypatch, TimeServiceTrials, "holdover", MeasurementError("not locked within 60 s"))
    with pytest.raises(Error, match="not locked"):
        library_of(monkeypatch, "acceptance").holdover_should_drift_no_faster_than_its_limit()
    assert outcomes(run) == {"holdover_rate": "unset"}


def stepped(run: RunFolder, *, without: int, step_ns: int) -> tuple[ClockTrial, Disturbance, int]:
    steps = [{"time_tai_ns": START_TAI_NS, "step_ns": step_ns}] if step_ns else []
    answer = told(compare_answer(steps=steps), without_bound=without)
    trial = trial_of(run, answer, "server-stepped")
    done = Disturbance(
        "timeservice", "server-stepped", (Event("server's time stepped", 1, Lock(5.0, "rule", 1.0), ""),)
    )
    write_disturbance(trial.folder, done)
    return trial, done, STEP_NS


@pytest.mark.parametrize(
    ("without", "step_ns", "said"),
    [
        (3, STEP_NS, ""),
        (3, STEP_NS * 9 // 10, ""),
        (0, STEP_NS, "FAIL: readers had a time with a bound all along"),
        (3, 0, "FAIL: readers saw the steps none"),
        (3, -STEP_NS, "FAIL: readers saw the steps"),
    ],
)
def test_readers_have_to_be_told_of_a_step(
    monkeypatch: pytest.MonkeyPatch, run: RunFolder, without: int, step_ns: int, said: str
) -> None:
    answer_with(
        monkeypatch, TimeServiceEvents, "server_stepped", stepped(run, without=without, step_ns=step_ns)
    )
    library = library_of(monkeypatch, "nightly")
    if said:
        with pytest.raises(AssertionError, match=said):
            library.readers_should_be_told_of_a_step("server-stepped")
    else:
        library.readers_should_be_told_of_a_step("server-stepped")
    assert outcomes(run) == {"lock_time": "pass"}


def test_what_the_profile_has_no_time_for_is_skipped(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> None:
    library = library_of(monkeypatch)
    for act in (
        library.service_should_come_back_after_a_reboot,
        lambda: library.readers_should_be_told_of_a_step("paused"),
    ):
        with pytest.raises(SkipExecution, match="not what happens there"):
            act()
    assert outcomes(run) == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'quantity = "holdover_rate"\nstatistic = "slope"\nupper_ppb',
            None,
            "no requirement on holdover_rate",
        ),
        ("lock_within_s = 180\n", "", "lock_within_s"),
        (
            'clock = "timeservice"\nquantity = "u_width"',
            'clock = "chrony"\nquantity = "u_width"',
            "must be on",
        ),
    ],
)
def test_a_file_that_lacks_something_is_refused(tmp_path: Path, old: str, new: str | None, said: str) -> None:
    text = FILE.read_text()
    assert old in text
    file = tmp_path / "site.toml"
    file.write_text(text[: text.rindex("[[requirement]]")] if new is None else text.replace(old, new))
    with pytest.raises(ConfigError, match=said):
        list(TimeServiceLibrary(file).selected(()))
