# SPDX-License-Identifier: Apache-2.0
"""A window of the display: a program of somebody else that reads PGM, and ones that do not."""

from __future__ import annotations

import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.patience import HANG_S
from tests.traffic_gen.loop.cameras import PATIENT, connect, header
from tests.traffic_gen.two_ends import end, ended, free

SIZE = (48, 32)
READER = """
import os, sys
from io import BytesIO
import numpy as np
from matplotlib.image import imread
stdin, count = sys.stdin.buffer, 0
while head := stdin.readline():
    head += (sides := stdin.readline()) + stdin.readline()
    width, height = map(int, sides.split())
    picture = imread(BytesIO(head + stdin.read(width * height)), format="pgm")
    np.save(f"{sys.argv[1]}/part.npy", picture)
    os.rename(f"{sys.argv[1]}/part.npy", f"{sys.argv[1]}/{count}.npy")
    count += 1
    print("shown", count, flush=True)
"""
"""Pillow, by way of matplotlib, reads each picture."""


def pixels(number: int, size: tuple[int, int]) -> bytes:
    """Return levels of a picture, no two of which are alike."""
    return bytes((number * 31 + at * 7 + at // 251) % 256 for at in range(size[0] * size[1]))


def picture(number: int, size: tuple[int, int] = SIZE) -> bytes:
    levels = pixels(number, size)
    return header(number, size, zlib.crc32(levels)) + levels


def test_a_program_shows_each_picture(bw_loop: Path, tmp_path: Path) -> None:
    show = ["--show", sys.executable, "-c", READER, tmp_path]
    sizes = [SIZE, (64, 33), SIZE]
    with (
        end(bw_loop, "display", "--listen", free(), *PATIENT, *show) as (process, ready),
        connect(ready["address"]) as peer,
    ):
        for number, size in enumerate(sizes):
            peer.sendall(picture(number, size))
            deadline_s = time.monotonic() + HANG_S
            while not (tmp_path / f"{number}.npy").exists():
                assert time.monotonic() < deadline_s
                time.sleep(0.001)
        peer.sendall(header(3, is_end=True))
        code, result, said = ended(process)
    assert (code, result["pictures"], result["shown"], result["not_shown"]) == (0, 3, 3, 0)
    assert "shown 3" in said  # its stdout is no part of the display's
    for number, size in enumerate(sizes):
        seen = np.load(tmp_path / f"{number}.npy")
        assert (seen.dtype, seen.shape) == (np.uint8, size[::-1])
        assert seen.tobytes() == pixels(number, size)


@pytest.mark.parametrize(
    "program",
    ["import sys; sys.exit(3)", "import time; time.sleep(1000)", "import os; os.kill(os.getpid(), 9)"],
)
def test_a_program_that_takes_nothing_holds_up_nothing(bw_loop: Path, program: str) -> None:
    """Pictures of 4 MiB: what the kernel holds for a program has no room for one."""
    with (
        end(bw_loop, "display", "--listen", free(), *PATIENT, "--show", sys.executable, "-c", program) as (
            process,
            ready,
        ),
        connect(ready["address"]) as peer,
    ):
        for number in range(8):
            peer.sendall(picture(number, (2048, 2048)))
        peer.sendall(header(8, is_end=True))
        code, result, _ = ended(process)
    assert (code, result["valid"], result["pictures"]) == (0, True, 8)
    assert (result["shown"], result["not_shown"]) == (0, 8)


def test_without_it_nothing_is_said_of_it(bw_loop: Path) -> None:
    with end(bw_loop, "display", "--listen", free(), *PATIENT) as (process, ready):
        with connect(ready["address"]) as peer:
            peer.sendall(picture(0) + header(1, is_end=True))
        code, result, _ = ended(process)
    assert code == 0
    assert "shown" not in result
    assert "not_shown" not in result


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [([], 2, "a program, and its words"), (["/no/such"], 3, "cannot start /no/such")],
)
def test_a_program_that_is_none_is_refused(bw_loop: Path, words: list[str], code: int, said: str) -> None:
    line = [bw_loop, "display", "--listen", free(), "--show", *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
