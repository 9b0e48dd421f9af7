# SPDX-License-Identifier: Apache-2.0
"""A part of a made-up acceptance: a program that writes a run as a qualification does, soon.

`made_up_part.py RUNS PART OUTCOME PAUSE_S [EXIT_CODE]`: values of an outcome (`pass`, `fail`), and a pause
before, between and behind them.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from reports.record.measurement import (  # noqa: E402 - it is started as a program
    RULE,
    SCHEMA,
    Conditions,
    Limit,
    Measurement,
    Outcome,
    Subject,
    Uncertainty,
)
from reports.run.folder import RunFolder  # noqa: E402

VALUES = 3


def main() -> int:
    """Write the run."""
    runs, part, outcome, pause = sys.argv[1:5]
    pause_s = float(pause)
    run = RunFolder.create(Path(runs), "virtual", f"part{part}", simulated=True)

    def interrupted(_number: int, _frame: Any) -> None:
        run.update(interrupted="half")
        _close(run)
        sys.exit(4)

    signal.signal(signal.SIGTERM, interrupted)
    time.sleep(pause_s)
    for number in range(VALUES):
        (run.path / "evidence" / f"answer-{number}.txt").write_text(f"part {part}, value {number}\n" * 200)
        run.append(_record(run.run_id, f"R-{part}-{number}", "pass" if outcome == "pass" else "fail"))
        time.sleep(pause_s)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _close(run)
    time.sleep(pause_s)
    return int(sys.argv[5]) if len(sys.argv) > 5 else {"pass": 0, "fail": 1}[outcome]


def _record(run_id: str, requirement: str, outcome: Outcome) -> Measurement:
    return Measurement(
        SCHEMA, run_id, "test", requirement, "sync_offset", "max", 5, "ns", 5, 3, 0, 0,
        Limit(10, None, "the test"), Uncertainty.from_parts([]), 5, RULE, outcome, "",
        Subject("virtual", "linux-rt"), Conditions("ci"), True, (), "2026-01-01T00:00:00Z",
    )  # fmt: skip


def _close(run: RunFolder) -> None:
    run.close()
    run.finalise()


if __name__ == "__main__":
    sys.exit(main())
