# SPDX-License-Identifier: Apache-2.0
"""When the emulator of a guest did not run it, though cyclictest was due there.

The bench's witness reads, each time it wakes up, what the guest's virtual processors have run by the host's
scheduler (docs/native-tools.md, `Capacity`). A thread of cyclictest is due on each of them at least once an
interval. So a virtual processor that has not run for as long as that was due, and was not run: a pause. A
guest that computes, or keeps its interrupts off, has its virtual processor run, and is to blame itself.

`emulation.ndjson` keeps of the series a line a CPU of the guest:

    {"cpu":0,"period_ns":250000,"readings":41210,"due_tai_ns":[start,end],"pauses_tai_ns":[[start,end],…]}

by the witness's clock. A pause begins in the interval between readings before the first without any running,
as much later as the virtual processor ran in that; it ends likewise in the one behind the last. Before and
after cyclictest the guest sleeps as it likes: `due_tai_ns` is the stretch with the largest excess of time
outside of such sleeps over time inside, and pauses outside of it are none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reports.errors import RecordError
from reports.record.json_text import load_json
from reports.tools.witness_series import SERIES, read_series

EMULATION = "emulation.ndjson"
IDLE_SHARE = 0.02
"""A virtual processor that has run less than this of an interval did not run in it."""
VCPU = "vcpu"
"""Names of virtual processors' threads begin with it, and end with a number from 0 on."""
FEWEST = 2
"""Readings that have an interval between them."""

Pause = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Emulator:
    """What is known of one virtual processor, by the witness's clock.

    Attributes:
        due: (start, end) of the time in which cyclictest was due on it, in ns.
        pauses: (start, end) of when it did not run meanwhile, in ns; ascending.
    """

    due: Pause
    pauses: tuple[Pause, ...] = ()

    @property
    def longest_ns(self) -> int:
        """Return how long the longest pause lasted; 0: there is none."""
        return max((end - start for start, end in self.pauses), default=0)


def keep_emulator(folder: Path, threads: Sequence[str], interval_us: int, between_tai_ns: Pause) -> None:
    """Keep the pauses of an emulator of the series that its witness has written, and remove that.

    Args:
        folder: Of the case.
        threads: Names of those that the witness read, in its order: `vcpu0`, …
        interval_us: From one wake-up of cyclictest to the next.
        between_tai_ns: Before and after it cyclictest did certainly not run.

    Raises:
        RecordError: The series is none, or torn.
    """
    path = folder / SERIES
    cpus, period_ns, records = read_series(path)
    if records["ran_ns"].shape[1] != len(threads):
        raise RecordError(f"{path.name}: {records['ran_ns'].shape[1]} threads, not {len(threads)}")
    readings = records[records["cpu"] == cpus[0]]
    begin, end = np.searchsorted(readings["wake_tai_ns"], between_tai_ns)
    readings = readings[begin:end]
    if len(readings) < FEWEST:
        raise RecordError(f"{path.name}: {len(readings)} readings while cyclictest ran")
    lines: list[dict[str, Any]] = []
    for place, name in enumerate(threads):
        found = emulator_of(readings["wake_tai_ns"], readings["ran_ns"][:, place], interval_us * 1000)
        lines.append(
            {
                "cpu": int(name.removeprefix(VCPU)),
                "period_ns": period_ns,
                "readings": len(readings),
                "due_tai_ns": [*found.due],
                "pauses_tai_ns": [[*pause] for pause in found.pauses],
            }
        )
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    (folder / EMULATION).write_text(text, encoding="utf-8")
    path.unlink()


def emulator_of(times_ns: Any, ran_ns: Any, due_ns: int) -> Emulator:
    """Return when a virtual processor that was due each `due_ns` was, and did not run.

    Args:
        times_ns: Of readings, shape (n,).
        ran_ns: What it has run at each since the reading before, shape (n,).
        due_ns: So long without running is a pause; what is shorter it may have slept.
    """
    spans_ns = np.diff(times_ns)
    is_idle = np.concatenate([[False], ran_ns[1:] < IDLE_SHARE * spans_ns, [False]])
    edges = np.flatnonzero(np.diff(is_idle.astype(np.int8)))
    left_ns = np.maximum(spans_ns - ran_ns[1:], 0)
    score_ns = spans_ns.astype(np.int64)
    pauses: list[tuple[int, Pause]] = []
    for first, behind in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        # Spans first … behind - 1, of which each is between the readings of its number and the next.
        start_ns, end_ns = int(times_ns[first]), int(times_ns[behind])
        if end_ns - start_ns < due_ns:
            continue
        score_ns[first:behind] *= -1
        before_ns = int(left_ns[first - 1]) if first else 0
        after_ns = int(left_ns[behind]) if behind < len(spans_ns) else 0
        pauses.append((first, (start_ns - before_ns, end_ns + after_ns)))
    begin, end = _best_stretch(score_ns)
    due = int(times_ns[begin]), int(times_ns[end])
    return Emulator(due, tuple(pause for first, pause in pauses if begin <= first < end))


def _best_stretch(score: Any) -> Pause:
    """Return from which value to before which the sum is the largest, of values of shape (n,)."""
    sums = np.concatenate([[0], np.cumsum(score)])
    least = np.minimum.accumulate(sums)
    end = int(np.argmax(sums - least))
    return int(np.argmin(sums[: end + 1])), end


def read_emulator(path: Path) -> dict[int, Emulator]:
    """Return what is known of each CPU of a guest; raises RecordError: the file is damaged."""
    found: dict[int, Emulator] = {}
    try:
        for line in map(load_json, path.read_text(encoding="utf-8").splitlines()):
            due, *pauses = (
                (int(start), int(end)) for start, end in [line["due_tai_ns"], *line["pauses_tai_ns"]]
            )
            if any(start >= end for start, end in pauses):
                raise ValueError("a pause ends before it begins")
            if due[0] > due[1] or any(start >= due[1] or end <= due[0] for start, end in pauses):
                raise ValueError("due_tai_ns ends before it begins, or a pause lies outside of due_tai_ns")
            if int(line["cpu"]) in found:
                raise ValueError(f"has CPU {int(line['cpu'])} twice")
            found[int(line["cpu"])] = Emulator(due, tuple(sorted(pauses)))
    except (OSError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"{path.name}: {error!r}") from error
    return found
