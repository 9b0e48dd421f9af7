# SPDX-License-Identifier: Apache-2.0
"""What else ran on this machine during a replay, kept beside it."""

from __future__ import annotations

import os
from pathlib import Path

from hw.open_bench import OpenBench
from hw.virtual.machine_use import MachineUse
from reports.daq_replay.machine_use import KnownUse, Other


def keep_machine_use(bench: OpenBench, before: MachineUse | None, folder: Path) -> str:
    """Keep what has run since an instant; return what is to be said of it, empty: nothing.

    Args:
        bench: It is open.
        before: At that instant; None: nobody knows, and no file is written.
        folder: Of the replay.
    """
    after = bench.virtual.machine_use()
    if before is None or after is None:
        return ""
    use = after.since(before)
    others = tuple(Other(name, ran_ns) for name, ran_ns in use.largest())
    known = KnownUse(os.cpu_count() or 1, use.at_ns, use.every_ns, use.own_ns, others)
    known.write(folder)
    return f"{known.words}: they slow the bench down" if known.disturbs else ""
