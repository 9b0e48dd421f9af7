# SPDX-License-Identifier: Apache-2.0
"""What the machine took from a message: docs/latency.md, `What the machine took`, worked out step by step."""

from __future__ import annotations

import itertools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Pause = tuple[int, int]

IDLE_SHARE = 0.1


class Machine:
    """The pauses of a replay and the work that piles up in them, ns of the witness's clock."""

    def __init__(self, pauses: Sequence[Pause], utilisation: float) -> None:
        """Walk through time once.

        Args:
            pauses: Of machine and emulator, in any order; they may overlap.
            utilisation: Of the busiest CPU; what is over a half counts as a half.
        """
        self.rho = min(utilisation, 0.5)
        self.pauses = _union(pauses)
        self._marks: list[int] = []
        self._piled_up: list[float] = []
        piled_up, now = 0.0, 0
        for start, end in self.pauses:
            piled_up = max(0.0, piled_up - (1 - self.rho) * (start - now))
            self._note(start, piled_up)
            piled_up += self.rho * (end - start)
            self._note(end, piled_up)
            now = end

    def _note(self, mark: int, piled_up: float) -> None:
        self._marks.append(mark)
        self._piled_up.append(piled_up)

    def took(self, begin: int, end: int) -> float:
        """Return T = min(e - b, o + rho o + V(b))."""
        paused = sum(max(0, min(end, stop) - max(begin, start)) for start, stop in self._near(begin, end))
        return min(end - begin, paused * (1 + self.rho) + self._waiting(begin)) if end > begin else 0.0

    def _near(self, begin: int, end: int) -> list[Pause]:
        low = bisect_right(self.pauses, begin, key=lambda pause: pause[1])
        high = bisect_left(self.pauses, end, key=lambda pause: pause[0])
        return self.pauses[low:high]

    def _waiting(self, time: int) -> float:
        place = bisect_right(self._marks, time) - 1
        if place < 0:
            return 0.0
        since = time - self._marks[place]
        is_paused = place % 2 == 0
        grown = self.rho * since if is_paused else -(1 - self.rho) * since
        return max(0.0, self._piled_up[place] + grown)


def _union(pauses: Sequence[Pause]) -> list[Pause]:
    found: list[Pause] = []
    for start, end in sorted(pauses):
        if end <= start:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def machine_of(
    witness: Mapping[str, Any] | None, emulation: Path, slack: float = 0.0, *, claimed: bool = False
) -> Machine:
    """Return the machine of a replay.

    Args:
        witness: Result of the witness; None: there was none, and nothing is put down to the machine.
        emulation: `emulation.ndjson`; it need not be there.
        slack: Added to the utilisation.
        claimed: Leave out what nobody claims.
    """
    if witness is None:
        return Machine((), 0.0)
    period = int(witness.get("period_ns") or 0)
    pauses = less_target(witness, period, claimed=claimed)
    if emulation.exists():
        for line in emulation.read_text("utf-8").splitlines():
            data = json.loads(line)
            if "overdue_tai_ns" in data:
                pauses += emulator_pauses(data)
    known = [cpu["utilisation"] for cpu in witness["cpus"] if cpu.get("utilisation") is not None]
    return Machine(pauses, max(known) + slack if known else 0.0)


def less_target(witness: Mapping[str, Any], earlier: int, *, claimed: bool = False) -> list[Pause]:
    """Return the windows of a witness without what the target ran in each.

    Of a target that has CPUs of its own, and in the version before, nothing is said of it; null where the
    account failed. Likewise of what nobody claims, which CPUs tell that are kept awake.

    Args:
        witness: Its result.
        earlier: So long before a window a pause may have begun, ns; at most the time between two wake-ups.
        claimed: Without what nobody claims, too, unless threads of the target's emulator were watched.
    """
    period = int(witness.get("period_ns") or 0)
    nothing = [0] * len(witness["windows"])
    ran = witness.get("target_ran_ns", nothing)
    is_emulated = bool(witness.get("threads"))
    idle = witness.get("unclaimed_ns", nothing) if claimed and not is_emulated else nothing
    if ran is None or idle is None:
        return []
    seen = zip(witness["windows"], ran, idle, strict=True)
    left = [
        (max(start - earlier, start - period + own + rest), end) for (start, end, _cpu), own, rest in seen
    ]
    return [(begin, end) for begin, end in left if begin < end]


def emulator_pauses(line: Mapping[str, Any]) -> list[Pause]:
    """Return when an emulator did not run a target whose witness was overdue."""
    start, end = line["overdue_tai_ns"]
    found: list[Pause] = []
    for (since, _), (until, ran) in itertools.pairwise(line["vcpu_ran_ns"]):
        low, high = max(start + since, start - line["period_ns"]), min(start + until, end)
        if high > low and ran < IDLE_SHARE * (until - since):
            found.append((low, high))
    return [(low, high) for low, high in _union(found) if high > start]
