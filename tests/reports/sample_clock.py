# SPDX-License-Identifier: Apache-2.0
"""A realistic clock trial for tests: answers in their documented form, from a fixed seed."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.clock_sync.trial import (
    EVIDENCE_FILES,
    FILTERED,
    WITNESS,
    ClockTrial,
    Lock,
    Servo,
    Timecard,
    TrialFacts,
    TwoWay,
    write_trial,
)
from reports.record.context import Context
from reports.record.measurement import Conditions, Limit, Subject
from reports.requirements import Requirement
from reports.run.folder import RunFolder
from tests.reports.sample_run import summary

START_TAI_NS = 1_795_000_000_000_000_000
SECOND_NS = 1_000_000_000


def trial_context(
    run: RunFolder, trials: Sequence[ClockTrial], names: Sequence[str] = EVIDENCE_FILES
) -> Context:
    """Return what a record of trials says beside its value, as the suite does; of the last the conditions."""
    facts = trials[-1].facts
    phase = facts.kind if facts.interval_s is None else f"{facts.kind} {facts.interval_s:g} s"
    files = [trial.folder / name for trial in trials for name in names]
    return Context(
        run.run_id,
        "a test",
        Subject("virtual", "linux-rt", clock=facts.clock),
        Conditions("ci", phase, facts.load, facts.impairment),
        True,
        tuple(run.evidence(file) for file in files if file.exists()),
    )


def offset_requirement(name: str, clock: str, limit_ns: int, lock_within_s: int) -> Requirement:
    """Return a requirement on a clock's largest offset."""
    return Requirement(
        name,
        "sync_offset",
        "max_abs",
        Limit(limit_ns, None, "test"),
        subject=("clock", clock),
        lock_within_s=lock_within_s,
    )


def compare_answer(
    mean_ns: int = 3_000, deviation_ns: int = 4_000, seconds: int = 10, **changes: Any
) -> dict[str, Any]:
    """Return the `result` object of `bw-clock compare`; `changes` replace members."""
    rng = random.Random(7)
    rows: list[list[int]] = []
    samples: list[int] = []
    for second in range(seconds * 10):
        offsets = [mean_ns + int(rng.gauss(0, deviation_ns)) for _ in range(20)]
        samples += offsets
        time_ns = START_TAI_NS + second * SECOND_NS // 10
        rows.append([time_ns, 20, round(sum(offsets) / 20), min(offsets), max(offsets)])
    columns = ["time_tai_ns", "n", "mean_ns", "min_ns", "max_ns"]
    answer: dict[str, Any] = {
        "type": "result", "tool": "bw-clock compare", "version": "0.1.0", "complete": True, "valid": True,
        "invalid_reasons": [], "device": {"name": "realtime", "kind": "realtime", "tai_utc_s": 37},
        "reference": {"name": "card", "kind": "card", "bound_ns": 300, "source": "grandmaster"},
        "read": "filtered", "phc_read": None, "iterations": len(samples) + 12, "discarded": 12,
        "elapsed_ns": seconds * SECOND_NS, "start_tai_ns": START_TAI_NS,
        "offset": summary(samples), "window": summary([900] * len(samples)),
        "series": {"interval_ns": SECOND_NS // 10, "columns": columns, "rows": rows},
        "steps": [], "steps_dropped": 0, "gaps": [], "gaps_dropped": 0, "reference_bound_ns": 400,
        "memory": {"rss_start_bytes": 1, "rss_end_bytes": 1}, "scheduling": {},
    }  # fmt: skip
    return answer | changes


def write_clock_trial(
    folder: Path, compare: dict[str, Any], two_way_offset_ns: int = 2_000, stalls_ms: tuple[int, ...] = ()
) -> None:
    """Write the files of one trial into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILTERED).write_text('{"type":"ready"}\n' + json.dumps(compare) + "\n")
    windows = [
        [START_TAI_NS + (i + 1) * SECOND_NS, START_TAI_NS + (i + 1) * SECOND_NS + ms * 1_000_000, 0]
        for i, ms in enumerate(stalls_ms)
    ]
    cpu = {"cpu": 0, "samples": 5000, "stalls": len(windows), "stalled_ns": 0, "max_ns": 0, "steal_ns": 0}
    witness = {
        "type": "result",
        "cpus": [cpu],
        "stalled_fraction": 0.0,
        "windows": windows,
        "windows_dropped": 0,
    }
    (folder / WITNESS).write_text(json.dumps(witness) + "\n")
    write_trial(
        folder,
        TrialFacts(
            clock="chrony",
            kind="sync",
            interval_s=1,
            load="idle",
            impairment="none",
            lock=Lock(12.5, "4 offsets in succession under 500 us"),
            two_way=TwoWay(two_way_offset_ns, 180_000, START_TAI_NS, START_TAI_NS + 2 * SECOND_NS),
            servo=Servo(20, 1500.0, 9000.0, 310_000.0),
            timecard=Timecard("card", 0, "memory shared with the host"),
        ),
    )
