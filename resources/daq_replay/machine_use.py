# SPDX-License-Identifier: Apache-2.0
"""What else ran on this machine during a replay, kept beside it, and what is said of what it took."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hw.open_bench import OpenBench
from hw.virtual.machine_use import MachineUse
from reports.daq_replay.machine_use import KnownUse, Other
from reports.tools.answers import witness_result
from reports.tools.cpu_quota import cpu_quota

MUCH_TAKEN = 0.01
"""Share of the time above which it is said that the machine is not quiet."""


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


def said_of_machine(witness: Mapping[str, Any] | None, *, simulated: bool) -> Iterator[str]:
    """Say so where the machine took much time from the bench, what that means, and whether a quota took it.

    Args:
        witness: What the bench's witness answered; None: there is none, or it failed.
        simulated: The bench is.
    """
    seen = witness_result(witness) if witness is not None else None
    if seen is None or seen.away_fraction <= MUCH_TAKEN:
        return
    so = "what it took is taken off each late message; streams without a verdict are replayed once more"
    if not simulated:
        so = "late messages that this explains have no verdict; find what else runs there"
    yield f"the machine was away from the bench for {100 * seen.away_fraction:.2g} % of the time: {so}"
    if quota := cpu_quota([window[:2] for window in seen.windows]).words:
        yield quota
