# SPDX-License-Identifier: Apache-2.0
"""Profiles: how long a run measures and which miss probability it has to exclude.

What a profile has of a capability besides the replay stands in `resources/CAP/times.toml`, a table a profile;
what one suite alone is asked, in `SUITE.times.toml` beside it. A profile without a table there has no time
for those suites (resources/every_target.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from hw.errors import ConfigError
from hw.fields import Fields
from hw.toml_file import read_toml

PROFILES_FILE = Path(__file__).with_name("profiles.toml")
Times = TypeVar("Times")


@dataclass(frozen=True)
class Profile:
    """One row of the profiles file; times in milliseconds."""

    name: str
    warmup_ms: int
    duration_ms: int
    excluded_miss_probability: float
    known_delay_ms: int
    """Of each of the three replays by which the bench finds a known delay."""
    producer_known_delay_ms: int = 0
    """The same, where the target produces; 0: the check is left to the consumer's suite."""
    replay_attempts: int = 1
    """On a simulated bench: replays at most, while streams have no verdict."""


def load_profile(name: str, path: Path = PROFILES_FILE) -> Profile:
    """Read a profile.

    Raises:
        ConfigError: No such profile, or a value out of range.
    """
    tables = read_toml(path)
    if name not in tables:
        raise ConfigError(f"{path}: no profile {name!r}; there are: {', '.join(tables)}")
    table = Fields(tables[name], str(path), name)
    profile = Profile(
        name=name,
        warmup_ms=table.integer("warmup_ms", 0, 3_600_000),
        duration_ms=table.integer("duration_ms", 1, 7 * 86_400_000),
        excluded_miss_probability=table.number("excluded_miss_probability", 1e-9, 0.5),
        known_delay_ms=table.integer("known_delay_ms", 1000, 3_600_000),
        producer_known_delay_ms=table.integer("producer_known_delay_ms", 0, 3_600_000, default=0),
        replay_attempts=table.integer("replay_attempts", 1, 10),
    )
    table.finish()
    return profile


def has_times(profile: str, file: Path) -> bool:
    """Say whether a profile has a table in a file of times.

    Raises:
        ConfigError: The file is wrong, or has a table of what is no profile: that one would be left out.
    """
    tables, known = read_toml(file), tuple(read_toml(PROFILES_FILE))
    if unknown := [name for name in tables if name not in known]:
        raise ConfigError(f"{file}: {unknown[0]}: no such profile; there are: {', '.join(known)}")
    return profile in tables


def times_of(profile: str, file: Path, read: Callable[[Fields], Times]) -> Times:
    """Read what a profile has of a capability.

    Args:
        profile: Its name.
        file: `times.toml` of the capability.
        read: Reads its table.

    Raises:
        ConfigError: The file has no table of the profile, or a value is out of range.
    """
    tables = read_toml(file)
    if profile not in tables:
        raise ConfigError(f"{file}: {profile}: missing; there are: {', '.join(tables)}")
    return read(Fields(tables[profile], str(file), profile))
