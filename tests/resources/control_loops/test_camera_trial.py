# SPDX-License-Identifier: Apache-2.0
"""Who takes part in a loop of camera and tracker, what each is told, and what a profile may ask for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hw.bench import load_bench
from hw.errors import ConfigError
from hw.fields import Fields
from reports.control_loops.camera_loop import load_camera_loop
from resources.control_loops.camera_path import camera_nodes
from resources.control_loops.camera_trial import CameraRun
from resources.control_loops.settings import CAMERA_TIMES, camera_times
from resources.control_loops.worst_pictures import render_words
from resources.profiles import times_of
from tests.reports.control_loops.camera_sample import write_sample_camera

TABLE: dict[str, Any] = {
    "seconds": 6,
    "delays_ms": [0, 50],
    "speed_px_s": 120,
    "rest_s": 0,
    "loads": [],
    "load_mbit": 90,
    "clocks": [],
}


def test_camera_is_on_the_target_and_its_tracker_on_another_machine(repository: Path) -> None:
    bench = load_bench(repository / "hw/benches/virtual.yaml")
    places = camera_nodes(bench, bench.targets["linux-rt"])
    assert [node for node, _ in places] == ["linux-rt", "p01", "p02"]
    places = camera_nodes(bench, bench.targets["linux-rt"], "tracker")
    assert [node for node, _ in places] == ["p01", "linux-rt", "p02"]


def test_camera_is_told_what_is_asked() -> None:
    run = CameraRun(150, 25)
    assert run.camera_words[:4] == ["--pictures", "150", "--pictures-per-s", "25"]
    assert not {"--open-loop", "--reversed", "--motor-delay-ms"} & set(run.camera_words)
    assert (run.rest_pictures, replace(run, rest_ms=1000).rest_pictures) == (0, 26)
    assert replace(run, rest_ms=1000).camera_words[-2:] == ["--still-ms", "1000"]
    changed = replace(run, open_loop=True, reversed=True, motor_delay_ms=30)
    assert {"--open-loop", "--reversed", "--motor-delay-ms", "30"} <= set(changed.camera_words)


def test_each_profile_begins_without_delay() -> None:
    for profile in ("ci", "nightly", "acceptance", "soak"):
        times = times_of(profile, CAMERA_TIMES, camera_times)
        assert times.delays_ms[0] == 0
        assert max(times.delays_ms) <= 300  # as in the paper
    assert times_of("acceptance", CAMERA_TIMES, camera_times).seconds == 20 * 60


def test_a_clock_is_corrected_at_the_first_delay_idle_and_beside_each_load() -> None:
    table = {**TABLE, "delays_ms": [0, 50], "loads": ["network"], "clocks": ["chrony"]}
    cases = camera_times(Fields(table, "camera.times.toml", "ci")).cases
    assert [each.words for each in cases[:4]] == [
        *("at 0 ms", "at 50 ms"),
        *("at 0 ms under network load", "at 50 ms under network load"),
    ]
    assert [each.words for each in cases[4:]] == [
        "at 0 ms with chrony",
        "at 0 ms under network load with chrony",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"delays_ms": [50, 0]}, r"delays_ms: \[50, 0\]; needed: 0 first, each once"),
        ({"delays_ms": [0, 50, 50]}, "needed: 0 first, each once"),
        ({"delays_ms": []}, "needed: 0 first, each once"),
        ({"delays_ms": [0, -1]}, "delays_ms"),
        ({"seconds": 1}, "seconds"),
        ({"speed_px_s": 0}, "speed_px_s"),
        ({"loads": ["cpu"]}, "loads"),
        ({"rest_s": 6}, "rest_s: 6; allowed: less than seconds, 6"),
        ({"load_mbit": 0}, "load_mbit"),
        ({"clocks": ["sundial"]}, "clocks"),
        ({"other": 1}, "other"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        camera_times(Fields({**TABLE, **change}, "camera.times.toml", "ci"))


def test_picture_is_made_again_by_what_the_truth_file_says(tmp_path: Path) -> None:
    write_sample_camera(tmp_path, truth=with_options)
    truth = load_camera_loop(tmp_path).truth
    x, y, _ = (str(each) for each in truth.pose_q8[7])
    assert render_words(truth, 7) == [
        *("render", "--seed", "3", "--number", "7", "--captured-ns", str(5_000_000 + 7 * 40_000_000)),
        *("--x-q8", x, "--y-q8", y, "--zoom-q8", "256"),
    ]


def with_options(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    lines[0]["options"] = ["--seed", "3"]
    return lines
