# SPDX-License-Identifier: Apache-2.0
"""What of this machine a duration depends on: which one it is, and its load."""

from __future__ import annotations

import os
import platform

from bench.lab.report import machine_facts


def load() -> float:
    """Return the number of tasks that run or wait for a CPU, averaged over the last minute."""
    return os.getloadavg()[0]


def machine() -> dict[str, object]:
    """Return which machine this is: durations are compared with others of the same."""
    facts = machine_facts()
    return {"name": platform.node(), **{key: facts[key] for key in ("processor", "processors")}}
