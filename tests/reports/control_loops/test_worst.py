# SPDX-License-Identifier: Apache-2.0
"""The worst moment of a loop whose truth is known: which pictures, what lies where, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from reports.control_loops.camera_evidence import CAMERA_FILE
from reports.control_loops.camera_loop import load_camera_loop
from reports.control_loops.worst import (
    load_worst,
    off_centre_px,
    read_pgm,
    stride_of,
    worst_number,
    worst_numbers,
)
from reports.errors import RecordError
from tests.reports.control_loops.camera_sample import write_sample_camera
from tests.reports.control_loops.worst_sample import (
    WORST,
    Json,
    loaded,
    pixels_of,
    turned_away,
    write_worst,
)


def test_worst_moment_is_where_the_target_is_furthest_off(tmp_path: Path) -> None:
    found = write_worst(tmp_path)
    off_px = off_centre_px(found.truth, found.place_q8)
    assert off_px[WORST] == pytest.approx(50)
    assert off_px[WORST + 1] == pytest.approx(20)  # by the zoom
    assert worst_number(found.truth, found.place_q8, 0) == WORST
    assert worst_number(found.truth, found.place_q8, WORST + 1) == WORST + 1
    assert worst_number(found.truth, found.place_q8, 80) is None


def test_two_strides_are_one_delay_of_the_loop_at_least() -> None:
    period_ns = 40_000_000
    for loop_ns in (0.0, 1e6, 8e7, 8.1e7, 105.7e6, 205e6, 610e6):
        stride = stride_of(loop_ns, period_ns)
        assert stride >= 1
        assert 2 * stride * period_ns >= loop_ns
        assert stride == 1 or 2 * (stride - 1) * period_ns < loop_ns


@pytest.mark.parametrize(
    ("added_ns", "run_up", "numbers"),
    [
        (0, 0, (38, 39, 40, 41, 42)),
        (50_000_000, 0, (36, 38, 40, 42, 44)),
        (0, WORST + 1, (39, 40, 41, 42, 43)),
    ],
)
def test_five_pictures_are_around_it(
    tmp_path: Path, added_ns: int, run_up: int, numbers: tuple[int, ...]
) -> None:
    write_sample_camera(tmp_path, truth=turned_away, added_ns=added_ns)
    assert worst_numbers(load_camera_loop(tmp_path), run_up) == numbers


@pytest.mark.parametrize(("worst", "numbers"), [(0, (0, 1, 2)), (1, (0, 1, 2, 3)), (79, (77, 78, 79))])
def test_pictures_end_where_the_run_does(tmp_path: Path, worst: int, numbers: tuple[int, ...]) -> None:
    def beside(lines: list[Json]) -> list[Json]:
        lines[1 + worst]["pose"]["x_q8"] += 5000
        return lines

    write_sample_camera(tmp_path, truth=beside)
    assert worst_numbers(load_camera_loop(tmp_path), 0) == numbers


def test_truth_without_its_end_has_no_worst_moment(tmp_path: Path) -> None:
    write_sample_camera(tmp_path, truth=lambda lines: lines[:-1])
    assert worst_numbers(load_camera_loop(tmp_path), 0) == ()


def all_but_the_last(number: int) -> bool:
    return number != WORST + 2


def test_cross_and_box_are_where_target_and_command_are(tmp_path: Path) -> None:
    moment = loaded(tmp_path, off_px=5.0, answered=all_but_the_last)
    worst = moment.worst
    assert (worst.number, worst.off_px) == (WORST, pytest.approx(50))
    assert worst.captured_ns == 5_000_000 + WORST * 40_000_000
    assert worst.target_px == pytest.approx((159.5 - 30, 119.5 + 40))
    # The tracker is 5 px off along the path, of which 0.6 rad is the direction.
    assert worst.seen_px == pytest.approx(
        (159.5 - 30 + 5 * np.cos(0.6), 119.5 + 40 + 5 * np.sin(0.6)), abs=0.01
    )
    assert worst.half_px == 18  # 12 px and half as much again
    after = moment.pictures[3]
    assert after.target_px == pytest.approx((159.5 + 20, 119.5))
    assert after.half_px == 36
    assert moment.pictures[4].seen_px is None
    assert not worst.is_warm_up
    assert worst.pixels.tobytes() == pixels_of(WORST)


def test_camera_at_the_edge_of_its_world_is_known(tmp_path: Path) -> None:
    def clamped(lines: list[Json]) -> list[Json]:
        for line in lines:
            if line["type"] == "command":
                line["clamped"] = ["x"] if line["picture"] == WORST else []
        return turned_away(lines)

    moment = loaded(tmp_path, truth=clamped)
    # What answers a picture is known to the mount 6 ms later: before the next picture, behind this one.
    assert [each.is_at_edge for each in moment.pictures] == [False, False, False, True, False]


def test_box_has_the_radius_that_the_camera_was_told(tmp_path: Path) -> None:
    def large(lines: list[Json]) -> list[Json]:
        lines[0]["options"] = ["--seed", "1", "--radius-px", "20"]
        return turned_away(lines)

    assert loaded(tmp_path, truth=large).worst.half_px == 30


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["x.pgm"], "needed: the number of a picture"),
        (["040.pgm"], "needed: the number of a picture"),
        (["80.pgm"], "there are 80 pictures"),
        (["38.pgm"], "picture 40, the worst moment, is not among"),
        (["../worst/40.pgm"], "is no file of this folder"),
    ],
)
def test_names_that_are_no_picture_of_it_are_refused(tmp_path: Path, names: list[str], said: str) -> None:
    write_worst(tmp_path)
    document = json.loads((tmp_path / CAMERA_FILE).read_text())
    (tmp_path / CAMERA_FILE).write_text(json.dumps({**document, "worst": names}))
    with pytest.raises(RecordError, match=said):
        load_worst(tmp_path, load_camera_loop(tmp_path))


def test_size_is_that_of_the_truth_file(tmp_path: Path) -> None:
    (tmp_path / "1.pgm").write_bytes(b"P5\n3 2\n255\n" + bytes(range(6)))
    assert read_pgm(tmp_path / "1.pgm", 3, 2).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(RecordError, match=r"worst/1.pgm: is no PGM of 2 x 3 pixels"):
        read_pgm(tmp_path / "1.pgm", 2, 3)
