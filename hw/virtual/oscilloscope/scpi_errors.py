# SPDX-License-Identifier: Apache-2.0
"""Errors: numbers and texts of the standard (SCPI-1999, volume 2, chapter 21), used by both dialects."""

from __future__ import annotations

TEXTS = {
    101: "Invalid character",
    102: "Syntax error",
    104: "Data type error",
    108: "Parameter not allowed",
    109: "Missing parameter",
    113: "Undefined header",
    114: "Header suffix out of range",
    120: "Numeric data error",
    131: "Invalid suffix",
    141: "Invalid character data",
    151: "Invalid string data",
    200: "Execution error",
    221: "Settings conflict",
    222: "Data out of range",
    223: "Too much data",
    224: "Illegal parameter value",
    230: "Data corrupt or stale",
    350: "Queue overflow",
    410: "Query INTERRUPTED",
    420: "Query UNTERMINATED",
    430: "Query DEADLOCKED",
    528: "Parameter out of range",
    2225: "Measurement error, No waveform to measure",
    2244: "Source waveform is not active",
}


class ScpiError(Exception):
    """A command that cannot be done.

    Attributes:
        number: Of the standard, without its sign.
        detail: What it was about; dialects differ in whether they say it.
    """

    def __init__(self, number: int, detail: str = "") -> None:
        self.number = number
        self.detail = detail
        super().__init__(f"{number} {TEXTS[number]}: {detail}")

    @property
    def is_command_error(self) -> bool:
        """Tell whether the message could not be understood, so that what follows in it is dropped."""
        return self.number < 200


def event_bit(number: int) -> int:
    """Return the bit of the standard event status register that an error of this number sets.

    Those beyond the standard's classes are Tektronix's, and all of them arise in execution.
    """
    return {1: 0x20, 2: 0x10, 3: 0x08, 4: 0x04}.get(number // 100, 0x10)
