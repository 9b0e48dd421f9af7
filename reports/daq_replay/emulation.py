# SPDX-License-Identifier: Apache-2.0
"""What the emulator of a target was given by its machine, and when it did not run the target.

The witness of the bench's machine reads at each wake-up what the emulator's threads have run, and writes it
into a series (docs/native-tools.md, `Capacity`). A second witness runs in the target itself, above all else
there. Where that one is overdue and the target's virtual processor has not run meanwhile, the emulator did
not run the target: a pause of the emulator, for which the target is not to blame. A target that computes, or
keeps its interrupts off, has its virtual processor run.

Of all that the evidence keeps in `emulation.ndjson` what lies around the latest messages, a line a message,
and around the times that the target's witness was overdue, a line a time:

    {"stream":23,"sequence":412,"period_ns":250000,"vcpu_ran_ns":[[time_ns,ran_ns],…]}
    {"overdue_tai_ns":[start,end],"period_ns":2000000,"vcpu_ran_ns":[[time_ns,ran_ns],…]}

`time_ns` counts from the message's scheduled time, or from `start`; `ran_ns` is what the target's virtual
processor has run since the reading before. `start` and `end` are by the clock of the bench's witness.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from reports.daq_replay.late_messages import AROUND_NS, Ran, latest_messages
from reports.daq_replay.verdict import ReplayResults, witness_time
from reports.errors import RecordError
from reports.record.json_text import load_json
from reports.tools.answers import WitnessResult, last_result, witness_result
from reports.tools.witness_series import SERIES, read_series

TARGET_WITNESS = "witness-target.ndjson"
EMULATION = "emulation.ndjson"
IDLE_SHARE = 0.1
"""A virtual processor that has run less than this of an interval did not run in it."""


@dataclass(frozen=True, slots=True)
class Emulation:
    """What is known of a target's emulator in one replay.

    Attributes:
        around: By stream and sequence, what the virtual processor ran around a late message.
        pauses: (start, end) of the emulator's pauses by the clock of the bench's witness, ns; ascending.
    """

    around: dict[tuple[int, int], tuple[Ran, ...]] = field(
        default_factory=dict[tuple[int, int], tuple[Ran, ...]]
    )
    pauses: tuple[tuple[int, int], ...] = ()


def keep_emulation(folder: Path, replay: ReplayResults) -> None:
    """Keep what says something of the emulator in a replay, and remove the series; harmless without one.

    A series that is damaged stays as it is, as does one beside a damaged answer of the target's witness:
    without both nothing is put down to the emulator.

    Args:
        folder: Evidence of the replay.
        replay: As it is judged.
    """
    series, path = folder / SERIES, folder / TARGET_WITNESS
    if not series.exists():
        return
    try:
        cpus, period_ns, records = read_series(series)
        target = witness_result(last_result(path)) if path.exists() else None
    except RecordError:
        return
    first = records[records["cpu"] == cpus[0]]
    lines = [*_around_messages(first, period_ns, replay), *_around_overdue(first, target, replay)]
    if lines:
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (folder / EMULATION).write_text(text, encoding="utf-8")
    series.unlink()


def _around_messages(readings: Any, period_ns: int, replay: ReplayResults) -> list[dict[str, Any]]:
    by_witness = witness_time(replay)
    if by_witness is None:
        return []
    arrived = {(m.stream, m.sequence): by_witness(m.received_local_tai_ns) for m in replay.misses}
    lines: list[dict[str, Any]] = []
    for message in latest_messages(replay):
        scheduled_ns = (arrived[message.stream, message.sequence] or 0) - message.received_ns
        ran = _ran(readings, 0, scheduled_ns - AROUND_NS, scheduled_ns + message.received_ns + AROUND_NS)
        lines.append(
            {
                "stream": message.stream,
                "sequence": message.sequence,
                "period_ns": period_ns,
                "vcpu_ran_ns": [[time_ns - scheduled_ns, ran_ns] for time_ns, ran_ns in ran],
            }
        )
    return lines


def _around_overdue(
    readings: Any, target: WitnessResult | None, replay: ReplayResults
) -> list[dict[str, Any]]:
    by_witness = witness_time(replay)
    if by_witness is None or target is None:
        return []
    lines: list[dict[str, Any]] = []
    for start_local_ns, end_local_ns, cpu in target.windows:
        start_ns, end_ns = by_witness(start_local_ns), by_witness(end_local_ns)
        if start_ns is None or end_ns is None or cpu >= readings["ran_ns"].shape[1]:
            continue
        ran = _ran(readings, cpu, start_ns - 2 * target.period_ns, end_ns)
        lines.append(
            {
                "overdue_tai_ns": [start_ns, end_ns],
                "period_ns": target.period_ns,
                "vcpu_ran_ns": [[time_ns - start_ns, ran_ns] for time_ns, ran_ns in ran],
            }
        )
    return lines


def _ran(readings: Any, thread: int, begin_ns: int, end_ns: int) -> list[Ran]:
    """Return the readings of a thread between two instants, and the one after."""
    times = readings["wake_tai_ns"]
    low, high = np.searchsorted(times, [begin_ns, end_ns])
    near = readings[low : high + 1]
    return [(int(each["wake_tai_ns"]), int(each["ran_ns"][thread])) for each in near]


def pauses_of(start_ns: int, end_ns: int, period_ns: int, ran: Sequence[Ran]) -> list[tuple[int, int]]:
    """Return when the emulator did not run a target whose witness was overdue.

    A pause is made of intervals between readings in which the virtual processor has not run. It ends while
    the witness was overdue, and may have begun one of its periods before: then it was not due yet.

    Args:
        start_ns: Since then the target's witness was overdue.
        end_ns: Until then.
        period_ns: Of the target's witness.
        ran: Readings, from two such periods before until after the end; times count from `start_ns`.
    """
    pauses: list[tuple[int, int]] = []
    for (since_ns, _), (until_ns, ran_ns) in itertools.pairwise(ran):
        begin = max(start_ns + since_ns, start_ns - period_ns)
        end = min(start_ns + until_ns, end_ns)
        if end <= begin or ran_ns >= IDLE_SHARE * (until_ns - since_ns):
            continue
        if pauses and pauses[-1][1] == begin:
            pauses[-1] = (pauses[-1][0], end)
        else:
            pauses.append((begin, end))
    return [(begin, end) for begin, end in pauses if end > start_ns]


def read_emulation(path: Path) -> Emulation:
    """Return what was kept; raises RecordError where the file is damaged."""
    around: dict[tuple[int, int], tuple[Ran, ...]] = {}
    pauses: list[tuple[int, int]] = []
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            data: dict[str, Any] = load_json(line)
            rows = tuple((int(time_ns), int(ran_ns)) for time_ns, ran_ns in data["vcpu_ran_ns"])
            if "stream" in data:
                around[int(data["stream"]), int(data["sequence"])] = rows
            else:
                start_ns, end_ns = (int(time_ns) for time_ns in data["overdue_tai_ns"])
                pauses += pauses_of(start_ns, end_ns, int(data["period_ns"]), rows)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RecordError(f"{path.name}: {error!r}") from error
    return Emulation(around, tuple(sorted(pauses)))
