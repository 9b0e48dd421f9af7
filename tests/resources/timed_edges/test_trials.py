# SPDX-License-Identifier: Apache-2.0
"""A trial of timed edges: what runs while the oscilloscope looks, what is kept, and what three witnesses say.

The oscilloscope is a virtual one behind the real driver; the edges are replayed, so that no guest is needed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.bench import load_bench
from hw.edges import CapturedEdges
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.virtual.oscilloscope.edges import ReplayedEdges
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.keysight.instrument import InfiniiVision
from hw.virtual.oscilloscope.server import Server
from reports.clock_sync.trial import ClockTrial, load_trial
from reports.timed_edges.trial import CAPTURED_EDGE, CROSS_TIMESTAMPS, OSCILLOSCOPE, load_edge_trial
from reports.timed_edges.verdict import witness_en
from resources.clock_sync.lab import ClockLab
from resources.profiles import load_profile
from resources.timed_edges.settings import EdgeTimes
from resources.timed_edges.trials import EdgeLab, EdgeRun, compared_meanwhile, doubted, serial_of
from resources.timed_edges.witnesses import captured_offsets_ns, clock_witnesses, wander_ns
from scope.drivers.link import Link
from scope.drivers.oscilloscope import ScpiOscilloscope
from tests.fake_bench import FakeBench, FakeJob, FakeNode
from tests.hw.virtual_oscilloscope.controller import hardware, pulses
from tests.patience import HANG_S
from tests.reports.sample_clock import compare_answer, write_clock_trial

pytestmark = pytest.mark.timed

VIRTUAL = Path(__file__).resolve().parents[3] / "hw" / "benches" / "virtual.yaml"
TIMES = EdgeTimes(
    edges=250,
    period_ns=2_000_000,
    error_edges=250,
    latches=100,
    clocks=("chrony",),
    clock_edges=200,
    clock_period_us=10000,
    trial_max_s=20,
)
DELAY_NS = 300.0
SECOND_NS = 1_000_000_000


class _Target(FakeNode):
    """The target's node, and its pins."""

    def __init__(self, bench: FakeBench) -> None:
        super().__init__(bench, "linux-rt")
        self.reference: list[str] = []

    def start(self, argv: Sequence[str], stem: Path) -> FakeJob:
        assert self.reference == ["started"]  # the reference runs before the software asks for its latches
        return super().start(argv, stem)

    def start_periodic(self, period_ns: int, start_ns: int | None = None) -> int:
        assert start_ns is None
        self.reference.append("started")
        return 7 * period_ns

    def stop(self) -> dict[str, object]:
        self.reference.append("stopped")
        return {}


@contextmanager
def _lab(
    folder: Path, faults: set[Fault] | None = None, result: dict[str, Any] | None = None
) -> Generator[tuple[EdgeLab, FakeBench, _Target], None, None]:
    spec = load_bench(VIRTUAL)
    result = {"valid": True, "invalid_reasons": []} if result is None else result
    bench: Any = FakeBench(spec, lines=[{"type": "result", **result}])
    target = bench.nodes["linux-rt"] = _Target(bench)
    edges = ReplayedEdges(pulses(round(DELAY_NS * 1000), 2_000_000_000))
    instrument = InfiniiVision(hardware(noise_v=0.01, memory_samples=8_000_000), edges, faults or set())
    with Server(instrument) as server:
        patience_s = 2.0 if faults else HANG_S
        link = Link("infiniivision", f"TCPIP::127.0.0.1::{server.port}::SOCKET", timeout_s=patience_s)
        bench.instruments = SimpleNamespace(
            oscilloscope=lambda _name: ScpiOscilloscope(link),  # pyright: ignore
            timed_output=lambda _target, _role, _folder: target,  # pyright: ignore
        )
        clocks = ClockLab(bench, spec.targets["linux-rt"], load_profile("ci"), folder, lambda _line: None)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("resources.timed_edges.trials.edge_times", _times)
            lab = EdgeLab(clocks, "")
        yield lab, bench, target


def _times(_table: object) -> EdgeTimes:
    return TIMES


def test_a_trial_keeps_delays_budget_waveforms_and_what_the_software_said(tmp_path: Path) -> None:
    with _lab(tmp_path) as (lab, bench, target):
        run = lab.trial(lab.method_plan("tgpio-latch"))
    trial = load_edge_trial(tmp_path / "tgpio-latch")
    assert trial == run.trial
    assert run.fault is None
    assert trial.delays is not None
    assert trial.delays.count >= TIMES.edges
    assert trial.delays.mean_ns == pytest.approx(DELAY_NS, abs=5.0)
    assert trial.oscilloscope.startswith("KEYSIGHT")
    assert (trial.software_file, trial.waveforms_file) == ("software.ndjson", "waveforms.json")
    assert trial.budgets.mean is not None
    assert "pin_resolution" in {part.name for part in trial.budgets.mean}
    assert not trial.doubts
    job = bench.jobs[0]
    assert f"stop {job.name}" in bench.log
    assert job.argv[job.argv.index("--start-phc-ns") + 1] == str(7 * 2_000_000)
    assert target.reference == ["started", "stopped"]


def test_software_that_failed_is_a_doubt(tmp_path: Path) -> None:
    answer = {"valid": False, "invalid_reasons": ["reading the PHC: no such device"]}
    with _lab(tmp_path, result=answer) as (lab, _, _):
        run = lab.trial(lab.method_plan("tgpio-filtered-read", 200, check=True))
    assert run.trial.doubts == ("the software: reading the PHC: no such device",)
    assert run.trial.correlation_error_ns == 200
    assert run.folder.name == "tgpio-filtered-read-200-ns-wrong"


def test_an_instrument_that_fails_is_the_benchs_fault_and_what_came_is_kept(tmp_path: Path) -> None:
    with _lab(tmp_path, {Fault.FEWER_FRAMES}) as (lab, bench, _):
        run = lab.trial(lab.method_plan("tgpio-latch"))
    assert isinstance(run.fault, BenchError)
    assert "oscilloscope infiniivision" in str(run.fault)
    trial = load_edge_trial(run.folder)
    assert "125 segments were acquired, 250 asked for" in trial.failed
    assert trial.delays is not None
    assert trial.delays.count == 125
    assert f"stop {bench.jobs[0].name}" in bench.log


def test_a_bench_without_that_oscilloscope_cannot(tmp_path: Path) -> None:
    with _lab(tmp_path) as (lab, _, _), pytest.raises(CapabilityError, match="no oscilloscope other"):
        EdgeLab(lab.clocks, "other")


def test_a_profile_has_to_say_how_many(tmp_path: Path) -> None:
    with _lab(tmp_path) as (lab, _, _):
        lab.clocks.profile = replace(lab.clocks.profile, name="unknown")
        with pytest.raises(ConfigError, match=r"times\.toml: unknown: missing; there are: quick, ci"):
            EdgeLab(lab.clocks, "")


@pytest.mark.parametrize(
    ("clock", "view", "device"),
    [
        ("chrony", "clock-edge-timecard", "realtime"),
        ("phc2sys", "clock-edge-phc", "realtime"),
        ("timeservice", "clock-edge-timecard", "timeservice"),
    ],
)
def test_a_clock_is_held_against_what_it_follows(tmp_path: Path, clock: str, view: str, device: str) -> None:
    with _lab(tmp_path) as (lab, bench, _):
        plan = lab.clock_plan(clock)
        assert (plan.view, plan.device) == (view, device)
        lab.trial(replace(plan, captures=False, wanted=20))
        (argv,) = [job.argv for job in bench.jobs]
        assert argv[argv.index("--clock") + 1] == device


def test_the_serial_number_is_the_third_field() -> None:
    assert serial_of("KEYSIGHT TECHNOLOGIES,MSO-X 4154A,MY1234,07.20") == "MY1234"
    assert serial_of("somebody") == ""


def test_a_clock_is_compared_while_the_oscilloscope_looks(tmp_path: Path) -> None:
    answer = compare_answer(seconds=10)
    for number, row in enumerate(answer["series"]["rows"]):
        row[2] = number * 1000.0
    write_clock_trial(tmp_path, answer)
    compared = load_trial(tmp_path)
    points = compared.filtered.series
    offset_s = (points[0].time_tai_ns - compared.filtered.start_tai_ns) / SECOND_NS
    step_s = (points[1].time_tai_ns - points[0].time_tai_ns) / SECOND_NS
    view = compared_meanwhile(compared, (offset_s + 1.9 * step_s, offset_s + 4.1 * step_s))
    assert view is not None
    assert view.n == sum(point.n for point in points[2:5])
    assert 2000 <= view.offset_ns <= 4000
    last_s = (points[-1].time_tai_ns - points[0].time_tai_ns) / SECOND_NS + offset_s
    assert compared_meanwhile(compared, (last_s - 1.0, last_s + 1.0)) is None  # half of it was not seen


def test_edges_of_a_clock_that_was_not_synchronised_are_doubted(tmp_path: Path) -> None:
    with _lab(tmp_path) as (lab, _, _):
        run = lab.trial(lab.method_plan("tgpio-latch"))
    assert doubted(run, []) is run
    cause = "chrony: no answer of its server for 14.2 s"
    found = doubted(run, [cause])
    assert found.trial.doubts == (*run.trial.doubts, cause)
    assert load_edge_trial(run.folder) == found.trial


# -- witnesses


def test_an_edge_before_its_full_period_is_that_of_a_clock_ahead() -> None:
    period_ns = 10_000_000
    instants = [5 * period_ns - 300, 6 * period_ns + 200, 7 * period_ns]
    assert captured_offsets_ns(instants, period_ns) == [300, -200, 0]


def _witnessed(folder: Path, captured_ns: int, seen_ns: float) -> tuple[EdgeRun, ClockTrial]:
    """Return a clock that `compare` finds off as the sample has it, and where the other two see it."""
    write_clock_trial(folder, compare_answer())
    compared = load_trial(folder)
    points = compared.filtered.series
    first_s, last_s = points[0].time_tai_ns // SECOND_NS, points[-1].time_tai_ns // SECOND_NS + 1
    instants = [second * SECOND_NS - captured_ns for second in range(first_s, last_s + 1)]
    with _lab(folder) as (lab, _, _):
        run = lab.trial(lab.method_plan("tgpio-latch"))
    assert run.trial.delays is not None
    trial = replace(
        run.trial,
        clock="phc2sys",
        period_ns=SECOND_NS,
        delays=replace(run.trial.delays, mean_ns=-seen_ns),
    )
    captured = CapturedEdges(tuple(enumerate(instants)), len(instants))
    return replace(run, trial=trial, captured=captured), compared


def test_three_witnesses_stand_side_by_side(tmp_path: Path) -> None:
    run, compared = _witnessed(tmp_path, captured_ns=400, seen_ns=390.0)
    found = {witness.name: witness for witness in clock_witnesses(run, compared).witnesses}
    assert list(found) == [CROSS_TIMESTAMPS, CAPTURED_EDGE, OSCILLOSCOPE]
    assert found[CAPTURED_EDGE].offset_ns == pytest.approx(400)
    assert found[OSCILLOSCOPE].offset_ns == pytest.approx(390)
    assert all(witness.parts and not witness.failed for witness in found.values())
    agreed = witness_en(found[CAPTURED_EDGE], found[OSCILLOSCOPE])
    assert agreed is not None


def test_witnesses_that_do_not_agree_show(tmp_path: Path) -> None:
    run, compared = _witnessed(tmp_path, captured_ns=400, seen_ns=400_000_000.0)
    found = {witness.name: witness for witness in clock_witnesses(run, compared).witnesses}
    apart = witness_en(found[CAPTURED_EDGE], found[OSCILLOSCOPE])
    assert apart is not None
    assert apart > 1


def test_a_witness_that_saw_nothing_says_so(tmp_path: Path) -> None:
    run, compared = _witnessed(tmp_path, captured_ns=400, seen_ns=390.0)
    found = clock_witnesses(replace(run, captured=None), compared).witnesses
    by_name = {witness.name: witness for witness in found}
    assert by_name[CAPTURED_EDGE].failed == "no edge was captured"
    assert by_name[CAPTURED_EDGE].offset_ns is None
    nothing = replace(run.trial, delays=None, failed="oscilloscope x: no trigger", waveforms_file="")
    seen = clock_witnesses(replace(run, trial=nothing), compared).witnesses[2]
    assert seen.failed == "oscilloscope x: no trigger"


def test_a_mean_of_other_moments_is_known_by_how_the_clock_wanders() -> None:
    assert wander_ns([SECOND_NS], [7.0]) == 0.0
    offsets = [0.0, 10.0] * 50
    times_ns = [number * SECOND_NS // 25 for number in range(100)]  # nearly four seconds
    assert wander_ns(times_ns, offsets) == pytest.approx(5.0 / 2, rel=0.03)
