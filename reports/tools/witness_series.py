# SPDX-License-Identifier: Apache-2.0
"""The series of a witness: all its wake-ups, and what the threads it reads have run since the one before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from reports.errors import RecordError

SERIES = "witness.series"
MAGIC = b"BWCAP1\n\0"
THREADS_MAX = 4096


def read_series(path: Path) -> tuple[list[int], int, Any]:
    """Return the CPUs, the interval in ns and the records of a witness's series.

    Returns:
        Records are a structured array of shape (n,): wake_tai_ns, late_ns, cpu, ran_ns of shape (threads,).

    Raises:
        RecordError: It is none, or torn.
    """
    data = path.read_bytes()
    if data[:8] != MAGIC or len(data) < 24:
        raise RecordError(f"{path.name}: no series of a witness")
    cpus, threads = (int(number) for number in np.frombuffer(data, "<u4", 2, 8))
    period_ns = int(np.frombuffer(data, "<i8", 1, 16)[0])
    if max(cpus, threads) > THREADS_MAX:
        raise RecordError(f"{path.name}: {cpus} CPUs and {threads} threads; at most {THREADS_MAX}")
    begin = 24 + 4 * (cpus + threads)
    form = np.dtype(
        [("wake_tai_ns", "<i8"), ("late_ns", "<i4"), ("cpu", "<i4"), ("ran_ns", "<i4", (threads,))]
    )
    if len(data) < begin or (len(data) - begin) % form.itemsize:
        raise RecordError(f"{path.name}: torn after {len(data)} bytes")
    numbers = np.frombuffer(data, "<i4", cpus, 24)
    return [int(cpu) for cpu in numbers], period_ns, np.frombuffer(data, form, offset=begin)
