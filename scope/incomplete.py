# SPDX-License-Identifier: Apache-2.0
"""An acquisition that went wrong keeps what it has."""

from __future__ import annotations

from scope.errors import InstrumentError
from scope.waveform import Acquisition


class IncompleteAcquisitionError(InstrumentError):
    """Say why an acquisition is not what was asked for.

    Attributes:
        acquired: The frames that were read whole, fit to be kept as evidence; perhaps none.
    """

    def __init__(self, error: InstrumentError, acquired: Acquisition) -> None:
        kept = len({frame.index for frame in acquired.frames})
        reason = f"{error.reason}; kept: {kept} of {acquired.wanted} segments"
        super().__init__(error.instrument, error.command, reason)
        self.acquired = acquired
