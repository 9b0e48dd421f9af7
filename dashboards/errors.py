# SPDX-License-Identifier: Apache-2.0
"""Errors of the dashboards package, in the project's exception tree."""

from hw.errors import BenchError, BenchwrightError


class PointError(BenchwrightError, ValueError):
    """Say that a point cannot be written as line protocol, or names a tag that is not allowed."""

    exit_code = 2


class StoreError(BenchError):
    """Say that the local store cannot be read or written; nothing of what it was given is in it."""


class DeliveryError(BenchError):
    """Say that the server takes nothing, or not now; every point stays in the spool."""
