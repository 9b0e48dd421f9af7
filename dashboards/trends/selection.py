# SPDX-License-Identifier: Apache-2.0
"""Which runs and series of the store go into the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dashboards.points import unix_ns
from hw.errors import ConfigError
from reports.errors import RecordError

OF_RUN = ("bench", "profile", "branch")
"""Filters that a run has; `target` is of a series."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What to show; None: everything.

    Attributes:
        since_ns: Runs that started then or later, in ns since 1970-01-01 UTC.
    """

    bench: str | None = None
    target: str | None = None
    profile: str | None = None
    branch: str | None = None
    since_ns: int | None = None

    def has_run(self, run: Mapping[str, object]) -> bool:
        """Say whether a run (its bench, profile, branch and time_ns) is wanted, whatever its targets."""
        since_ns, time_ns = self.since_ns, run["time_ns"]
        if since_ns is not None and isinstance(time_ns, int) and time_ns < since_ns:
            return False
        return all(getattr(self, name) in (None, run[name]) for name in OF_RUN)

    def check(self, name: str, known: Iterable[str]) -> None:
        """Refuse a filter that nothing in the store has; raises ConfigError that lists what there is."""
        wanted: str | None = getattr(self, name)
        values = sorted(set(known))
        if wanted is not None and wanted not in values:
            there = f"it has {', '.join(values)}" if values else "it has none"
            raise ConfigError(f"--{name}: no run of the store has {name} {wanted!r}; {there}")


def since_text(text: str) -> int:
    """Return the time that `--since` names: a day, or a time with Z; raises ConfigError."""
    try:
        return unix_ns(f"{text}T00:00:00Z" if len(text) == len("2026-01-31") else text)
    except RecordError as error:
        raise ConfigError(f"--since: {text!r} is neither 2026-01-31 nor 2026-01-31T12:00:00Z") from error
