# SPDX-License-Identifier: Apache-2.0
"""The way between camera and tracker: the router's delay each way, and what of it arrives on the wire."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hw.bench import TargetSpec
from hw.errors import CapabilityError, MeasurementError
from hw.open_bench import OpenBench
from hw.path_settings import PathSettings
from hw.protocols import Job, Router
from hw.router import PathDirection
from hw.virtual.bench_network import port_of
from reports.control_loops.camera_evidence import MeasuredDelay
from reports.errors import ReportError
from reports.paths.condition import Condition
from reports.paths.datagrams import Integers
from reports.paths.delay import delay_condition
from resources.control_loops.camera_trial import camera_nodes
from resources.control_loops.ring_trial import TOOL
from resources.tools.experiment import Experiment
from resources.tools.path_capture import captured_path

PROBE_PORT = 9670
PROBES, PROBE_INTERVAL_US, PROBE_BYTES = 200, 2500, 100
ENDING_S = 30.0
TIMEOUT_MS = 30_000


@dataclass
class CameraPath:
    """The router on the link of the camera, and the flow that tells what it does.

    Attributes:
        there, back: Its paths from camera to tracker, and from tracker to camera.
        without_ns: Of either, times inside without delay, shape (n,); empty: not measured yet.
    """

    bench: OpenBench
    router: Router
    there: PathDirection
    back: PathDirection
    camera: tuple[str, str]
    tracker: tuple[str, str]
    without_ns: tuple[Integers, ...] = ()

    def set(self, delay_us: int, folder: Path) -> MeasuredDelay:
        """Set a delay each way, and return what arrives of it.

        Args:
            delay_us: 0 first: it is what the others are measured against.
            folder: Captures and answers go there.

        Raises:
            BenchError: The router does not work.
            MeasurementError: A capture does not show what was sent.
        """
        for path in (self.there, self.back):
            self.router.configure([path], PathSettings(delay_us=delay_us))
        inside = self._inside_ns(delay_us, folder)
        if not delay_us:
            self.without_ns = inside
            spread = [self._condition(0, each, each) for each in inside]
        else:
            if not self.without_ns:
                raise MeasurementError("the path without delay was not measured first")
            spread = [
                self._condition(delay_us, each, without)
                for each, without in zip(inside, self.without_ns, strict=True)
            ]
        there, back = spread
        u_us = max((each.high - each.low) / 2 for each in spread)
        return MeasuredDelay(delay_us, there.achieved, back.achieved, u_us)

    @staticmethod
    def _condition(delay_us: int, inside_ns: Integers, without_ns: Integers) -> Condition:
        try:
            return delay_condition(delay_us, inside_ns, [without_ns])
        except ReportError as error:
            raise MeasurementError(f"path: {error}") from error

    def _inside_ns(self, delay_us: int, folder: Path) -> tuple[Integers, Integers]:
        """Send datagrams both ways, and return how long each was between the captures, of either way."""
        spec, ends = self.bench.spec, (self.camera, self.tracker)
        ports = [port_of(spec, node) for node, _ in ends]
        with captured_path(self.bench, ports[0], ports[1], folder) as path, Experiment(self.bench) as lab:
            jobs = [self._start(lab, node, ["--from", f"{at}:{PROBE_PORT}"], folder) for node, at in ends]
            source = ["--count", str(PROBES), "--interval-us", str(PROBE_INTERVAL_US)]
            source += ["--size-bytes", str(PROBE_BYTES)]
            for (node, _), (_, at) in zip(ends, ends[::-1], strict=True):
                jobs.append(self._start(lab, node, ["--to", f"{at}:{PROBE_PORT}", *source], folder))
            for job in jobs[::-1]:
                lab.collect(job, ENDING_S + delay_us / 1e6).require_done()
        found = path.there(self.camera[1], PROBE_PORT), path.back(self.tracker[1], PROBE_PORT)
        for each in found:
            if len(each.sent_ns) < PROBES:
                raise MeasurementError(f"{len(each.sent_ns)} of {PROBES} datagrams were captured")
        return found[0].arrived_ns, found[1].arrived_ns

    def _start(self, lab: Experiment, node: str, words: list[str], folder: Path) -> Job:
        """Start a source or a sink of datagrams; it is ready when this returns."""
        argv = [self.bench.tool(node, TOOL), "ring", *words, "--udp", "--timeout-ms", str(TIMEOUT_MS)]
        job = lab.start(node, argv, folder / f"{'sink' if words[0] == '--from' else 'source'}-{node}")
        job.wait_ready()
        return job


@contextmanager
def camera_path(bench: OpenBench, target: TargetSpec) -> Generator[CameraPath]:
    """Give the router between camera and tracker; at the end it is out of the way.

    Raises:
        CapabilityError: The bench has no router, it is not between them, or nobody can capture at its sides.
    """
    spec = bench.spec
    router = bench.router()
    if spec.virtual is None:
        raise CapabilityError(f"bench {spec.name}: nothing captures at both sides of the router")
    camera, tracker, _ = camera_nodes(spec, target)
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
