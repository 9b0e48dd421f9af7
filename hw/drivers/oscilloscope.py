# SPDX-License-Identifier: Apache-2.0
"""Opening the oscilloscopes of a bench."""

from __future__ import annotations

from hw.errors import BenchError
from hw.oscilloscopes import OscilloscopeSpec
from hw.protocols import Oscilloscope
from scope.drivers.oscilloscope import open_oscilloscope
from scope.errors import InstrumentError


def connect(spec: OscilloscopeSpec) -> Oscilloscope:
    """Connect to an oscilloscope of a bench file and identify it.

    Raises:
        BenchError: Nobody is there, or another instrument than the bench file says.
    """
    try:
        return open_oscilloscope(spec.name, spec.resource, spec.dialect, spec.library, spec.timeout_s)
    except InstrumentError as error:
        raise BenchError(f"oscilloscope {error}") from error
