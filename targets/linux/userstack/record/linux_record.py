# SPDX-License-Identifier: Apache-2.0
"""What of a record of libbw-record.so is compared: neither times nor what time alone decides."""

from __future__ import annotations

from typing import Any

Call = dict[str, Any]

NO_SOCKET = 0
"""Number of calls that are of no socket: names that were looked up."""
OF_TIME = ("process", "begin_monotonic_ns", "duration_ns", "timeout_ns", "asked", "flags")


def is_compared(call: Call) -> bool:
    """Take out of a call what is not compared; say whether it is compared at all.

    Raises:
        KeyError: The line is none of a record.
    """
    for key in OF_TIME:
        call.pop(key, None)
    if call["call"] == "resolve":
        call.setdefault("socket", NO_SOCKET)
    return call["call"] != "sleep"
