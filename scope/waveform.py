# SPDX-License-Identifier: Apache-2.0
"""What passes between the drivers of oscilloscopes and the analysis: samples as they were digitised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer[Any]]
"""Samples as digitised: int8, uint8, int16 or uint16."""


@dataclass(frozen=True)
class Scaling:
    """How codes become volts and samples become seconds.

    volts = (code - code_reference) * volts_per_code + offset_v; sample i was taken at
    first_sample_s + i * sample_interval_s, where 0 is the trigger.

    Attributes:
        volts_per_code: Volts that one code is wide.
        code_reference: The code that lies at offset_v.
        offset_v: Volts at code_reference.
        sample_interval_s: Time from one sample to the next.
        first_sample_s: Time of sample 0 after the trigger; negative before it.
        code_low: This code and those below it mean clipped; None: not known.
        code_high: This code and those above it mean clipped; None: not known.
        code_hole: Code of a sample that was not acquired; None: no such code.
    """

    volts_per_code: float
    code_reference: float
    offset_v: float
    sample_interval_s: float
    first_sample_s: float
    code_low: int | None
    code_high: int | None
    code_hole: int | None = None


@dataclass(frozen=True)
class Frame:
    """One record of one channel.

    Attributes:
        channel: Number of the channel, from 1 as on the instrument's front.
        index: Number of the segment, from 0.
        codes: Shape (samples,), as digitised.
        scaling: How to read the codes.
        time_tag_s: Trigger of this segment after the trigger of the first; None: not known.
    """

    channel: int
    index: int
    codes: Codes
    scaling: Scaling
    time_tag_s: float | None


@dataclass(frozen=True)
class Acquisition:
    """All frames of one arming.

    Attributes:
        instrument: Which instrument, as it names itself.
        frames: What was read, in any order; may be fewer than wanted.
        wanted: Number of segments asked for.
    """

    instrument: str
    frames: tuple[Frame, ...]
    wanted: int
