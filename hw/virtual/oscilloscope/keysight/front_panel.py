# SPDX-License-Identifier: Apache-2.0
"""What the subsystems of an InfiniiVision share: settings, the selected segment, names of channels."""

from __future__ import annotations

from hw.virtual.oscilloscope.dialect import Dialect
from hw.virtual.oscilloscope.edges import EdgeSource
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware
from hw.virtual.oscilloscope.keysight.settings import Settings, after_reset
from hw.virtual.oscilloscope.scpi_tree import Suffixes


class FrontPanel(Dialect):
    """An InfiniiVision without its commands.

    Attributes:
        settings: What the front panel shows.
        segment_index: Selected segment, from 1.
    """

    def __init__(self, hardware: Hardware, source: EdgeSource, faults: set[Fault]) -> None:
        """Switch on."""
        channels = len(hardware.signals)
        super().__init__(hardware, source, faults, {"CHANnel<n>": channels})
        self.settings = after_reset(channels)
        self.segment_index = 1

    def settings_of(self, _: Suffixes = ()) -> Settings:
        """Return the settings, which *RST replaces, as commands ask for them."""
        return self.settings

    def displayed_channels(self) -> list[int]:
        """Return the channels on the screen; all, when there is none."""
        everything = range(1, len(self.settings.channels) + 1)
        shown = [number for number in everything if self.settings.channels[number - 1].displayed]
        return shown or list(everything)

    def channel_words(self) -> dict[str, int]:
        """Return the sources that there are: `CHANnel1` → 1."""
        return {f"CHANnel{number}": number for number in range(1, len(self.settings.channels) + 1)}
