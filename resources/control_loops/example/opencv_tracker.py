# SPDX-License-Identifier: Apache-2.0
"""A site's own tracker by OpenCV: pictures on stdin, commands on stdout (docs/control-loops.md).

    bw-loop tracker --camera … --control … --program python3 opencv_tracker.py

It needs `opencv-python-headless`, which the bench itself does not. The target is what looks most like a
bright disc in a dark ring, by template matching; a parabola through the best place and its neighbours tells
it to a part of a pixel. A disc that is not whole in the picture is told less well.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

import cv2  # type: ignore[import-not-found]
import numpy as np

HEADER_BYTES = 40
RADIUS_PX = 12
"""Of the target, in the world."""
SURE = 0.6
"""Correlation from which on it is the target."""
cv: Any = cv2


def template(radius_px: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a bright disc in a dark ring half as wide, with soft edges."""
    half = int(radius_px * 1.5) + 2
    y, x = np.mgrid[-half : half + 1, -half : half + 1]
    away = np.hypot(x, y)
    disc = np.clip(radius_px + 0.5 - away, 0, 1)
    ring = np.clip(1.5 * radius_px + 0.5 - away, 0, 1)
    return (110 - 90 * (ring - disc) + 130 * disc).astype(np.float32)


def beside(before: float, best: float, after: float) -> float:
    """Return where the top of a parabola through three neighbours is, from the middle one."""
    bend = before - 2 * best + after
    return 0.5 * (before - after) / bend if bend < 0 else 0.0


def found(picture: np.ndarray[Any, np.dtype[np.uint8]], zoom: float) -> tuple[float, float] | None:
    """Return the target's centre in columns and rows; None: it is not there."""
    wanted = template(RADIUS_PX * zoom)
    if min(picture.shape) <= max(wanted.shape):
        return None
    match = cv.matchTemplate(picture.astype(np.float32), wanted, cv.TM_CCOEFF_NORMED)
    _, best, _, (column, row) = cv.minMaxLoc(match)
    if best < SURE:
        return None
    half = wanted.shape[0] // 2
    x, y = float(column), float(row)
    if 0 < column < match.shape[1] - 1:
        x += beside(*(float(each) for each in match[row, column - 1 : column + 2]))
    if 0 < row < match.shape[0] - 1:
        y += beside(*(float(each) for each in match[row - 1 : row + 2, column]))
    return x + half, y + half


def main() -> None:
    """Answer each picture in which the target is."""
    pictures = sys.stdin.buffer
    while len(head := pictures.read(HEADER_BYTES)) == HEADER_BYTES and not head[5]:
        width, height, number, x_q8, y_q8, zoom_q8 = struct.unpack(">HHIiiI", head[8:28])
        pixels = np.frombuffer(pictures.read(width * height), np.uint8).reshape(height, width)
        centre = found(pixels, zoom_q8 / 256)
        if centre is not None:
            x = x_q8 + round((centre[0] - (width - 1) / 2) * 65536 / zoom_q8)
            y = y_q8 + round((centre[1] - (height - 1) / 2) * 65536 / zoom_q8)
            print("look", number, x, y, zoom_q8, flush=True)


if __name__ == "__main__":
    main()
