# SPDX-License-Identifier: Apache-2.0
"""Errors of the scope package: one tree, so that a caller can catch all of them at once."""

from __future__ import annotations


class ScopeError(Exception):
    """Say that the scope package cannot do what it was asked to do."""


class InstrumentError(ScopeError):
    """Say which instrument failed, at which command, and why.

    Attributes:
        instrument: Name or address of the instrument, as the bench calls it.
        command: The command that was sent last; empty where none was sent.
        reason: What went wrong.
    """

    def __init__(self, instrument: str, command: str, reason: str) -> None:
        super().__init__(f"{instrument}: {command}: {reason}" if command else f"{instrument}: {reason}")
        self.instrument = instrument
        self.command = command
        self.reason = reason


class WaveformError(ScopeError, ValueError):
    """Say that samples, their scaling or the settings of their analysis contradict each other."""


class CalibrationError(ScopeError, ValueError):
    """Say that a calibration file is wrong; the text names file, field and allowed range."""
