# SPDX-License-Identifier: Apache-2.0
"""What the emulator of a target was given by its machine around the latest messages of a replay.

The witness writes all that it saw into a series (docs/native-tools.md, `Capacity`). Of that the evidence
keeps what lies around the latest messages, in `emulation.ndjson`, a line a message:
`{"stream":23,"sequence":412,"period_ns":250000,"vcpu_ran_ns":[[time_ns,ran_ns],…]}`. `time_ns` counts from
the message's scheduled time; `ran_ns` is what the target's first virtual processor has run since the reading
before.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from reports.errors import RecordError
from reports.late_messages import AROUND_NS, Ran, latest_messages
from reports.latency import Replay, arrival_by_witness

EMULATION = "emulation.ndjson"
SERIES = "witness.series"
MAGIC = b"BWCAP1\n\0"


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
    begin = 24 + 4 * (cpus + threads)
    form = np.dtype(
        [("wake_tai_ns", "<i8"), ("late_ns", "<i4"), ("cpu", "<i4"), ("ran_ns", "<i4", (threads,))]
    )
    if len(data) < begin or (len(data) - begin) % form.itemsize:
        raise RecordError(f"{path.name}: torn after {len(data)} bytes")
    numbers = np.frombuffer(data, "<i4", cpus, 24)
    return [int(cpu) for cpu in numbers], period_ns, np.frombuffer(data, form, offset=begin)


def keep_emulation(folder: Path, replay: Replay) -> None:
    """Keep what lies around the latest messages of a replay, and remove the series; harmless without one.

    A series that is damaged stays as it is: it says more of the replay, and decides nothing.

    Args:
        folder: Evidence of the replay.
        replay: As it is judged.
    """
    series = folder / SERIES
    if not series.exists():
        return
    arrival = arrival_by_witness(replay)
    messages = latest_messages(replay)
    if messages and arrival is not None:
        try:
            cpus, period_ns, records = read_series(series)
        except RecordError:
            return
        first = records[records["cpu"] == cpus[0]]
        arrived = {(miss.stream, miss.sequence): arrival(miss) for miss in replay.misses}
        with (folder / EMULATION).open("w", encoding="utf-8") as file:
            for message in messages:
                scheduled_ns = (arrived[message.stream, message.sequence] or 0) - message.received_ns
                times = first["wake_tai_ns"] - scheduled_ns
                near = first[(times > -AROUND_NS) & (times < message.received_ns + AROUND_NS)]
                line = {
                    "stream": message.stream,
                    "sequence": message.sequence,
                    "period_ns": period_ns,
                    "vcpu_ran_ns": [
                        [int(each["wake_tai_ns"]) - scheduled_ns, int(each["ran_ns"][0])] for each in near
                    ],
                }
                file.write(json.dumps(line, separators=(",", ":")) + "\n")
    series.unlink()


def read_emulation(path: Path) -> dict[tuple[int, int], tuple[Ran, ...]]:
    """Return what was kept, by stream and sequence; raises RecordError where the file is damaged."""
    found: dict[tuple[int, int], tuple[Ran, ...]] = {}
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            data: dict[str, Any] = json.loads(line)
            rows = tuple((int(time_ns), int(ran_ns)) for time_ns, ran_ns in data["vcpu_ran_ns"])
            found[int(data["stream"]), int(data["sequence"])] = rows
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(f"{path.name}: {error!r}") from error
    return found
