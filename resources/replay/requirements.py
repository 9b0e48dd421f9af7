# SPDX-License-Identifier: Apache-2.0
"""Requirements are data: an identifier, a limit, where it comes from, and what may be lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields
from reports.latency.verdict import producer_of
from resources.replay.pattern import Pattern
from resources.requirements_file import read_requirements_file

SCHEMA = "benchwright.requirements/1"
PRODUCERS = ("all", "required")
"""Who sends: all producers of the pattern, or only those whose streams have a requirement."""
ROLES = ("consumer", "producer")
"""Whether the target receives the streams, or sends them in the place of a producer."""


@dataclass(frozen=True)
class Requirement:
    """A limit on one statistic of one stream."""

    id: str
    stream: int
    quantity: str
    statistic: str
    upper_ns: int
    allowed_lost: int
    source: str


@dataclass(frozen=True)
class Requirements:
    """All requirements of a file, by stream."""

    path: Path
    name: str
    pattern: str
    by_stream: dict[int, Requirement]
    is_partial: bool = False
    """Only producers whose streams have a requirement here send: for a target that cannot take all."""
    role: str = "consumer"
    """One of `ROLES`."""

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
            role: One of `ROLES`.
            producer: In whose place it produces: all streams have to be of this producer; 0: in none's.

        Raises:
            ConfigError: Names the file, and the requirement where one is of another producer.
        """
        if self.role != role:
            raise ConfigError(f"{self.path}: requirements.role: must be {role!r}, found {self.role!r}")
        for requirement in self.by_stream.values():
            if producer and producer_of(requirement.stream) != producer:
                raise ConfigError(
                    f"{self.path}: {requirement.id}.stream: must be a stream of producer {producer},"
                    f" found {requirement.stream}"
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
            requirement = self.by_stream[absent[0]]
            raise ConfigError(
                f"{self.path}: {requirement.id}.stream: must be a stream of pattern {pattern.name!r},"
                f" found {requirement.stream}"
            )


def load_requirements(path: Path) -> Requirements:
    """Read and check a requirements file.

    Raises:
        ConfigError: Names file, requirement, field and allowed range.
    """
    head, items = read_requirements_file(path, SCHEMA, ("name", "pattern"), ("producers", "role"))
    for key, choices in (("producers", PRODUCERS), ("role", ROLES)):
        if head[key] not in ("", *choices):
            raise ConfigError(
                f"{path}: requirements.{key}: must be one of {', '.join(choices)}, found {head[key]!r}"
            )
    by_stream: dict[int, Requirement] = {}
    for number, item in enumerate(items, start=1):
        requirement = _requirement(item)
        if requirement.stream in by_stream:
            raise ConfigError(f"{path}: requirement[{number}].stream: {requirement.stream} stands twice")
        by_stream[requirement.stream] = requirement
    return Requirements(
        path=path,
        name=head["name"],
        pattern=head["pattern"],
        by_stream=by_stream,
        is_partial=head["producers"] == "required",
        role=head["role"] or ROLES[0],
    )


def _requirement(table: Fields) -> Requirement:
    requirement = Requirement(
        id=table.text("id"),
        stream=table.integer("stream", 10, 6559),
        quantity=table.text("quantity", choices=("one_way_latency",)),
        statistic=table.text("statistic", choices=("max",)),
        upper_ns=table.integer("upper_us", 1, 3_600_000_000) * 1000,
        allowed_lost=table.integer("allowed_lost", 0, 1_000_000_000),
        source=table.text("source"),
    )
    table.finish()
    return requirement
