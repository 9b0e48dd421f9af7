# SPDX-License-Identifier: Apache-2.0
"""What ran on the bench's machine during a replay that was not the bench.

Programs that the bench outranks take no time from it that a witness could see, yet they slow it down: they
share caches and memory with it. Beside two that computed, an emulator needed 20 to 50 % more of its CPU for
the same messages, and messages of a sound target came too late. Slower than by half it is not taken to be: of
a replay beside such programs half of a message's time is no miss (docs/latency.md, `What else ran there`).

`machine_use.json` is this file's dataclass.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.document import read_document, write_document

MACHINE_USE = "machine_use.json"
SCHEMA = "benchwright.machine_use/1"
OTHERS_MAX_PPM = 50_000
"""Of the CPUs' time: with more than this by others the bench is slowed down."""


@dataclass(frozen=True, slots=True)
class Other:
    """A program of others: its name, and what it ran in ns of CPU time."""

    name: str
    ran_ns: int


@dataclass(frozen=True, slots=True)
class KnownUse:
    """What ran on the bench's machine from the start of a replay to its end, in ns of CPU time.

    Attributes:
        cpus: How many it has.
        elapsed_ns: How long.
        every_ns: All that ran.
        own_ns: The bench, with what emulates its guests and with targets that share the machine.
        others: Of the rest those that ran most and were still there at the end.
    """

    cpus: int
    elapsed_ns: int
    every_ns: int
    own_ns: int
    others: tuple[Other, ...] = ()
    schema: str = SCHEMA

    @property
    def others_ppm(self) -> int:
        """Return the share of the CPUs' time that others had."""
        return max(0, self.every_ns - self.own_ns) * 1_000_000 // (self.cpus * self.elapsed_ns)

    @property
    def disturbs(self) -> bool:
        """Say whether so much else ran that it slowed the bench down."""
        return self.others_ppm > OTHERS_MAX_PPM

    @property
    def words(self) -> str:
        """Return who had how much."""
        names = [f"{each.name} {each.ran_ns / 1e9:.1f} s" for each in self.others]
        share = f"other programs had {self.others_ppm / 10_000:.1f} % of this machine's CPUs"
        return f"{share} ({', '.join(names)})" if names else share

    def write(self, folder: Path) -> None:
        """Write it beside a replay."""
        write_document(folder / MACHINE_USE, self)

    @classmethod
    def read(cls, path: Path) -> KnownUse:
        """Read it; raises RecordError: it is damaged."""
        found = read_document(cls, path, SCHEMA)
        if found.cpus < 1 or found.elapsed_ns < 1 or min(found.every_ns, found.own_ns) < 0:
            raise RecordError(f"{path.name}: cpus and elapsed_ns are 1 and more, CPU times 0 and more")
        return found
