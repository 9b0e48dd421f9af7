# SPDX-License-Identifier: Apache-2.0
"""A listener of Robot Framework that makes the data-acquisition suite of any profile a matter of seconds.

    python -m resources.qualify --suite robot/daq_replay -- --listener bench.lab.short_profile.ShortProfile

Everything that a run does is done, in the same order; no verdict is wanted of it.
"""

from __future__ import annotations

from resources.daq_replay import keywords as daq_replay
from resources.profiles import Profile

SHORT = Profile("short", warmup_ms=1000, duration_ms=3000, excluded_miss_probability=0.5, known_delay_ms=1000)


def short(_name: str) -> Profile:
    """Return the short profile, whichever is asked for."""
    return SHORT


class ShortProfile:
    """Put the short profile in the place of the one that is asked for."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        """Do it before the first suite starts."""
        daq_replay.load_profile = short
