# SPDX-License-Identifier: Apache-2.0
"""Requirements on streams: those of a file by stream, for one pattern and one role of the target."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from reports.daq_replay.capability import STREAM_QUANTITY
from reports.quantities import producer_of
from reports.requirements import Requirement
from resources.daq_replay.pattern import Pattern
from resources.requirements_file import load_requirements_file


@dataclass(frozen=True)
class StreamRequirements:
    """All requirements of a file, by stream."""

    path: Path
    name: str
    pattern: str
    by_stream: dict[int, Requirement]
    is_partial: bool = False
    """Only producers whose streams have a requirement here send: for a target that cannot take all."""
    role: str = "consumer"
    """One of `reports.requirements.ROLES`."""

    @property
    def budgets_ns(self) -> dict[int, int]:
        """Return the limit of each stream, in ns."""
        return {stream: requirement.upper_ns for stream, requirement in self.by_stream.items()}

    @property
    def producers(self) -> tuple[int, ...]:
        """Return the producers that send; empty: all of the pattern."""
        return tuple(sorted({producer_of(stream) for stream in self.by_stream})) if self.is_partial else ()

    def check_role(self, role: str, producer: int = 0) -> None:
        """Refuse a role of the target that these requirements are not for.

        Args:
            role: `consumer` or `producer`.
            producer: In whose place it produces: all streams have to be of this producer; 0: in none's.

        Raises:
            ConfigError: Names the file, and the requirement where one is of another producer.
        """
        if self.role != role:
            raise ConfigError(f"{self.path}: requirements.role: must be {role!r}, found {self.role!r}")
        for stream, requirement in self.by_stream.items():
            if producer and producer_of(stream) != producer:
                raise ConfigError(
                    f"{self.path}: {requirement.id}.stream: must be a stream of producer {producer},"
                    f" found {stream}"
                )

    def check_pattern(self, pattern: Pattern) -> None:
        """Refuse a pattern that these requirements are not for.

        Raises:
            ConfigError: Its name is another, or it lacks a stream that has a requirement.
        """
        if self.pattern != pattern.name:
            raise ConfigError(
                f"{self.path}: requirements.pattern: must be the pattern's name {pattern.name!r},"
                f" found {self.pattern!r}"
            )
        absent = sorted(set(self.by_stream) - {stream.id for stream in pattern.streams})
        if absent:
            raise ConfigError(
                f"{self.path}: {self.by_stream[absent[0]].id}.stream: must be a stream of pattern"
                f" {pattern.name!r}, found {absent[0]}"
            )


def load_requirements(path: Path) -> StreamRequirements:
    """Read and check a requirements file.

    Raises:
        ConfigError: Names file, requirement, field and allowed range.
    """
    found = load_requirements_file(path, STREAM_QUANTITY)
    by_stream = {int(each.of): each for each in found.requirements}
    return StreamRequirements(path, found.name, found.pattern, by_stream, found.is_partial, found.role)
