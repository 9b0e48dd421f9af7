# SPDX-License-Identifier: Apache-2.0
"""Parts of U that had other names in version 0.2.1: records of older runs are read with those of today."""

from __future__ import annotations

from collections.abc import Mapping

PRESENT: Mapping[str, str] = {
    "look": "poll_interval",
    "partners": "device_dependence",
    "stretches": "block_variation",
}
"""Old name → the one that it has now."""
