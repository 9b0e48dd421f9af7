# SPDX-License-Identifier: Apache-2.0
"""The figure of the worst moment: which delay, its pixels, its size, and pictures that are none."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from reports.control_loops.camera_evidence import CAMERA_FOLDER, WORST_FOLDER, write_camera
from reports.control_loops.camera_loop import load_camera_loop
from reports.control_loops.case import Case
from reports.control_loops.ring_evidence import FOLDER
from reports.control_loops.section import ControlLoopsSection, gather_control_loops
from reports.control_loops.worst import load_worst
from reports.control_loops.worst_plot import figure_worst
from reports.png import grey_png
from reports.run.folder import RunFolder
from reports.section import TargetData
from tests.reports.control_loops.camera_sample import write_sample_camera
from tests.reports.control_loops.ring_sample import TARGET
from tests.reports.control_loops.worst_sample import HEAD, HEIGHT, WIDTH, WORST, Json, loaded, write_worst
from tests.reports.pages import page_with, words_of


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        HEAD + bytes(WIDTH * HEIGHT - 1),
        HEAD + bytes(WIDTH * HEIGHT + 1),
        HEAD.replace(b"320 240", b"240 320") + bytes(WIDTH * HEIGHT),
        HEAD.replace(b"P5", b"P6") + bytes(WIDTH * HEIGHT),
    ],
    ids=["missing", "empty", "short", "long", "turned", "coloured"],
)
def test_picture_that_is_none_is_named_and_not_shown(tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "evidence" / FOLDER / TARGET / CAMERA_FOLDER / "50-ms"
    write_worst(folder)
    file = folder / WORST_FOLDER / "41.pgm"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    shown = gather_control_loops(TargetData(tmp_path, target=TARGET))
    assert shown
    [problem] = shown.problems
    assert problem.startswith("50-ms: worst/41.pgm: ")
    assert shown.worst is None
    assert len(shown.loops) == 1


def section(run: Path, *delays_ms: int, worst_at: int) -> ControlLoopsSection:
    """Return the section of a run with loops, of which that at a delay looks furthest beside its target."""
    for delay_ms in delays_ms:
        folder = run / "evidence" / FOLDER / TARGET / CAMERA_FOLDER / f"{delay_ms}-ms"

        def beside(lines: list[Json], delay_ms: int = delay_ms) -> list[Json]:
            lines[31]["pose"]["x_q8"] += 256 * (60 if delay_ms == worst_at else 20)
            return lines

        write_worst(folder, truth=beside)
    shown = gather_control_loops(TargetData(run, target=TARGET))
    assert shown
    return shown


def test_page_has_the_worst_of_all_delays(tmp_path: Path) -> None:
    shown = section(tmp_path, 0, 50, 100, worst_at=50)
    assert shown.worst
    assert shown.worst[0] == Case(50)
    [caption] = [each for svg, each in shown.figures if "loops-worst" in svg]
    assert "a camera, at 50 ms. In picture 30 (framed, 1.21 s" in caption
    assert "60.0 px off the centre" in caption


def test_without_the_pictures_of_the_worst_delay_no_other_one_takes_its_place(tmp_path: Path) -> None:
    section(tmp_path, 0, 50, worst_at=50)
    (tmp_path / "evidence" / FOLDER / TARGET / CAMERA_FOLDER / "50-ms" / WORST_FOLDER / "30.pgm").unlink()
    shown = gather_control_loops(TargetData(tmp_path, target=TARGET))
    assert shown
    assert shown.worst is None
    assert "50-ms: worst/30.pgm" in shown.problems[0]


def test_older_run_shows_none(tmp_path: Path) -> None:
    write_sample_camera(tmp_path / "evidence" / FOLDER / TARGET / CAMERA_FOLDER / "0-ms")
    shown = gather_control_loops(TargetData(tmp_path, target=TARGET))
    assert shown
    assert (shown.worst, shown.problems) == (None, ())
    assert not [each for each, _ in shown.figures if "loops-worst" in each]


def all_but_the_second(number: int) -> bool:
    return number != WORST - 1


def test_figure_has_each_picture_pixel_by_pixel(tmp_path: Path) -> None:
    moment = loaded(tmp_path, answered=all_but_the_second)
    svg = figure_worst("sample", moment)
    assert svg == figure_worst("sample", moment)
    every = [base64.b64decode(each) for each in re.findall(r'href="data:image/png;base64,([^"]*)"', svg)]
    assert len(every) == 5
    for content, picture in zip(every, moment.pictures, strict=True):
        assert np.array_equal(np.round(imread(io.BytesIO(content)) * 255), picture.pixels)
    assert "xlink" not in svg
    words = words_of(svg)
    assert "picture 40, 1.60 s" in words
    assert "50.0 px off" in words
    assert words.count("no command: no box") == 2  # in its title, and in the description


def as_it_is(lines: list[Json]) -> list[Json]:
    return lines


def test_target_outside_is_said(tmp_path: Path) -> None:
    moment = loaded(tmp_path, truth=as_it_is, follows=False)
    assert moment.worst.is_out
    assert moment.worst.number == 79
    assert "px off, out" in words_of(figure_worst("sample", moment))


def test_warm_up_is_said(tmp_path: Path) -> None:
    """A picture that does not count may be further off than the worst one that does."""
    found = write_worst(tmp_path)
    write_camera(tmp_path, replace(found.facts, warm_up=WORST))
    moment = load_worst(tmp_path, load_camera_loop(tmp_path))
    assert moment is not None
    assert [each.is_warm_up for each in moment.pictures] == [True, True, False, False, False]
    assert words_of(figure_worst("sample", moment)).count("px off, warm-up") == 4  # titles and description


def test_grey_png_is_read_by_others(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (7, 5), np.uint8)
    (tmp_path / "grey.png").write_bytes(grey_png(pixels))
    found = imread(tmp_path / "grey.png")
    assert found.shape == (7, 5)
    assert np.array_equal(np.round(found * 255), pixels)


def test_page_has_the_figure(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "results", "virtual", "ci", simulated=True, commit="0" * 40)
    write_worst(run.evidence_folder(FOLDER, TARGET) / CAMERA_FOLDER / "50-ms")
    run.update(target={TARGET: {"hostname": TARGET}})
    run.close()
    page = page_with(run.path, "control-loops")
    assert "Cross: where the target really is" in page
    assert page == page_with(run.path, "control-loops")
