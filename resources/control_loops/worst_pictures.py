# SPDX-License-Identifier: Apache-2.0
"""Pictures around a loop's worst moment, made again from the seed behind the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hw.open_bench import OpenBench
from hw.protocols import Node
from reports.control_loops.camera_evidence import WORST_FOLDER, Truth
from reports.control_loops.camera_loop import CameraLoop
from reports.control_loops.worst import picture_name, worst_numbers
from resources.control_loops.ring_trial import TOOL

INTO_FILE = 'out=$1; shift; exec "$@" > "$out"'


def render_words(truth: Truth, number: int) -> list[str]:
    """Return the words that let `bw-loop` make a picture once more."""
    x, y, zoom = (str(each) for each in truth.pose_q8[number])
    return [
        *("render", *truth.options, "--number", str(number), "--captured-ns", str(truth.captured_ns[number])),
        *("--x-q8", x, "--y-q8", y, "--zoom-q8", zoom),
    ]


def render_worst(bench: OpenBench, found: CameraLoop, run_up: int, folder: Path) -> tuple[str, ...]:
    """Make the pictures on the node of the reference clock; return their names in the folder `worst`.

    Args:
        bench: An open bench.
        found: The loop.
        run_up: So many pictures at the beginning do not count.
        folder: Of `camera.json`.

    Raises:
        BenchError: The tool does not make a picture.
    """
    numbers = worst_numbers(found, run_up)
    if not numbers:
        return ()
    reference = bench.spec.clocks[bench.spec.reference_clock].node
    node, tool = bench.node(reference), bench.tool(reference, TOOL)
    return render_pictures(node, tool, found.truth, numbers, folder / WORST_FOLDER)


def render_pictures(
    node: Node, tool: str, truth: Truth, numbers: Sequence[int], folder: Path
) -> tuple[str, ...]:
    """Make pictures on a node by its `bw-loop`, into a folder here; return their names; raises BenchError."""
    folder.mkdir(exist_ok=True)
    remote = node.fresh_folder("camera-worst")
    names = tuple(picture_name(number) for number in numbers)
    for number, name in zip(numbers, names, strict=True):
        node.run(["sh", "-c", INTO_FILE, "sh", f"{remote}/{name}", tool, *render_words(truth, number)])
        node.get(f"{remote}/{name}", folder / name)
    return names
