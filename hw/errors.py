# SPDX-License-Identifier: Apache-2.0
"""The exception tree of Benchwright: who is at fault decides the outcome."""

from __future__ import annotations


class BenchwrightError(Exception):
    """Base of every error that Benchwright raises on purpose."""

    exit_code = 4


class ConfigError(BenchwrightError):
    """A file or an argument is wrong; the text names file, field and allowed range."""

    exit_code = 2


class CapabilityError(BenchwrightError):
    """The machine or the bench lacks something that the work needs; the text says how to fix it."""

    exit_code = 3


class MeasurementError(BenchwrightError):
    """A measurement was made but is not valid: never a pass."""

    exit_code = 4


class BenchError(BenchwrightError):
    """The bench is at fault (a node died, somebody else holds it): no verdict on the target."""

    exit_code = 5


class OverdueError(BenchError):
    """A node has not done within its deadline what it was asked to do."""
