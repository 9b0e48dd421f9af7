# SPDX-License-Identifier: Apache-2.0
"""What the machine took while a target's kernel was recorded: docs/rt-baseline.md, step by step."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports.rejudge.answers import read_result
from reports.rejudge.machine import Machine, less_target

Json = Mapping[str, Any]
CLOCKS = "clock-before.ndjson", "clock-after.ndjson"
BY_WINDOW = "windows", "target_ran_ns", "unclaimed_ns"


class Meanwhile:
    """What a folder says of the machine.

    Attributes:
        is_watched: Late moments can be held against it.
        offsets: Least and largest, of the target's clock against the witness's, ns.
    """

    def __init__(self, folder: Path, machine: str) -> None:
        """Read it; `machine`: `own`, `shared` or `guest`."""
        self._machine = machine
        self._witness = read_result(folder / "witness.ndjson") if machine != "own" else None
        emulation = folder / "emulation.ndjson"
        self._pauses: dict[int, list[tuple[int, int]]] | None = None
        if emulation.exists():
            lines = map(json.loads, emulation.read_text("utf-8").splitlines())
            self._pauses = {}
            for line in lines:
                if line["cpu"] in self._pauses:
                    raise ValueError(f"{emulation.name} has CPU {line['cpu']} twice")
                start, stop = line["due_tai_ns"]
                within = [(low, high) for low, high in line["pauses_tai_ns"] if low < stop and high > start]
                self._pauses[line["cpu"]] = within
        self.offsets: tuple[int, int] | None = (0, 0) if machine == "shared" else None
        clocks = [read_result(folder / name) for name in CLOCKS if (folder / name).exists()]
        if machine == "guest" and len(clocks) == len(CLOCKS):
            self.offsets = _offsets([each for each in clocks if each is not None])
        self.is_watched = (
            self._witness is not None
            and self.offsets is not None
            and not self._witness["windows_dropped"]
            and (machine == "shared" or self._pauses is not None)
        )

    def is_unknown(self, cpu: int) -> bool:
        """Say whether an emulator was watched, but not this CPU of it."""
        return self._pauses is not None and cpu not in self._pauses

    def of_cpu(self, cpu: int) -> Machine:
        """Return the machine as a CPU of the target has it."""
        assert self._witness is not None
        witness: Json = self._witness
        if self._machine == "shared":
            those = [window[2] == cpu for window in witness["windows"]]
            chosen = {
                key: [value for value, is_there in zip(witness[key], those, strict=True) if is_there]
                for key in BY_WINDOW
                if isinstance(witness.get(key), list)
            }
            witness = {**witness, **chosen}
        pauses = less_target(witness, int(witness.get("period_ns") or 0))
        if self._machine == "guest" and self._pauses is not None:
            pauses += self._pauses[cpu]
        known = [each["utilisation"] for each in witness["cpus"] if each.get("utilisation") is not None]
        # Thousandths, rounded up, as the first judge has them.
        return Machine(pauses, math.ceil(1000 * max(known)) / 1000 if known else 0.0)

    def emulator_pauses(self, cpu: int) -> list[tuple[int, int]] | None:
        """Return when a guest's CPU was not run, by the guest's clock; None: nobody knows."""
        if not self.is_watched or self._pauses is None or self.offsets is None:
            return None
        # Half of the sum, rounded down, as the first judge has it.
        shift = (self.offsets[0] + self.offsets[1]) // 2
        return [(low + shift, high + shift) for low, high in self._pauses[cpu]]

    def by_witness(self, begin: int, end: int) -> tuple[int, int]:
        """Return a time of the target by the witness's clock, as wide as it may have been."""
        low, high = self.offsets or (0, 0)
        return begin - high, end - low


def _offsets(clocks: list[Json]) -> tuple[int, int] | None:
    sound = all(each["complete"] and each["valid"] and not each.get("clock_steps") for each in clocks)
    if not sound or len(clocks) < len(CLOCKS):
        return None
    return (
        min(each["offset_ns"] - each["bound_ns"] for each in clocks),
        max(each["offset_ns"] + each["bound_ns"] for each in clocks),
    )
