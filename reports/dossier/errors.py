# SPDX-License-Identifier: Apache-2.0
"""Why no dossier is made, with the exit code that says so (docs/exit-codes.md)."""

from __future__ import annotations

from reports.errors import ReportError

BAD_INPUT = 2
CHANGED = 1
INTERRUPTED = 4


class DossierError(ReportError):
    """Say why a dossier cannot be made, or not be read.

    Attributes:
        exit_code: BAD_INPUT, CHANGED (bytes are not those that were finalised), or INTERRUPTED (a run that
            did not come to its end).
    """

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.exit_code = exit_code
