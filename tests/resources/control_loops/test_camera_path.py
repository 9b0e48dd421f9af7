# SPDX-License-Identifier: Apache-2.0
"""What the router between camera and tracker adds, from captures made by hand on both of its sides."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hw.bench import load_bench
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.protocols import Router
from hw.router import PathDirection
from hw.virtual.bench_network import port_of
from resources.control_loops.camera_path import PROBE_PORT, CameraPath, camera_path
from tests.reports.paths.written_capture import Datagram, write_capture

COUNT = 100
CAMERA, TRACKER = ("linux-rt", "10.77.0.100"), ("p01", "10.77.0.1")
BEGIN_NS = 1_800_000_000_000_000_000


class NoRouter:
    """A router that only notes that it is out of the way."""

    cleared = False

    def configure(self, *_args: object) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Note it."""
        self.cleared = True


def made(repository: Path) -> tuple[CameraPath, Any]:
    spec = load_bench(repository / "hw/benches/virtual.yaml")
    router = NoRouter()
    bench = cast("OpenBench", SimpleNamespace(spec=spec, router=lambda: router))
    there, back = PathDirection("linux-rt", "switch"), PathDirection("linux-rt", "linux-rt")
    path = CameraPath(bench, cast("Router", router), there, back, CAMERA, TRACKER)
    path.probes = COUNT
    return path, bench


def write_captures(path: CameraPath, folder: Path, there_us: int, back_us: int, count: int = COUNT) -> None:
    """Write what is seen on both sides, both ways."""
    folder.mkdir(parents=True)
    near: list[tuple[int, Datagram]] = []
    far: list[tuple[int, Datagram]] = []
    for number in range(count):
        at_ns = BEGIN_NS + number * 25_000_000
        one = Datagram(number, CAMERA[1], TRACKER[1], (40000, PROBE_PORT))
        other = Datagram(number, TRACKER[1], CAMERA[1], (40001, PROBE_PORT))
        scatter_ns = number % 7 * 1000
        near += [(at_ns, one), (at_ns + back_us * 1000 + scatter_ns, other)]
        far += [(at_ns, other), (at_ns + there_us * 1000 + scatter_ns, one)]
    for node, seen in ((CAMERA[0], near), (TRACKER[0], far)):
        ordered = sorted(seen, key=lambda each: each[0])
        write_capture(folder / f"{port_of(path.bench.spec, node)}.pcap", ordered)


def test_delay_is_what_a_path_takes_longer_than_without(repository: Path, tmp_path: Path) -> None:
    path, _ = made(repository)
    path.set(0)
    write_captures(path, tmp_path / "0", there_us=400, back_us=300)
    without = path.measured(tmp_path / "0")
    assert (without.asked_us, without.there_us, without.back_us) == (0, 0, 0)
    path.set(50_000)
    write_captures(path, tmp_path / "50", there_us=50_450, back_us=50_290)
    found = path.measured(tmp_path / "50")
    assert found.asked_us == 50_000
    assert found.there_us == pytest.approx(50_050, abs=0.01)
    assert found.back_us == pytest.approx(49_990, abs=0.01)
    assert 0 < found.u_us < 10


def test_path_without_delay_comes_first(repository: Path, tmp_path: Path) -> None:
    path, _ = made(repository)
    path.set(50_000)
    write_captures(path, tmp_path / "50", there_us=50_000, back_us=50_000)
    with pytest.raises(MeasurementError, match="without delay was not measured first"):
        path.measured(tmp_path / "50")


def test_capture_that_lacks_datagrams_is_told(repository: Path, tmp_path: Path) -> None:
    path, _ = made(repository)
    write_captures(path, tmp_path / "0", there_us=400, back_us=300, count=COUNT - 1)
    with pytest.raises(MeasurementError, match="99 of 100 datagrams were captured"):
        path.measured(tmp_path / "0")


def test_router_is_on_the_cameras_link_both_ways_and_out_of_the_way_at_the_end(repository: Path) -> None:
    _, bench = made(repository)
    with camera_path(bench, bench.spec.targets["linux-rt"]) as path:
        assert (path.there, path.back) == (
            PathDirection("linux-rt", "switch"),
            PathDirection("linux-rt", "linux-rt"),
        )
        names = path.captures("10.77.0.100", 9660)
        assert names.before == f"{port_of(bench.spec, 'linux-rt')}.pcap"
    assert bench.router().cleared


def test_router_is_on_the_link_of_the_camera_of_a_target_that_tracks(repository: Path) -> None:
    _, bench = made(repository)
    with camera_path(bench, bench.spec.targets["linux-rt"], "tracker") as path:
        assert (path.camera[0], path.tracker[0]) == ("p01", "linux-rt")
        assert (path.there, path.back) == (
            PathDirection("p01", "switch"),
            PathDirection("p01", "p01"),
        )


def test_bench_of_real_machines_has_nobody_to_capture(repository: Path) -> None:
    _, bench = made(repository)
    spec = load_bench(repository / "hw/benches/example-hardware.yaml")
    bench.spec = spec
    target = next(iter(spec.targets.values()))
    with pytest.raises(CapabilityError, match="nothing captures at both sides"), camera_path(bench, target):
        pass
