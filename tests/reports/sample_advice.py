# SPDX-License-Identifier: Apache-2.0
"""Advice with everything in it, for tests of the page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from reports.history.advice import (
    ADVICE_SCHEMA,
    Advice,
    AdvisedCommit,
    AdvisedLevel,
    BenchChange,
    BeyondBaseline,
    Kind,
    SeriesChange,
)
from reports.run.folder import RunFolder

MS = 1_000_000


def change(number: int = 0, kind: Kind = "regression", **changes: Any) -> SeriesChange:
    """Return a change of 5 ms to 6 ms over 40 and 4 runs."""
    found = SeriesChange(
        kind=kind,
        series=f"stream {number} one way latency max",
        unit="ns",
        last_before="r039",
        first_after="r040",
        range_before="r038",
        range_after="r041",
        seen="r043",
        before=AdvisedLevel(40, 5 * MS, 4.9 * MS, 5.1 * MS),
        after=AdvisedLevel(4, 6 * MS, 5.9 * MS, 6.1 * MS),
        after_least=3,
        after_most=5,
        z=3.9,
        commits=(AdvisedCommit("a" * 40, "net: a <b>larger</b> buffer"), AdvisedCommit("b" * 40, "")),
        commits_note="the run after the change had changed files that are in no commit",
        values=(*[5.0 * MS + n for n in range(40)], *[6.0 * MS + n for n in range(4)]),
    )
    return dataclasses.replace(found, **changes)


def beyond(number: int = 0) -> BeyondBaseline:
    """Return a value beyond its baseline."""
    level = AdvisedLevel(20, 5 * MS, 4.9 * MS, 5.1 * MS)
    values = (*[5.0 * MS + n for n in range(20)], 7.0 * MS)
    return BeyondBaseline(
        "worse", f"stream {number} p99", "ns", 7.0 * MS, level, 5.0 * MS, 5.0 * MS + 19, values
    )


def advice_of(run: Path, **changes: Any) -> Advice:
    """Return the advice of a run folder: enough history, no change."""
    folder = RunFolder.open(run)
    found = Advice(
        schema=ADVICE_SCHEMA,
        run_id=folder.run_id,
        bench=folder.manifest.bench,
        profile=folder.manifest.profile,
        branch="main",
        compared_with="main",
        runs_needed=15,
        series=3,
        series_ready=3,
        history_least=40,
        history_most=43,
        bench_change=None,
        changes=(),
        beyond=(),
        beyond_by_chance=0.15,
        change_needs=19,
    )
    return dataclasses.replace(found, **changes)


BENCH_CHANGE = BenchChange("r030", "r029", 1, "host.kernel: 6.1 -> 6.12")
