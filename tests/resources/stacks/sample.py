# SPDX-License-Identifier: Apache-2.0
"""A replay's evidence with every message logged: two streams of one type, one of another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resources.daq_replay.pattern import Pattern, Stream
from tests.reports.sample_run import START_TAI_NS, recv_answer, send_answer, stream_answer, stream_sent

MS = 1_000_000
PERIOD_NS = 10 * MS
COUNT = 20
LATENESS_NS = 2000
BUDGETS_NS = {10: 50 * MS, 20: 40 * MS, 13: 10 * MS}
HEAD = (
    "stream,sequence,scheduled_tai_ns,lateness_ns,received_minus_scheduled_ns,received_local_tai_ns,"
    "received_reference_tai_ns,kernel_stamp_local_tai_ns"
)
STREAMS = tuple(
    Stream(number, number // 10, number % 10, "tcp", 100, PERIOD_NS, budget_ns, number % 10 == 3, 0)
    for number, budget_ns in BUDGETS_NS.items()
)
PATTERN = Pattern("made-up", "nobody", "aligned-12", STREAMS)


def way_ns(stream: int, sequence: int) -> int:
    """Return how long a message was under way."""
    return 100_000 + 1000 * stream + sequence


def sent_ns(sequence: int) -> int:
    """Return when a message was sent, TAI."""
    return START_TAI_NS + sequence * PERIOD_NS + LATENESS_NS


def write_replay(
    folder: Path, lost: Mapping[int, int] | None = None, witness: Mapping[str, Any] | None = None
) -> Path:
    """Write a replay of `PATTERN`; the first messages of streams may be lost. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[str] = [HEAD]
    answers: list[dict[str, Any]] = []
    for number, budget_ns in BUDGETS_NS.items():
        came = range((lost or {}).get(number, 0), COUNT)
        received = [(LATENESS_NS, way_ns(number, sequence)) for sequence in came]
        answers.append(stream_answer(number, 100, PERIOD_NS, budget_ns, budget_ns, COUNT, received))
        for sequence in came:
            scheduled_ns = sent_ns(sequence) - LATENESS_NS
            whole_ns = LATENESS_NS + way_ns(number, sequence)
            at_ns = scheduled_ns + whole_ns
            rows.append(f"{number},{sequence},{scheduled_ns},{LATENESS_NS},{whole_ns},{at_ns},{at_ns},0")
    (folder / "messages.csv").write_text("\n".join(rows) + "\n")
    clock = {
        "name": "host", "exchanges": 9, "kept": 9, "offset_ns": 0, "rate_ppb": 0, "bound_ns": 3000,
        "residual_ns": 1000, "rtt_min_ns": 1, "rtt_p50_ns": 1, "series": [[START_TAI_NS, 0, 3000]],
    }  # fmt: skip
    _write(folder / "recv.ndjson", recv_answer(answers, [clock], duration_ms=200))
    sends = [stream_sent(number, COUNT, [LATENESS_NS] * COUNT) for number in BUDGETS_NS]
    _write(folder / "send-p01.ndjson", send_answer(sends))
    producers = "".join(f'[[producer]]\nnumber = {number}\nclock = "host"\n' for number in (1, 2))
    (folder / "plan.toml").write_text(producers)
    if witness is not None:
        _write(folder / "witness.ndjson", witness)
    return folder


def witness(windows: Sequence[tuple[int, int]], unclaimed_ns: int = 0) -> dict[str, Any]:
    """Return what a witness says of windows in which it was not woken up, all of the time on one CPU."""
    return {
        "type": "result", "tool": "bw-traffic witness", "version": "0.2.2", "complete": True,
        "cpus": [{"cpu": 0, "samples": 9, "stalls": len(windows), "stalled_ns": 1, "max_ns": 1, "steal_ns": 0,
                  "idle_ns": 0, "utilisation": 0.0}],
        "stalled_fraction": 0.01, "windows": [[start, end, 0] for start, end in windows],
        "windows_dropped": 0, "period_ns": 250_000, "threshold_ns": 100_000,
        "target_ran_ns": [0] * len(windows), "unclaimed_ns": [unclaimed_ns] * len(windows),
    }  # fmt: skip


def change_recv(folder: Path, **values: Any) -> None:
    """Change what the consumer says."""
    file = folder / "recv.ndjson"
    _write(file, json.loads(file.read_text()) | values)


def _write(file: Path, answer: Mapping[str, Any]) -> None:
    file.write_text(json.dumps(answer) + "\n")
