# SPDX-License-Identifier: Apache-2.0
"""What is started for the edges of a target, in which order, and what is refused before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import BenchSpec, load_bench
from hw.errors import BenchError, CapabilityError, ConfigError
from hw.open_bench import OpenBench
from hw.protocols import READY_S
from resources.timed_edges import device as edge_device
from resources.timed_edges.device import run_edge_device

VIRTUAL = Path(__file__).resolve().parents[3] / "hw" / "benches" / "virtual.yaml"
PAGE = Path("/run/page")


class FakeJob:
    """A tool that runs until it is stopped, or has ended by itself."""

    def __init__(self, name: str, log: list[str], broken: str) -> None:
        self.name = name
        self._log = log
        self._broken = broken
        self.exit_code: int | None = None

    def wait_ready(self, _timeout_s: float = READY_S) -> None:
        """Be ready, unless it is broken."""
        self._log.append(f"ready {self.name}")
        if self._broken == self.name:
            raise BenchError(f"{self.name}: not ready")

    def wait(self, timeout_s: float) -> int:
        """Return the exit code of a tool that has ended."""
        if self.exit_code is None:
            raise BenchError(f"{self.name}: still running after {timeout_s:g} s")
        return self.exit_code

    def stop(self) -> None:
        """End."""
        self._log.append(f"stop {self.name}")
        self.exit_code = 0

    def fetch(self) -> Path:
        """Return the answers."""
        self._log.append(f"fetch {self.name}")
        return Path("answer")


class FakeNode:
    """A node whose tools are fakes."""

    def __init__(self, bench: FakeBench) -> None:
        self._bench = bench

    def start(self, argv: Sequence[str], stem: Path) -> FakeJob:
        """Note what is started."""
        job = FakeJob(argv[1], self._bench.log, self._bench.broken)
        self._bench.jobs.append(job)
        self._bench.argv[argv[1]] = [*argv[2:], stem.name]
        return job


class FakeBench:
    """As much of a bench as the edge device asks for."""

    def __init__(self, spec: BenchSpec, page: Path | None = PAGE, broken: str = "") -> None:
        self.spec = spec
        self.broken = broken
        self.log: list[str] = []
        self.jobs: list[FakeJob] = []
        self.argv: dict[str, list[str]] = {}
        self.host = FakeNode(self)
        self.port: tuple[str, int] | None = ("127.0.0.1", 25035)
        self.instruments = SimpleNamespace(edge_port=lambda _name="": self.port)
        self.virtual = SimpleNamespace(timecard_page=lambda _name="": page)

    def node(self, _name: str) -> FakeNode:
        """Return any node."""
        return FakeNode(self)

    def tool(self, _node: str, tool: str) -> str:
        """Return the tool's name."""
        return tool


@pytest.fixture(autouse=True)
def _tool_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_device, "local_tool", lambda name: Path(name))  # pyright: ignore


def _spec(**changes: Any) -> BenchSpec:
    spec = load_bench(VIRTUAL)
    return replace(spec, targets={"linux-rt": replace(spec.targets["linux-rt"], **changes)})


def _run(bench: FakeBench, folder: Path, target: str = "linux-rt") -> Any:
    return run_edge_device(cast("OpenBench", bench), target, "", folder / "device")


def test_the_device_is_there_before_what_tells_it_the_clock(tmp_path: Path) -> None:
    bench = FakeBench(_spec())
    with _run(bench, tmp_path) as device:
        assert bench.log == ["ready serve", "ready follow-phc"]
        device.require_running()
    ending = ["stop follow-phc", "fetch follow-phc", "stop serve", "fetch serve"]
    assert bench.log[2:] == ending
    page = f"linux-rt={PAGE}"
    assert bench.argv["serve"] == ["--page", page, "--scope", "127.0.0.1:25035", "edge-serve"]
    assert bench.argv["follow-phc"] == ["--phc", "/dev/ptp0", "edge-follow-phc"]


@pytest.mark.parametrize("broken", ["serve", "follow-phc"])
def test_nothing_runs_on_where_one_part_fails(tmp_path: Path, broken: str) -> None:
    bench = FakeBench(_spec(), broken=broken)
    with pytest.raises(BenchError, match=f"{broken}: not ready"), _run(bench, tmp_path):
        pass
    assert all(job.exit_code == 0 for job in bench.jobs)
    assert len(bench.jobs) == ["serve", "follow-phc"].index(broken) + 1


def test_a_device_that_has_ended_is_found(tmp_path: Path) -> None:
    bench = FakeBench(_spec())
    with _run(bench, tmp_path) as device:
        bench.jobs[1].exit_code = 3
        with pytest.raises(BenchError, match="follow-phc: ended by itself with exit code 3"):
            device.require_running()


def test_pins_of_a_real_machine_need_nothing(tmp_path: Path) -> None:
    bench = FakeBench(_spec(), page=None)
    with _run(bench, tmp_path) as device:
        device.require_running()
    assert bench.jobs == []
    assert not (tmp_path / "device").exists()


def test_what_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    real_scope = FakeBench(_spec())
    real_scope.port = None
    cases: list[tuple[FakeBench, type[Exception], str]] = [
        (
            FakeBench(_spec(edges=None)),
            CapabilityError,
            r"no pins; add benchwright\.targets\.linux-rt\.edges",
        ),
        (FakeBench(_spec(ptp_clock="")), CapabilityError, r"no PTP hardware clock; add"),
        (real_scope, ConfigError, r"oscilloscopes\.\(first\): must be virtual"),
    ]
    for bench, kind, wanted in cases:
        with pytest.raises(kind, match=wanted), _run(bench, tmp_path):
            pass
        assert bench.jobs == []
    with (
        pytest.raises(ConfigError, match="no target 'windows'; there are: linux-rt"),
        _run(FakeBench(_spec()), tmp_path, "windows"),
    ):
        pass
