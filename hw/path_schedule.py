# SPDX-License-Identifier: Apache-2.0
"""Settings of a path that change at stated times."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from hw.errors import ConfigError
from hw.path_settings import Flow, PathSettings, RealisedPath
from hw.protocols import Router
from hw.router import PathDirection


@dataclass(frozen=True)
class Change:
    """A change that was made."""

    at_s: float
    """When it was to be made, from the begin."""
    begin_utc_ns: int
    """Not before, and by `end_utc_ns`, the new settings held; by this machine's clock."""
    end_utc_ns: int
    realised: RealisedPath


def follow(
    router: Router,
    paths: Collection[PathDirection],
    schedule: Sequence[tuple[float, PathSettings]],
    flows: Sequence[Flow] = (),
    sleep: Callable[[float], None] = time.sleep,
) -> list[Change]:
    """Change the settings of paths at stated times; a change that is due before the last one is done is late.

    Args:
        router: Of the bench.
        paths: Links, all in one direction.
        schedule: Times in s from now on, ascending, and the settings from then on.
        flows: Those that alone are treated; none: all.
        sleep: Called with a time in s; may raise, which ends it.

    Raises:
        ConfigError: The times do not ascend from 0 on.
        CapabilityError, BenchError: As `Router.configure`.
    """
    times_s = [at_s for at_s, _ in schedule]
    for before_s, at_s in zip([-1.0, *times_s], times_s, strict=False):
        if not max(0.0, before_s) <= at_s or at_s == before_s:
            raise ConfigError(f"at_s: must ascend from 0 on, found {at_s:g} after {max(0.0, before_s):g}")
    begin_s, changes = time.monotonic(), list[Change]()
    for at_s, settings in schedule:
        wait_s = begin_s + at_s - time.monotonic()
        if wait_s > 0:
            sleep(wait_s)
        begin_utc_ns = time.time_ns()
        realised = router.configure(paths, settings, flows)
        changes.append(Change(at_s, begin_utc_ns, time.time_ns(), realised))
    return changes
