# SPDX-License-Identifier: Apache-2.0
"""The verb camera with --v4l2, without a device: what is none, and what is not for a real camera."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.traffic_gen.two_ends import free


def refused(bw_loop: Path, *options: str | Path) -> tuple[int, str]:
    """Return exit code and what was said."""
    words = [bw_loop, "camera", "--serve", free(), *options]
    done = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


def test_what_is_no_camera(bw_loop: Path, tmp_path: Path) -> None:
    file = tmp_path / "picture"
    file.write_bytes(b"P5\n")
    for device in (file, Path("/dev/null")):
        said = f"bw-loop camera: {device} is no V4L2 device\n"
        assert refused(bw_loop, "--v4l2", device) == (3, said)
    absent = tmp_path / "video0"
    said = f"bw-loop camera: cannot capture by {absent}: No such file or directory\n"
    assert refused(bw_loop, "--v4l2", absent) == (3, said)
    assert refused(bw_loop, "--v4l2", tmp_path) == (
        3,
        f"bw-loop camera: cannot capture by {tmp_path}: Is a directory\n",
    )
    assert file.read_bytes() == b"P5\n"


@pytest.mark.parametrize(
    "option",
    [
        "--seed 1",
        "--path=still",
        "--exposure-us 10",
        "--noise-q8=0",
        "--look 1,1",
        "--pan-px-s 1",
        "--motor-delay-ms 1",
        "--reversed",
    ],
)
def test_options_of_the_synthetic_camera(bw_loop: Path, option: str) -> None:
    code, said = refused(bw_loop, *option.split(), "--v4l2", "/dev/null")
    assert (code, said.count("\n")) == (2, 1)
    assert f" {option.split()[0]} is not for --v4l2" in said


def test_a_size_that_no_picture_has(bw_loop: Path) -> None:
    code, said = refused(bw_loop, "--v4l2", "/dev/null", "--size", "4096x16")
    assert (code, said) == (2, 'bw-loop camera: --size: "4096x16"; needed: WIDTHxHEIGHT, 32 to 2048 each\n')


def test_a_rate_beyond_the_exposure_of_the_synthetic_camera(bw_loop: Path) -> None:
    assert refused(bw_loop, "--v4l2", "/dev/null", "--pictures-per-s", "240")[0] == 3
