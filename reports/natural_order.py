# SPDX-License-Identifier: Apache-2.0
"""The order in which people expect names that have numbers in them."""

from __future__ import annotations

import re


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts the numbers in a text as numbers, however long they are."""
    parts = re.split(r"([0-9]+)", text)
    return tuple(_number(part) if number % 2 else (-1, part) for number, part in enumerate(parts))


def _number(digits: str) -> tuple[int, str]:
    significant = digits.lstrip("0")
    return len(significant), significant
