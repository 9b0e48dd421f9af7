# SPDX-License-Identifier: Apache-2.0
"""CPU time of both ends while the messages of a replay count, where all of them share this machine.

The kernel's own account of the processes of each end: programs, services of a stack, and what the kernel does
in their name. What it does in interrupts while a CPU is idle, or in threads of its own, is charged to nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path

from hw.open_bench import OpenBench
from resources.daq_replay.replay import Replay

TARGET_END, OTHER_ENDS = "target-end", "other-ends"


class EndsCpu:
    """Counts the CPU time of both ends of one replay, from the begin of its counting to the end of that."""

    def __init__(self, bench: OpenBench, target: str, others: Collection[str], replay: Replay) -> None:
        """Take part in a replay that is about to run.

        Both ends are what is compared: nothing that producers run is time that the machine took from a
        message, so the witness sees the account of both.

        Args:
            bench: An open bench.
            target: Node of the consumer.
            others: Nodes of the producers.
            replay: It calls.
        """
        self.used_ns: Mapping[str, int] = {}
        """By end, in ns; empty: it cannot be counted on this bench."""
        self._bench = bench
        self._parts: dict[str, Collection[str]] = {TARGET_END: [target], OTHER_ENDS: others}
        self._accounts: Mapping[str, Path] = {}
        self._counted = ExitStack()
        self._replay = replay
        replay.when_ready = self._begin
        replay.during = self._count

    def _begin(self) -> None:
        self._accounts = self._counted.enter_context(self._bench.virtual.cpu_accounts(self._parts))

    def _count(self, counting_s: float) -> None:
        with self._counted:
            before = self._read()
            self._replay.sleep(counting_s)
            after = self._read()
        self.used_ns = {end: after[end] - before[end] for end in before}

    def _read(self) -> dict[str, int]:
        return {end: int(file.read_text()) for end, file in self._accounts.items()}
