# SPDX-License-Identifier: Apache-2.0
"""Grey pictures as PNG (ISO/IEC 15948): 8 bits a pixel, the same bytes each time."""

from __future__ import annotations

import struct
from zlib import DEFLATED, MAX_WBITS, Z_BEST_COMPRESSION, compressobj, crc32

import numpy as np
from numpy.typing import NDArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EIGHT_BITS, _GREY, _AVERAGE = 8, 0, 3
_MEMORY_LEVEL, _FILTERED = 9, 1
"""Of zlib: its most memory; values that a filter has left, small and scattered."""


def grey_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a picture as PNG.

    Args:
        pixels: Shape (height, width), rows from the top.
    """
    height, width = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, _EIGHT_BITS, _GREY, 0, 0, 0)
    # A pixel less the mean of those left and above of it, modulo 256: the smallest of the filters with noise.
    before = np.pad(pixels, ((1, 0), (1, 0))).astype(np.int64)
    rest = (pixels - (before[1:, :-1] + before[:-1, 1:]) // 2) % 256
    rows = np.pad(rest, ((0, 0), (1, 0)), constant_values=_AVERAGE).astype(np.uint8).tobytes()
    made = compressobj(Z_BEST_COMPRESSION, DEFLATED, MAX_WBITS, _MEMORY_LEVEL, _FILTERED)
    chunks = (b"IHDR", head), (b"IDAT", made.compress(rows) + made.flush()), (b"IEND", b"")
    return _SIGNATURE + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", crc32(kind + content))
