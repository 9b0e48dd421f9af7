# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with a virtual oscilloscope on purpose, for tests of those who use it."""

from __future__ import annotations

from enum import Enum


class Fault(Enum):
    """A defect that can be switched on; several may be on at once."""

    STALLED_TRANSFER = "stalled-transfer"
    """Half of a waveform block is sent, then nothing more to anybody until that connection ends."""

    WRONG_IDENTITY = "wrong-identity"
    """*IDN? names another maker and model."""

    GARBAGE_BLOCK = "garbage-block"
    """A waveform block has a header that is none, and its bytes are noise."""

    FEWER_FRAMES = "fewer-frames"
    """An acquisition of several segments ends after half of them; a single one has none."""

    CLIP = "clip"
    """The converter sees each deviation from the centre of its range twenty times as large."""

    NO_TRIGGER = "no-trigger"
    """No edge triggers."""
