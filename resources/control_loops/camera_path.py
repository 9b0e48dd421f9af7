# SPDX-License-Identifier: Apache-2.0
"""The way between camera and tracker: the router's delay each way, and what of it arrives on the wire."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hw.bench import BenchSpec, TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.path_settings import PathSettings
from hw.protocols import Job, Router
from hw.router import PathDirection
from hw.virtual.bench_network import port_of
from reports.control_loops.camera_evidence import Captures, MeasuredDelay
from reports.errors import ReportError
from reports.paths.condition import Condition
from reports.paths.datagrams import Integers
from reports.paths.delay import delay_condition
from resources.control_loops.ring_trial import TOOL, ring_nodes
from resources.loads.kinds import PORT as LOAD_PORT
from resources.tools.capture import capture_file
from resources.tools.experiment import Experiment
from resources.tools.path_capture import PathEnds, captured_path

TargetIs = Literal["camera", "tracker"]
PROBE_PORT = 9670
PROBES_MIN, PROBE_INTERVAL_US, PROBE_BYTES = 100, 25_000, 100
TIMEOUT_MS = 30_000


@dataclass
class CameraPath:
    """The router on the link of the camera, and the flow that tells what it does.

    Attributes:
        there, back: Its paths from camera to tracker, and from tracker to camera.
        without_ns: Of either, times inside without delay, shape (n,); empty: not measured yet.
        delay_us: Each way, as it is set.
        probes: Datagrams each way.
    """

    bench: OpenBench
    router: Router
    there: PathDirection
    back: PathDirection
    camera: tuple[str, str]
    tracker: tuple[str, str]
    without_ns: tuple[Integers, ...] = ()
    delay_us: int = 0
    probes: int = 0

    def set(self, delay_us: int) -> None:
        """Set a delay each way; the first one is 0, against which the others are measured.

        Raises:
            BenchError: The router does not work.
        """
        for path in (self.there, self.back):
            self.router.configure([path], PathSettings(delay_us=delay_us))
        self.delay_us = delay_us

    def captured(self, folder: Path) -> AbstractContextManager[object]:
        """Capture both sides of the router while the context lasts, and what is under way at its end.

        But the bulk data of a load, which would fill a disk.
        """
        ports = [port_of(self.bench.spec, node) for node, _ in (self.camera, self.tracker)]
        return captured_path(self.bench, ports[0], ports[1], folder, LOAD_PORT)

    def start_probes(self, lab: Experiment, seconds: float, folder: Path) -> list[Job]:
        """Start datagrams both ways, for so long; they end by themselves."""
        ends = self.camera, self.tracker
        jobs = [self._start(lab, node, ["--from", f"{at}:{PROBE_PORT}"], folder) for node, at in ends]
        self.probes = max(PROBES_MIN, round(seconds * 1e6 / PROBE_INTERVAL_US))
        source = ["--count", str(self.probes), "--interval-us", str(PROBE_INTERVAL_US)]
        source += ["--size-bytes", str(PROBE_BYTES)]
        for (node, _), (_, at) in zip(ends, ends[::-1], strict=True):
            jobs.append(self._start(lab, node, ["--to", f"{at}:{PROBE_PORT}", *source], folder))
        return jobs[::-1]

    def measured(self, folder: Path) -> MeasuredDelay:
        """Return what the router added each way, by what was captured.

        Raises:
            MeasurementError: A capture does not show what was sent.
        """
        inside = self._inside_ns(folder)
        if not self.without_ns and not self.delay_us:
            self.without_ns = inside
        if not self.without_ns:
            raise MeasurementError("the path without delay was not measured first")
        there, back = (
            self._condition(self.delay_us, each, without)
            for each, without in zip(inside, self.without_ns, strict=True)
        )
        u_us = max((each.high - each.low) / 2 for each in (there, back))
        return MeasuredDelay(self.delay_us, there.achieved, back.achieved, u_us)

    @staticmethod
    def _condition(delay_us: int, inside_ns: Integers, without_ns: Integers) -> Condition:
        try:
            return delay_condition(delay_us, inside_ns, [without_ns])
        except ReportError as error:
            raise MeasurementError(f"path: {error}") from error

    def captures(self, address: str, port: int) -> Captures:
        """Return the files of the captures, of pictures that come from an address and port."""
        before, behind = (port_of(self.bench.spec, node) for node, _ in (self.camera, self.tracker))
        return Captures(capture_file(Path(), before).name, capture_file(Path(), behind).name, address, port)

    def _inside_ns(self, folder: Path) -> tuple[Integers, Integers]:
        """Return how long each datagram was between the captures, of either way."""
        ports = [port_of(self.bench.spec, node) for node, _ in (self.camera, self.tracker)]
        path = PathEnds(ports[0], ports[1], folder)
        found = path.there(self.camera[1], PROBE_PORT), path.back(self.tracker[1], PROBE_PORT)
        for each in found:
            if len(each.sent_ns) < self.probes:
                raise MeasurementError(f"{len(each.sent_ns)} of {self.probes} datagrams were captured")
        return found[0].arrived_ns, found[1].arrived_ns

    def _start(self, lab: Experiment, node: str, words: list[str], folder: Path) -> Job:
        """Start a source or a sink of datagrams; it is ready when this returns."""
        argv = [self.bench.tool(node, TOOL), "ring", *words, "--udp", "--timeout-ms", str(TIMEOUT_MS)]
        job = lab.start(node, argv, folder / f"{'sink' if words[0] == '--from' else 'source'}-{node}")
        job.wait_ready()
        return job


def camera_nodes(
    spec: BenchSpec, target: TargetSpec, target_is: TargetIs = "camera"
) -> tuple[tuple[str, str], ...]:
    """Return node and address of camera, tracker and display.

    Args:
        spec: The bench.
        target: One of them; the others are producers.
        target_is: Which.

    Raises:
        CapabilityError: The bench has too few producers besides the target.
    """
    own, _, other, display, _ = ring_nodes(spec, target)
    return (own, other, display) if target_is == "camera" else (other, own, display)


@contextmanager
def camera_path(
    bench: OpenBench, target: TargetSpec, target_is: TargetIs = "camera"
) -> Generator[CameraPath]:
    """Give the router between camera and tracker; at the end it is out of the way.

    Args:
        bench: An open bench.
        target: Camera or tracker.
        target_is: Which.

    Raises:
        CapabilityError: The bench has no router, it is not between them, or nobody can capture at its sides.
    """
    spec = bench.spec
    router = bench.router()
    if spec.virtual is None:
        raise CapabilityError(f"bench {spec.name}: nothing captures at both sides of the router")
    camera, tracker, _ = camera_nodes(spec, target, target_is)
    assert spec.router is not None
    there = spec.router.path(camera[0], tracker[0], spec.topology)
    if there is None:
        raise CapabilityError(f"bench {spec.name}: the router is not between {camera[0]} and {tracker[0]}")
    [near] = [end for end in spec.router.links[there.link] if end != there.towards]
    back = PathDirection(there.link, near)
    try:
        yield CameraPath(bench, router, there, back, camera, tracker)
    finally:
        router.clear()
