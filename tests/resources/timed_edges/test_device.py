# SPDX-License-Identifier: Apache-2.0
"""What is started for the edges of a target, in which order, and what is refused before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hw.bench import BenchSpec, load_bench
from hw.errors import BenchError, CapabilityError, ConfigError
from resources.timed_edges import device as edge_device
from resources.timed_edges.device import run_edge_device
from tests.fake_bench import FakeBench

VIRTUAL = Path(__file__).resolve().parents[3] / "hw" / "benches" / "virtual.yaml"
PAGE = Path("/run/page")


def _bench(
    spec: BenchSpec, page: Path | None = PAGE, port: Any = ("127.0.0.1", 25035), broken: str = ""
) -> Any:
    bench: Any = FakeBench(spec, exit_code=None, broken=broken)
    bench.host = bench.node("host")
    bench.instruments = SimpleNamespace(edge_port=lambda _name="": port)  # pyright: ignore
    bench.virtual = SimpleNamespace(timecard_page=lambda _name="": page)  # pyright: ignore
    return bench


@pytest.fixture(autouse=True)
def _tool_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_device, "local_tool", lambda name: Path(name))  # pyright: ignore


def _spec(**changes: Any) -> BenchSpec:
    spec = load_bench(VIRTUAL)
    return replace(spec, targets={"linux-rt": replace(spec.targets["linux-rt"], **changes)})


def _run(bench: Any, folder: Path, target: str = "linux-rt") -> Any:
    return run_edge_device(bench, target, "", folder / "device")


def test_the_device_is_there_before_what_tells_it_the_clock(tmp_path: Path) -> None:
    bench = _bench(_spec())
    with _run(bench, tmp_path) as device:
        assert bench.log == ["ready edge-serve", "ready edge-follow-phc"]
        device.require_running()
    ending = ["stop edge-follow-phc", "fetch edge-follow-phc", "stop edge-serve", "fetch edge-serve"]
    assert bench.log[2:] == ending
    assert [(job.node, job.argv[1:]) for job in bench.jobs] == [
        ("host", ["serve", "--page", f"linux-rt={PAGE}", "--scope", "127.0.0.1:25035"]),
        ("linux-rt", ["follow-phc", "--phc", "/dev/ptp0"]),
    ]


@pytest.mark.parametrize("broken", ["edge-serve", "edge-follow-phc"])
def test_nothing_runs_on_where_one_part_fails(tmp_path: Path, broken: str) -> None:
    bench = _bench(_spec(), broken=broken)
    with pytest.raises(BenchError, match=f"{broken}: not ready"), _run(bench, tmp_path):
        pass
    assert all(job.exit_code == 0 for job in bench.jobs)
    assert len(bench.jobs) == ["edge-serve", "edge-follow-phc"].index(broken) + 1


def test_a_device_that_has_ended_is_found(tmp_path: Path) -> None:
    bench = _bench(_spec())
    with _run(bench, tmp_path) as device:
        bench.jobs[1].exit_code = 3
        with pytest.raises(BenchError, match="edge-follow-phc: ended by itself with exit code 3"):
            device.require_running()


def test_pins_of_a_real_machine_need_nothing(tmp_path: Path) -> None:
    bench = _bench(_spec(), page=None)
    with _run(bench, tmp_path) as device:
        device.require_running()
    assert bench.jobs == []
    assert not (tmp_path / "device").exists()


def test_what_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (
            _bench(_spec(edges=None)),
            CapabilityError,
            r"no pins; add benchwright\.targets\.linux-rt\.edges",
        ),
        (_bench(_spec(ptp_clock="")), CapabilityError, r"no PTP hardware clock; add"),
        (_bench(_spec(), port=None), ConfigError, r"oscilloscopes\.\(first\): must be virtual"),
    ]
    for bench, kind, wanted in cases:
        with pytest.raises(kind, match=wanted), _run(bench, tmp_path):
            pass
        assert bench.jobs == []
    with (
        pytest.raises(ConfigError, match="no target 'windows'; there are: linux-rt"),
        _run(_bench(_spec()), tmp_path, "windows"),
    ):
        pass
