# SPDX-License-Identifier: Apache-2.0
"""What rtla is told, what a target has to have, and what leaves no figure."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from reports.rt_baseline.noise import load_noise
from reports.rt_baseline.timerlat import TimerlatFacts, read_timerlat
from resources.rt_baseline.traced_trial import AskedTraces, Traces, measure_traces
from resources.tools.kernel_recorder import KernelEvents
from tests.fake_bench import FakeBench, FakeJob
from tests.reports.rt_baseline.test_noise import QUIET
from tests.reports.rt_baseline.test_timerlat import SCENE
from tests.reports.rt_baseline.trace_sample import Event, write_histogram, write_ring, write_table

TARGET: Any = SimpleNamespace(node="board", kind="linux-rt")
ASKED = AskedTraces(3, 2)


class Printing(FakeJob):
    """A run of rtla."""

    def fetch(self) -> Path:
        """Write what it prints."""
        file = super().fetch()
        if "hwnoise" in self.argv:
            write_table(file, 55, 35, 2)
        else:
            write_histogram(file, {40: 1, 3970: 1}, {60: 1, 4000: 1})
        return file


class TracedBench(FakeBench):
    """A bench of a target that is a machine of its own, without a witness."""

    def __init__(self, exit_code: int = 0, *, has_rtla: bool = True) -> None:
        spec = SimpleNamespace(witness=None, virtual=None)
        super().__init__(spec, answer=self._says, exit_code=exit_code)
        self.has_rtla = has_rtla
        self.virtual = SimpleNamespace(target_account=lambda: None)

    def _says(self, _node: str, argv: Sequence[str]) -> tuple[int, str, str]:
        return int(argv[0] == "sh" and not self.has_rtla), "", ""


def measured(
    bench: TracedBench,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    lacks: str = "none",
    timerlat: Sequence[Event] = SCENE,
) -> tuple[Traces, list[KernelEvents]]:
    """Measure on a bench whose time passes at once; return what came of it, and what was recorded."""
    recorded: list[KernelEvents] = []

    @contextmanager
    def recorder(_node: object, what: KernelEvents) -> Generator[Any, None, None]:
        if any(lacks in event for event in what.events):
            raise CapabilityError(f"board: the kernel has no {lacks}")
        recorded.append(what)
        events = QUIET if "osnoise/sample_threshold" in what.events else timerlat

        def end(file: Path) -> None:
            write_ring(file.parent, events)

        yield SimpleNamespace(end=end)

    def nothing(*_: object) -> None:
        pass

    def start(argv: Sequence[str], stem: Path) -> FakeJob:
        bench.jobs.append(Printing(bench, "board", argv, stem))
        return bench.jobs[-1]

    monkeypatch.setattr("resources.rt_baseline.traced_trial.silence", nothing)
    monkeypatch.setattr("resources.rt_baseline.traced_trial.kernel_recorded", recorder)
    monkeypatch.setattr(bench.node("board"), "start", start)
    return measure_traces(cast(OpenBench, bench), TARGET, ASKED, folder), recorded


def test_both_are_recorded_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = TracedBench()
    traces, recorded = measured(bench, tmp_path, monkeypatch)
    assert traces.noise_failed is None
    assert load_noise(tmp_path / "noise").largest == (0, 35_400)
    assert isinstance(traces.split, TimerlatFacts)
    assert traces.split == read_timerlat(tmp_path / "timerlat")
    assert (traces.split.machine, traces.split.late) == ("own", 1)
    noise, timerlat = ([*job.argv] for job in bench.jobs)
    assert noise[:2] == ["rtla", "hwnoise"]
    assert noise[noise.index("--duration") + 1] == "3s"
    assert noise[noise.index("--threshold") + 1] == "10"
    assert timerlat[:3] == ["rtla", "timerlat", "hist"]
    assert timerlat[timerlat.index("--duration") + 1] == "2s"
    # Threads of rtla's own would keep the second instance from beginning.
    assert "--kernel-threads" in timerlat
    assert [what.events[0] for what in recorded[-2:]] == ["osnoise/sample_threshold", "tracer:timerlat"]
    assert {what.clock for what in recorded} == {"tai"}


def test_a_kernel_without_tracers_is_skipped_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = TracedBench()
    traces, _ = measured(bench, tmp_path, monkeypatch, lacks="osnoise/")
    assert isinstance(traces.noise_failed, CapabilityError)
    assert str(traces.noise_failed) == "no tracer osnoise: board: the kernel has no osnoise/"
    assert str(traces.split) == "no tracer timerlat: board: the kernel has no osnoise/"
    assert not bench.jobs


def test_one_tracer_does_without_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces, _ = measured(TracedBench(), tmp_path, monkeypatch, lacks="tracer:timerlat")
    assert traces.noise_failed is None
    assert isinstance(traces.split, CapabilityError)


def test_a_target_without_rtla_is_skipped_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces, _ = measured(TracedBench(has_rtla=False), tmp_path, monkeypatch)
    for failed in (traces.noise_failed, traces.split):
        assert isinstance(failed, CapabilityError)
        assert "board has no rtla: install Debian's package rtla there" in str(failed)


def test_an_rtla_that_was_killed_leaves_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    traces, _ = measured(TracedBench(exit_code=137), tmp_path, monkeypatch)
    for failed in (traces.noise_failed, traces.split):
        assert isinstance(failed, MeasurementError)
        assert "rtla on board was killed by signal 9" in str(failed)
    assert not (tmp_path / "noise" / "noise.json").exists()


def test_a_histogram_of_other_samples_leaves_no_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces, _ = measured(TracedBench(), tmp_path, monkeypatch, timerlat=SCENE[:-1])
    assert isinstance(traces.split, MeasurementError)
    assert "have its counts of Thr" in str(traces.split)
