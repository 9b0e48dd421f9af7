# SPDX-License-Identifier: Apache-2.0
"""How long tests wait: long for what has to come, short for what must not.

A busy machine may leave a test no processor for seconds. So no test judges by how long something sound takes:
what has to come is waited for up to HANG_S, which only ends a hang; what must not come is waited for as long
as STALL_S, within which nothing sound has to arrive.
"""

from __future__ import annotations

import time
from collections.abc import Callable

HANG_S = 120.0
"""For what is sure to come; no run that is sound comes near it."""
STALL_S = 0.3
"""For what must not come."""
_LOOK_S = 0.01


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Wait until something is so.

    Raises:
        AssertionError: It is not within HANG_S.
    """
    deadline_s = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < deadline_s, f"waited too long: {what}"
        time.sleep(_LOOK_S)
