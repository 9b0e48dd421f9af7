# SPDX-License-Identifier: Apache-2.0
"""The part of a target in a replay, where it produces: `role.json` beside the evidence of the replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reports.record.document import read_document, write_document

SCHEMA = "benchwright.replay_role/1"
REPLAY_ROLE = "role.json"


@dataclass(frozen=True)
class ReplayRole:
    """A target that produced in the place of one producer, into another target; without it, it consumed."""

    target: str
    producer: int
    consumer: str
    schema: str = SCHEMA

    def __str__(self) -> str:
        """Return it in words."""
        return f"target {self.target} as producer {self.producer} into {self.consumer}"

    def write(self, folder: Path) -> Path:
        """Write it to the folder of a replay and return the file's path."""
        return write_document(folder / REPLAY_ROLE, self)

    @classmethod
    def read(cls, path: Path) -> ReplayRole:
        """Read it again.

        Raises:
            RecordError: It is damaged; names the key.
        """
        return read_document(cls, path, SCHEMA)
