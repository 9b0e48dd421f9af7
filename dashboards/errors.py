# SPDX-License-Identifier: Apache-2.0
"""Errors of the dashboards package, in the project's exception tree."""

from hw.errors import BenchError, BenchwrightError


class PointError(BenchwrightError, ValueError):
    """Say that a point cannot be written as line protocol, or names a tag that is not allowed."""

    exit_code = 2


class StoreError(BenchError):
    """Say that the local store cannot be read or written; nothing of what it was given is in it.

    Attributes:
        may_pass: Whether the same may go well later: the disk is full, or somebody holds the lock.
    """

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.may_pass = may_pass


class DeliveryError(BenchError):
    """Say that the server takes nothing, or not now; every point stays in the spool.

    Attributes:
        retry_after_s: How long the server asks to be left alone; 0: it does not.
        is_final: Whether it will answer the same until somebody changes something.
    """

    def __init__(self, message: str, *, retry_after_s: float = 0.0, is_final: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.is_final = is_final
