# SPDX-License-Identifier: Apache-2.0
"""Pictures around a worst moment as the tool makes them again: the disc lies where the cross is drawn."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hw.drivers.local import LocalNode
from hw.errors import BenchError
from reports.control_loops.camera_evidence import WORST_FOLDER, write_camera
from reports.control_loops.camera_loop import load_camera_loop
from reports.control_loops.worst import load_worst, worst_numbers
from resources.control_loops.worst_pictures import render_pictures
from tests.patience import HANG_S
from tests.reports.control_loops.camera_sample import write_sample_camera

OPTIONS = ["--seed", "5", "--path", "still", "--size", "320x240"]
WORST = 30


def test_disc_is_where_the_target_is_said_to_be(tmp_path: Path, bw_loop: Path) -> None:
    argv = [bw_loop, "where", *OPTIONS, "0"]
    place = json.loads(
        subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, check=True).stdout
    )

    def looks_near(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Let the camera look so much beside the target, further in one picture; its zoom differs, too."""
        lines[0]["options"] = OPTIONS
        for line in lines:
            if line["type"] == "picture":
                number = line["number"]
                beside = (5000, 9000) if number == WORST else (100 * (number - WORST), 777)
                zoom = 128 if number == WORST + 1 else 256
                x_q8, y_q8 = place["x_q8"] + beside[0], place["y_q8"] - beside[1]
                line["pose"] = {"x_q8": x_q8, "y_q8": y_q8, "zoom_q8": zoom}
        return lines

    facts = write_sample_camera(tmp_path, truth=looks_near)
    file = tmp_path / facts.places
    moments = [json.loads(line)["t_ns"] for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({**place, "t_ns": t_ns}) + "\n" for t_ns in moments))
    found = load_camera_loop(tmp_path)
    node = LocalNode("here", "host", 0, work_folder=tmp_path / "work")
    numbers = worst_numbers(found, 0)
    names = render_pictures(node, str(bw_loop), found.truth, numbers, tmp_path / WORST_FOLDER)
    assert names == tuple(f"{WORST + step}.pgm" for step in range(-2, 3))
    write_camera(tmp_path, replace(facts, worst=names))
    moment = load_worst(tmp_path, load_camera_loop(tmp_path))
    assert moment is not None
    for each in moment.pictures:
        rows_px, columns_px = np.nonzero(each.pixels > 200)  # the world has 167 at most, noise a few more
        assert np.mean(columns_px) == pytest.approx(each.target_px[0], abs=0.2)
        assert np.mean(rows_px) == pytest.approx(each.target_px[1], abs=0.2)


def test_tool_that_makes_no_picture_is_an_error(tmp_path: Path, bw_loop: Path) -> None:
    write_sample_camera(tmp_path, truth=with_unknown_option)
    node = LocalNode("here", "host", 0, work_folder=tmp_path / "work")
    truth = load_camera_loop(tmp_path).truth
    with pytest.raises(BenchError, match="no-such-option"):
        render_pictures(node, str(bw_loop), truth, [3], tmp_path / WORST_FOLDER)


def with_unknown_option(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines[0]["options"] = ["--no-such-option"]
    return lines
