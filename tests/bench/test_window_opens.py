# SPDX-License-Identifier: Apache-2.0
"""When TCP's window has opened, by the lines of a truth file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.loops.bench_camera import window_opens
from hw.errors import MeasurementError


def written(folder: Path, in_flight: Sequence[int]) -> Path:
    """Write a line of the connection for each picture, of a window of 100 bytes."""
    lines = [
        {"type": "connection", "number": number, "window_bytes": 100, "in_flight_bytes": each}
        for number, each in enumerate(in_flight)
    ]
    file = folder / "truth.ndjson"
    file.write_text("".join(json.dumps(each) + "\n" for each in [{"type": "camera"}, *lines[::-1]]))
    return file


def test_it_is_open_once_it_limits_nothing_for_a_second(tmp_path: Path) -> None:
    assert window_opens(written(tmp_path, [95] * 30 + [50] * 20 + [95] + [50] * 40)) == 51
    assert window_opens(written(tmp_path, [50] * 60)) == 0


def test_one_that_limits_to_the_end_is_told(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="limits what is sent to the end"):
        window_opens(written(tmp_path, [95] * 60))


def test_kernel_that_says_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="has said nothing of the connection"):
        window_opens(written(tmp_path, []))
