# SPDX-License-Identifier: Apache-2.0
"""The keywords on timed edges: each trial leaves its records, none passes by accident, suites share one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from robot.api import Error, SkipExecution

from hw.bench import load_bench
from hw.errors import BenchError, MeasurementError
from reports import RunFolder
from reports.timed_edges.capability import METHODS
from reports.timed_edges.trial import BudgetPart, Budgets, Counts, Delays, EdgeTrial, write_edge_trial
from resources.keywords import judged
from resources.keywords.converters import Nanoseconds
from resources.profiles import load_profile, times_of
from resources.timed_edges import keywords as timed_edges
from resources.timed_edges.keywords import TimedEdgesLibrary
from resources.timed_edges.requirements import load_timed_edge_requirements
from resources.timed_edges.settings import TIMES, edge_times
from resources.timed_edges.trials import EdgePlan, EdgeRun

ROOT = Path(__file__).resolve().parents[3]
REQUIREMENTS = ROOT / "robot" / "timed_edges" / "requirements" / "timed_edges_virtual.toml"
CLOCKS = ROOT / "robot" / "clock_sync" / "requirements" / "clock_sync_virtual.toml"
TIME_SERVICE = CLOCKS.with_name("clock_time_service_virtual.toml")
DEVIATIONS_NS = {
    "gettime-software": 5000.0,
    "rdtsc-software": 4000.0,
    "tgpio-filtered-read": 300.0,
    "tgpio-latch": 15.0,
}


class _Lab:
    """A lab whose trials come out as they are told to."""

    def __init__(self, folder: Path) -> None:
        spec = load_bench(ROOT / "hw" / "benches" / "virtual.yaml")
        profile = load_profile("ci")
        self.folder = folder
        self.times = times_of("ci", TIMES, edge_times)
        self.bench = SimpleNamespace(spec=spec)
        self.target = spec.targets["linux-rt"]
        self.clocks = SimpleNamespace(profile=profile)
        self.deviations_ns = dict(DEVIATIONS_NS)
        self.count = self.times.edges
        self.mean_ns: dict[int, float] = {}
        self.fault: BenchError | None = None
        self.seen = True
        self.open = 0
        self.clock_trial: Callable[[object], None] | None = None

    def __enter__(self) -> _Lab:
        self.open += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.open -= 1

    def method_plan(self, method: str, correlation_error_ns: int = 0, *, check: bool = False) -> EdgePlan:
        name = f"{method}-{correlation_error_ns}-{check}"
        return EdgePlan(name, method, self.count, 1000, correlation_error_ns=correlation_error_ns)

    def trial(self, plan: EdgePlan) -> EdgeRun:
        deviation_ns, mean_ns = (
            self.deviations_ns[plan.method],
            self.mean_ns.get(plan.correlation_error_ns, 0.0),
        )
        half = self.count // 2
        delays = Delays(
            count=self.count,
            mean_ns=mean_ns,
            deviation_ns=deviation_ns,
            minimum_ns=mean_ns - deviation_ns,
            maximum_ns=mean_ns + deviation_ns,
            peak_to_peak_ns={str(self.count): 2 * deviation_ns},
            buckets=((mean_ns - deviation_ns, 1, half), (mean_ns + deviation_ns, 1, self.count - half)),
        )
        part = (BudgetPart("noise", "standard", 1.0),)
        trial = EdgeTrial(
            name=plan.name,
            method=plan.method,
            clock="",
            reference="phc",
            seen_by="oscilloscope",
            oscilloscope="a test",
            period_ns=plan.period_ns,
            correlation_error_ns=plan.correlation_error_ns,
            wanted=plan.wanted,
            delays=delays if self.seen else None,
            budgets=Budgets(part, part, part) if self.seen else Budgets(),
            counts=Counts(wanted=self.count, segments=self.count, pairs=self.count if self.seen else 0),
            failed="" if self.fault is None else str(self.fault),
        )
        folder = self.folder / plan.name
        folder.mkdir(parents=True, exist_ok=True)
        write_edge_trial(folder, trial)
        return EdgeRun(trial, folder, self.fault)


class _Suites:
    """Which suite runs, as Robot tells it."""

    name = "Timed Edges"

    def get_variable_value(self, name: str) -> str:
        return self.name if name == "${SUITE NAME}" else "a test"


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch, run: RunFolder) -> _Lab:
    """Stand in for bench and lab."""
    made = _Lab(run.evidence_folder("timed_edges"))
    bench = SimpleNamespace(bench=made.bench, target=made.bench.spec.targets.__getitem__)

    def clocks(*_: object) -> Any:
        return _Lab(made.folder)

    def edges(*_: object) -> Any:
        return made

    def library() -> Any:
        return bench

    monkeypatch.setattr(timed_edges, "bench_library", library)
    monkeypatch.setattr(timed_edges, "ClockLab", clocks)
    monkeypatch.setattr(timed_edges, "EdgeLab", edges)
    monkeypatch.setattr(timed_edges, "BuiltIn", _Suites)
    monkeypatch.setattr(judged, "BuiltIn", _Suites)
    return made


def _started(lab: _Lab) -> TimedEdgesLibrary:
    library = TimedEdgesLibrary(REQUIREMENTS, CLOCKS)
    library.start_edge_bench("linux-rt", "ci", "", "methods")
    assert lab.open == 1
    return library


def _outcomes(run: RunFolder) -> list[tuple[str, str]]:
    return [(record.requirement, record.outcome) for record in run.records().measurements]


def test_edges_within_their_limits_pass(lab: _Lab, run: RunFolder) -> None:
    _started(lab).edges_should_keep_their_limits("tgpio-latch")
    assert {outcome for _, outcome in _outcomes(run)} == {"pass"}


def test_edges_beyond_their_limits_fail(lab: _Lab, run: RunFolder) -> None:
    lab.deviations_ns["tgpio-latch"] = 1e6
    with pytest.raises(AssertionError, match="FAIL"):
        _started(lab).edges_should_keep_their_limits("tgpio-latch")
    assert "fail" in {outcome for _, outcome in _outcomes(run)}


def test_a_method_without_a_limit_is_shown_and_not_judged(lab: _Lab, run: RunFolder) -> None:
    lab.deviations_ns["gettime-software"] = 1e6
    _started(lab).edges_should_keep_their_limits("gettime-software")
    assert _outcomes(run) == []


def test_a_method_without_a_limit_still_has_to_be_seen(lab: _Lab, run: RunFolder) -> None:
    lab.seen = False
    library = _started(lab)
    with pytest.raises(Error, match="no edge was seen"):
        library.edges_should_keep_their_limits("gettime-software")
    lab.fault = BenchError("oscilloscope a: CURVe?: stopped answering")
    with pytest.raises(Error, match=r"BENCH ERROR: oscilloscope a: CURVe\?"):
        library.edges_should_keep_their_limits("rdtsc-software")


def test_too_few_edges_pass_nothing(lab: _Lab, run: RunFolder) -> None:
    lab.count = 100
    with pytest.raises(AssertionError, match=r"INCONCLUSIVE|UNSET"):
        _started(lab).edges_should_keep_their_limits("tgpio-latch")
    assert "pass" not in {outcome for _, outcome in _outcomes(run)}


def test_an_instrument_that_failed_leaves_a_record_and_is_the_benchs_fault(lab: _Lab, run: RunFolder) -> None:
    lab.fault = BenchError("oscilloscope a: CURVe?: stopped answering")
    with pytest.raises(Error, match=r"BENCH ERROR: oscilloscope a: CURVe\?"):
        _started(lab).edges_should_keep_their_limits("tgpio-latch")
    assert {outcome for _, outcome in _outcomes(run)} == {"inconclusive"}


@pytest.mark.parametrize(
    ("filtered_ns", "expected"), [(300.0, "pass"), (15.5, "inconclusive"), (5.0, "fail")]
)
def test_the_order_is_judged_by_u(lab: _Lab, run: RunFolder, filtered_ns: float, expected: str) -> None:
    lab.deviations_ns["tgpio-filtered-read"] = filtered_ns
    library = _started(lab)
    for method in METHODS:
        library.edges_should_keep_their_limits(method)
    if expected == "pass":
        library.methods_should_be_in_the_order_of_the_paper()
    else:
        with pytest.raises(AssertionError, match=expected.upper()):
            library.methods_should_be_in_the_order_of_the_paper()
    found = [outcome for requirement, outcome in _outcomes(run) if requirement == "EDGE-ORDER"]
    assert found == [expected, "pass", "pass"]


def test_an_order_without_all_methods_is_none(lab: _Lab) -> None:
    library = _started(lab)
    library.edges_should_keep_their_limits("tgpio-latch")
    with pytest.raises(Error, match="tgpio-filtered-read: was not measured in this suite"):
        library.methods_should_be_in_the_order_of_the_paper()


@pytest.mark.parametrize(("seen_ns", "expected"), [(201.0, "pass"), (150.0, "inconclusive")])
def test_a_mistake_has_to_show(lab: _Lab, run: RunFolder, seen_ns: float, expected: str) -> None:
    lab.mean_ns = {0: 0.0, 200: seen_ns}
    library = _started(lab)
    if expected == "pass":
        library.error_of_the_correlation_should_show("tgpio-latch", Nanoseconds(200))
    else:
        with pytest.raises(AssertionError, match="does not show"):
            library.error_of_the_correlation_should_show("tgpio-latch", Nanoseconds(200))
    assert _outcomes(run) == [("BENCH-EDGE-ERROR", expected)]


def test_a_clock_that_the_profile_does_not_name_is_skipped(lab: _Lab) -> None:
    lab.times = replace(lab.times, clocks=("phc2sys",))
    with pytest.raises(SkipExecution, match="profile ci watches no edges of chrony"):
        _started(lab).edges_of_the_clock_should_keep_its_limits("chrony")


def test_a_clock_that_does_not_lock_leaves_unset_records(lab: _Lab, run: RunFolder) -> None:
    def no_lock(_requirement: object) -> None:
        raise MeasurementError("phc2sys did not lock within 60 s")

    lab.times = replace(lab.times, clocks=("phc2sys",))
    lab.clock_trial = no_lock
    library = _started(lab)
    with pytest.raises(Error, match=r"MEASUREMENT ERROR: phc2sys did not lock within 60 s"):
        library.edges_of_the_clock_should_keep_its_limits("phc2sys")
    records = run.records().measurements
    assert {record.outcome for record in records} == {"unset"}
    wanted = {one.id for one in load_timed_edge_requirements(REQUIREMENTS).of_clock("phc2sys")}
    assert {record.requirement for record in records} == wanted
    for record in records:
        assert (record.quantity, record.subject.clock, record.value) == ("sync_offset", "phc2sys", None)
        assert record.reason == "phc2sys did not lock within 60 s"


def test_suites_inside_another_share_its_bench(lab: _Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    library = _started(lab)
    monkeypatch.setattr(_Suites, "name", "Timed Edges.Methods")
    library.start_edge_bench("linux-rt", "ci", "", "inner")
    assert (lab.open, lab.folder.name) == (1, "inner")
    assert library.stop_edge_bench() is False
    assert lab.open == 1
    monkeypatch.setattr(_Suites, "name", "Timed Edges")
    assert library.stop_edge_bench() is True
    assert lab.open == 0
    assert library.stop_edge_bench() is True  # works after half a setup


def test_without_a_bench_there_are_no_edges(lab: _Lab) -> None:
    library = TimedEdgesLibrary(REQUIREMENTS, CLOCKS)
    with pytest.raises(Error, match="call `Start Edge Bench` first"):
        library.edges_should_keep_their_limits("tgpio-latch")
    assert lab.open == 0


def test_a_clock_that_steers_no_other_locks_by_the_file_of_its_own(lab: _Lab, run: RunFolder) -> None:
    asked: list[tuple[str, int]] = []

    def no_lock(requirement: Any) -> None:
        asked.append((requirement.of, requirement.lock_within_s))
        raise MeasurementError("it did not lock")

    lab.clock_trial = no_lock
    library = TimedEdgesLibrary(REQUIREMENTS, CLOCKS, TIME_SERVICE)
    library.start_edge_bench("linux-rt", "ci", "", "clocks")
    with pytest.raises(Error, match="it did not lock"):
        library.edges_of_the_clock_should_keep_its_limits("timeservice")
    assert asked == [("timeservice", 180)]
    assert _outcomes(run) == [("EDGE-TIMESERVICE", "unset")]
