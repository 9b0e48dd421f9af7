# SPDX-License-Identifier: Apache-2.0
"""A recording of kernel events as a run holds it: one file, packed by gzip.

It holds the description of the ring (kernel_formats.py) as text, then of each CPU a line
`pages: cpuN BYTES` and its pages, as the kernel gave them.
"""

from __future__ import annotations

import gzip
import re
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.timeline.kernel_formats import parse_formats
from reports.timeline.kernel_ring import CpuRing, decode_ring

RECORDING_MAX_BYTES = 1 << 30
"""Unpacked: a file that holds more is refused."""

_PAGES = re.compile(rb"pages: cpu(\d{1,5}) (\d{1,12})\n")


@dataclass(frozen=True)
class Recording:
    """What a machine's kernel recorded.

    Attributes:
        rings: By CPU.
        dropped: By CPU, events that came when its buffer was full, and are not in its ring.
    """

    rings: Mapping[int, CpuRing]
    dropped: Mapping[int, int]


def write_recording(path: Path, description: str, pages: Mapping[int, Path]) -> None:
    """Write a recording.

    Args:
        path: The file.
        description: Of the ring, as its machine gives it.
        pages: By CPU, files of its pages.
    """
    with gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as packed:
        packed.write(description.encode())
        for cpu, file in sorted(pages.items()):
            packed.write(f"pages: cpu{cpu} {file.stat().st_size}\n".encode())
            with file.open("rb") as raw:
                shutil.copyfileobj(raw, packed)


def load_recording(path: Path) -> Recording:
    """Read and decode a recording; what is damaged in its pages is told by each ring (`CpuRing.damages`).

    Raises:
        RecordError: Names the file; it cannot be read, ends too soon, or is no recording.
    """
    try:
        with gzip.open(path, "rb") as packed:
            data = packed.read(RECORDING_MAX_BYTES + 1)
        if len(data) > RECORDING_MAX_BYTES:
            raise RecordError(f"holds more than {RECORDING_MAX_BYTES} bytes")
        return _decode(data)
    except (OSError, EOFError, zlib.error, RecordError) as error:
        raise RecordError(f"{path.name}: {error}") from error


def _decode(data: bytes) -> Recording:
    begin = data.find(b"\npages: ") + 1 or len(data)
    formats = parse_formats(data[:begin].decode(errors="replace"))
    found, end = _PAGES.match(data, begin), begin
    rings: dict[int, CpuRing] = {}
    while found:
        cpu, end = int(found[1]), found.end() + int(found[2])
        if end > len(data):
            raise RecordError(f"ends within the pages of CPU {cpu}, after {len(data)} of {end} bytes")
        if cpu in rings:
            raise RecordError(f"has CPU {cpu} twice")
        rings[cpu] = decode_ring(data[found.end() : end], formats, cpu)
        found = _PAGES.match(data, end)
    if end < len(data):
        raise RecordError(f"byte {end}: neither its end nor the pages of a CPU")
    return Recording(rings, formats.dropped)
