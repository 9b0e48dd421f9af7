# SPDX-License-Identifier: Apache-2.0
"""Samples that say nothing about the signal: clipped, or never acquired."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scope.drivers.commands import Commands
from scope.settings import OscilloscopeSettings
from scope.waveform import Frame


def clipped_samples(frame: Frame) -> int:
    """Count the samples at the ends of the converter's range."""
    scaling = frame.scaling
    clipped = np.zeros(frame.codes.shape, dtype=np.bool_)
    if scaling.code_high is not None:
        clipped |= frame.codes >= scaling.code_high
    if scaling.code_low is not None:
        clipped |= frame.codes <= scaling.code_low
    if scaling.code_hole is not None:
        clipped &= frame.codes != scaling.code_hole
    return int(np.count_nonzero(clipped))


def holes(frame: Frame) -> int:
    """Count the samples that were not acquired."""
    if frame.scaling.code_hole is None:
        return 0
    return int(np.count_nonzero(frame.codes == frame.scaling.code_hole))


def check_samples(commands: Commands, settings: OscilloscopeSettings, frames: Sequence[Frame]) -> None:
    """Refuse frames with holes, and clipped ones unless they are allowed.

    Raises:
        InstrumentError: Names channel and segment, and how to fix it.
    """
    for frame in frames:
        missing = holes(frame)
        if missing:
            raise commands.error(
                commands.data_command,
                f"channel {frame.channel}, segment {frame.index + 1}: {missing} samples were not acquired",
            )
    if settings.allow_clipped:
        return
    remedy = "choose a larger scale_v_per_div or another offset_v"
    for frame in frames:
        clipped = clipped_samples(frame)
        if clipped:
            raise commands.error(
                commands.data_command,
                f"channel {frame.channel}, segment {frame.index + 1}: {clipped} of {frame.codes.size}"
                f" samples are clipped; {remedy}",
            )
    for channel in settings.channels:
        if commands.clips(channel.number):
            raise commands.error(
                commands.data_command, f"channel {channel.number} is clipped, says the instrument; {remedy}"
            )
