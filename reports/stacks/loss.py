# SPDX-License-Identifier: Apache-2.0
"""What a line has lost during a turn: `loss.json` beside it is this file's dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.errors import RecordError
from reports.record.document import read_document, write_document

LOSS = "loss.json"
SCHEMA = "benchwright.line_loss/1"


@dataclass(frozen=True, slots=True)
class PortLoss:
    """Frames that came to the line by one port of it, and how many of them it lost."""

    port: str
    seen: int
    dropped: int


@dataclass(frozen=True, slots=True)
class KnownLoss:
    """What a line was asked to lose, and what it lost.

    Attributes:
        asked_ppm: Of a million frames, by chance.
        seed: Of that chance.
        ports: Where frames came to the line, in both directions.
    """

    asked_ppm: int
    seed: int
    ports: tuple[PortLoss, ...]
    schema: str = SCHEMA

    @property
    def seen(self) -> int:
        """Return how many frames came."""
        return sum(each.seen for each in self.ports)

    @property
    def dropped(self) -> int:
        """Return how many of them were lost."""
        return sum(each.dropped for each in self.ports)

    def write(self, folder: Path) -> None:
        """Write it beside a turn."""
        write_document(folder / LOSS, self)

    @classmethod
    def read(cls, folder: Path) -> KnownLoss:
        """Read it; raises RecordError: it is damaged."""
        found = read_document(cls, folder / LOSS, SCHEMA)
        for each in found.ports:
            if not 0 <= each.dropped <= each.seen:
                raise RecordError(f"{LOSS}: port {each.port}: {each.dropped} of {each.seen} frames were lost")
        return found
