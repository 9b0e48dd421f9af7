# SPDX-License-Identifier: Apache-2.0
"""A camera on the target, a tracker and a display on producers: a closed loop through the bench's router.

By choice the tracker is on the target, and the camera on a producer.

What the router adds each way is measured meanwhile by datagrams of a flow of its own and captures at both of
its sides. The clocks are asked all the while on the control network, which the router is not on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hw.bench import TargetSpec
from hw.errors import MeasurementError
from hw.open_bench import OpenBench
from hw.protocols import Job
from reports.control_loops.camera_evidence import CameraFacts, write_camera
from reports.control_loops.camera_loop import found_warm_up, load_camera_loop
from reports.control_loops.wire import PATH_FOLDER
from reports.errors import ReportError
from reports.timeline.recorded_end import RecordedEnd
from resources.clock_sync.tai_utc import common_tai_utc_s
from resources.control_loops.camera_path import CameraPath, TargetIs, camera_nodes
from resources.control_loops.loads import end_load, load_of_loop, start_load
from resources.control_loops.ring_trial import STARTING_S, TOOL
from resources.control_loops.worst_pictures import render_worst
from resources.timeline.clocks_asked import ENDING_S, ask_clocks
from resources.timeline.recorded_program import RecordedProgram, collect_recorded, start_recorded
from resources.timeline.stimulus_trial import WITNESS_MAX_MS, least_way_ns
from resources.tools.experiment import Experiment
from resources.tools.witness import add_witness

PICTURES_PORT, COMMANDS_PORT, DISPLAY_PORT = 9660, 9661, 9662
TRUTH, PLACES = "truth.ndjson", "places.ndjson"
SLACK_S = 30.0
"""Besides the pictures' own time: connections, a busy machine."""
TIMEOUT_MS = 20_000
PICTURE_BYTES = 77_000


@dataclass(frozen=True)
class CameraRun:
    """What is done.

    Attributes:
        pictures: That are captured.
        pictures_per_s: How often.
        speed_px_s: Of the target, in pixels of its world.
        path: Of the target: `constant`, `circle`, `wander`, `still`.
        commands: For every picture, or near an edge alone.
        open_loop: The camera obeys no command.
        reversed: It obeys the wrong way round.
        rest_ms: So long the target rests before it moves: TCP opens its window meanwhile.
        congestion: Congestion control of the pictures' connection; empty: the camera's system chooses.
        segment_bytes: TCP's MSS on that connection; 0: what the path takes.
        motor_delay_ms: From the receipt of a command to when the motor is told.
        seed: Of world and path.
        target_is: Camera or tracker.
        load: Kind of the load meanwhile, of a build on the target; empty: none.
        load_mbit: Of a network's, in Mbit/s of payload.
        clock: What corrects the target's clock meanwhile, for the evidence; empty: nothing.
    """

    pictures: int
    pictures_per_s: int
    speed_px_s: int = 120
    path: str = "constant"
    commands: Literal["always", "edge"] = "always"
    open_loop: bool = False
    reversed: bool = False
    rest_ms: int = 0
    congestion: str = ""
    segment_bytes: int = 0
    motor_delay_ms: int = 0
    seed: int = 1
    target_is: TargetIs = "camera"
    load: str = ""
    load_mbit: int = 0
    clock: str = ""

    @property
    def rest_pictures(self) -> int:
        """Return how many pictures are captured before the target has moved between two of them."""
        return math.ceil(self.rest_ms * self.pictures_per_s / 1000) + 1 if self.rest_ms else 0

    @property
    def camera_words(self) -> list[str]:
        """Return options of the camera."""
        found = ["--pictures", str(self.pictures), "--pictures-per-s", str(self.pictures_per_s)]
        found += ["--path", self.path, "--speed-px-s", str(self.speed_px_s), "--seed", str(self.seed)]
        found += ["--still-ms", str(self.rest_ms)] if self.rest_ms else []
        found += ["--congestion", self.congestion] if self.congestion else []
        found += ["--segment-bytes", str(self.segment_bytes)] if self.segment_bytes else []
        found += ["--motor-delay-ms", str(self.motor_delay_ms)] if self.motor_delay_ms else []
        found += ["--open-loop"] if self.open_loop else []
        return [*found, *(["--reversed"] if self.reversed else [])]


def measure_camera(
    bench: OpenBench,
    target: TargetSpec,
    run: CameraRun,
    folder: Path,
    path: CameraPath | None = None,
) -> CameraFacts:
    """Let a tracker follow a target with the camera, and write the evidence.

    Args:
        bench: An open bench.
        target: Where the camera is, or the tracker.
        run: What is done.
        folder: Evidence goes here.
        path: The router between camera and tracker, which is set; None: there is none.

    Raises:
        CapabilityError: The bench has too few producers, or a node cannot record.
        BenchError: A node or a tool does not work.
        MeasurementError: A tool came to no result.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spec = bench.spec
    (camera, camera_address), (tracker, _), (display, display_address) = places = camera_nodes(
        spec, target, run.target_is
    )
    nodes = [node for node, _ in places]
    bench.power_on([*nodes, spec.clocks[spec.reference_clock].node])
    tai_utc_s = common_tai_utc_s(bench, nodes, folder)
    within_s = run.pictures / run.pictures_per_s + SLACK_S
    lasts_s = math.ceil(within_s) + STARTING_S
    what = load_of_loop(run.load, lasts_s, target.node, places[:2], run.load_mbit)
    truth = f"{bench.node(camera).fresh_folder('camera-truth')}/{TRUTH}"
    pictures, commands = (f"{camera_address}:{port}" for port in (PICTURES_PORT, COMMANDS_PORT))
    shown = f"{display_address}:{DISPLAY_PORT}"
    with ExitStack() as stack:
        if path:
            stack.enter_context(path.captured(folder / PATH_FOLDER))
        experiment = stack.enter_context(Experiment(bench))
        asked = ask_clocks(experiment, nodes, folder)
        add_witness(experiment, folder / "witness", WITNESS_MAX_MS)
        load = start_load(bench, experiment, what, folder)
        lab = _Lab(experiment, tai_utc_s, folder)
        begun = [
            lab.start("display", display, ["--listen", shown]),
            lab.start(
                "camera",
                camera,
                [
                    *["--serve", pictures, "--commands", commands, "--wait-for-client", "--truth", truth],
                    *run.camera_words,
                ],
            ),
            lab.start(
                "tracker",
                tracker,
                ["--camera", pictures, "--control", commands, "--display", shown, "--commands", run.commands],
            ),
        ]
        probes: Sequence[Job] = ()
        if path:
            probes = path.start_probes(experiment, run.pictures / run.pictures_per_s, folder / PATH_FOLDER)
        ends: dict[str, RecordedEnd] = {}
        for program in begun[::-1]:
            exchanges = asked.exchanges.get(program.node)
            ends[program.name] = collect_recorded(experiment, program, within_s, exchanges, folder)
        for probe in probes:
            experiment.collect(probe, within_s).require_done()
        known = end_load(load, folder)
        asked.end()
    bench.node(camera).get(truth, folder / TRUTH)
    _where(bench, folder)
    found = CameraFacts(
        target.kind,
        ends["camera"],
        ends["tracker"],
        TRUTH,
        PLACES,
        run.pictures,
        round(1e6 / run.pictures_per_s),
        run.commands,
        run.open_loop,
        tai_utc_s,
        (
            least_way_ns(bench, camera, tracker, PICTURE_BYTES),
            least_way_ns(bench, tracker, camera, 1),
        ),
        display=ends["display"],
        delay=path.measured(folder / PATH_FOLDER) if path else None,
        wire=path.captures(camera_address, PICTURES_PORT) if path else None,
        load=known,
        clock=run.clock or None,
        clock_node=target.node if run.clock else None,
    )
    write_camera(folder, found)
    try:
        loop = load_camera_loop(folder)
        count, settles = found_warm_up(loop)
        warm = max(count, run.rest_pictures)
    except ReportError as error:
        raise MeasurementError(str(error)) from error
    worst = render_worst(bench, loop, warm, folder) or None
    found = replace(found, warm_up=warm, worst=worst, unsettled=None if settles else True)
    write_camera(folder, found)
    return found


@dataclass(frozen=True)
class _Lab:
    experiment: Experiment
    tai_utc_s: int
    folder: Path

    def start(self, name: str, node: str, words: Sequence[str]) -> RecordedProgram:
        """Start a program with its recorder; it is ready when this returns."""
        return start_recorded(
            self.experiment,
            name,
            node,
            (name,),
            [name, *words],
            self.folder,
            TOOL,
            tai_utc_s=self.tai_utc_s,
            timeout_ms=TIMEOUT_MS,
        )


def _where(bench: OpenBench, folder: Path) -> None:
    """Write where the target was when each picture was captured, by the camera's settings alone."""
    lines = [json.loads(line) for line in (folder / TRUTH).read_text().splitlines()]
    heads = [each["options"] for each in lines if each.get("type") == "camera"]
    times = sorted(each["captured_ns"] for each in lines if each.get("type") == "picture")
    if not heads or not times:
        raise MeasurementError(f"{TRUTH}: the camera has captured no picture")
    reference = bench.spec.clocks[bench.spec.reference_clock].node
    node = bench.node(reference)
    argv = [bench.tool(reference, TOOL), "where", *heads[0], *map(str, times)]
    job = node.start(argv, folder / PLACES.removesuffix(".ndjson"))
    if code := job.wait(ENDING_S):
        raise MeasurementError(f"{job.name}: ended with exit code {code}")
    job.fetch()
