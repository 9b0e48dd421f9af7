# SPDX-License-Identifier: Apache-2.0
"""How many turns a profile gives each network stack, how long each lasts, and under which conditions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hw.errors import CapabilityError, ConfigError
from hw.fields import Fields
from reports.errors import ReportError
from reports.stacks.compare import ROUNDS_MIN
from reports.stacks.turns import check_stacks
from resources.stacks.conditions import CONDITIONS

TIMES = Path(__file__).with_name("times.toml")
SEED_MAX = 2**31 - 1


@dataclass(frozen=True)
class StackTimes:
    """What a profile has time for.

    Attributes:
        conditions: Under each, every stack has a turn a round.
        rounds: An even number: each second one is the reverse of the one before.
        warmup_ms: Of a turn's replay.
        duration_ms: Likewise; messages count that are due in it.
        grace_ms: Likewise: what is not there by then is lost.
    """

    conditions: tuple[str, ...]
    rounds: int
    warmup_ms: int
    duration_ms: int
    grace_ms: int


def stack_times(table: Fields) -> StackTimes:
    """Read the table of a profile; raises ConfigError: names file, field and allowed range."""
    conditions = table.texts("conditions", CONDITIONS)
    rounds = table.integer("rounds", ROUNDS_MIN, 1000)
    times = StackTimes(
        conditions,
        rounds,
        warmup_ms=table.integer("warmup_ms", 0, 60_000),
        duration_ms=table.integer("duration_ms", 500, 600_000),
        grace_ms=table.integer("grace_ms", 100, 60_000),
    )
    if not conditions or len(set(conditions)) < len(conditions):
        raise table.fault("conditions", f"{list(conditions)}; needed: one at least, each once")
    if rounds % 2:
        raise table.fault("rounds", f"{rounds}; needed: an even number, each second round is a reverse")
    table.finish()
    return times


def compared_names(text: str) -> tuple[str, ...]:
    """Return the names of stacks in a text, with blanks or commas between.

    Raises:
        ConfigError: One stands twice.
        CapabilityError: There are fewer than two.
    """
    names = tuple(text.replace(",", " ").split())
    if len(names) < 2:
        raise CapabilityError(f"COMPARED_STACKS: {text!r}: a comparison needs at least 2 stacks")
    try:
        check_stacks(names)
    except ReportError as error:
        raise ConfigError(f"COMPARED_STACKS: {error}") from error
    return names


def checked_seed(text: str) -> int:
    """Return the seed of the order of turns; raises ConfigError: says what is allowed."""
    if not text.isascii() or not text.isdigit() or int(text) > SEED_MAX:
        raise ConfigError(f"TURN_SEED: {text!r}; allowed: a whole number in 0..{SEED_MAX}")
    return int(text)
