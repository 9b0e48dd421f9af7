# SPDX-License-Identifier: Apache-2.0
"""Names that keywords take, as the project's data has them: Robot Framework checks them, Libdoc lists them.

Names of targets and of nodes are a bench file's own, so they are text.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from hw.provisioning import TARGETS
from hw.toml_file import read_toml
from resources import network_stack
from resources.clock_sync.settings import STACKS, stack_names
from resources.profiles import PROFILES_FILE

if TYPE_CHECKING:
    ClockStack = NetworkStack = Profile = ReplayClock = str
else:

    def _names(kind: str, names: Iterable[str], doc: str) -> type[StrEnum]:
        found = StrEnum(kind, {name: name for name in sorted({*names})})
        found.__doc__ = doc
        return found

    _clocks = [name for folder in sorted(TARGETS.glob(f"*/{STACKS}")) for name in stack_names(folder)]
    _stacks = [name for folder in sorted(TARGETS.iterdir()) for name in network_stack.stack_names(folder)]
    ClockStack = _names("ClockStack", _clocks, "A clock stack that a kind of target has.")
    NetworkStack = _names("NetworkStack", _stacks, "A network stack that a kind of target has.")
    Profile = _names(
        "Profile", read_toml(PROFILES_FILE), "How long, and how sure: `resources/profiles.toml`."
    )
    ReplayClock = _names(
        "ReplayClock",
        [*_clocks, "two-way"],
        "How a target's stamps become times: by a clock stack, or corrected by two-way time transfer.",
    )
