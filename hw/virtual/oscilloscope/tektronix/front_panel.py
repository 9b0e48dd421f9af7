# SPDX-License-Identifier: Apache-2.0
"""What the groups of commands of a 5 Series MSO share: settings, events, names of channels."""

from __future__ import annotations

from hw.virtual.oscilloscope.dialect import Dialect, Raw
from hw.virtual.oscilloscope.edges import EdgeSource
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware
from hw.virtual.oscilloscope.scpi_errors import TEXTS, event_bit
from hw.virtual.oscilloscope.scpi_tree import Suffixes
from hw.virtual.oscilloscope.tektronix.events import EventQueue
from hw.virtual.oscilloscope.tektronix.replies import QuotedString
from hw.virtual.oscilloscope.tektronix.settings import Settings, Transfer, after_reset

MEASUREMENTS_MAX = 50


class FrontPanel(Dialect):
    """A 5 Series MSO without its commands.

    Attributes:
        settings: What *RST sets.
        transfer: What *RST leaves alone; one for all connections.
        events: Its event queue.
        quoted_lists: Whether lists of frames come in quotes, which the manuals leave open.
    """

    def __init__(
        self, hardware: Hardware, source: EdgeSource, faults: set[Fault], quoted_lists: bool
    ) -> None:
        """Switch on."""
        channels = len(hardware.signals)
        super().__init__(hardware, source, faults, {"CH<n>": channels, "MEAS<n>": MEASUREMENTS_MAX})
        self.quoted_lists = quoted_lists
        self.settings = after_reset(channels)
        self.transfer = Transfer()
        self.events = EventQueue()

    def settings_of(self, _: Suffixes = ()) -> Settings:
        """Return the settings, which *RST replaces, as commands ask for them."""
        return self.settings

    def warn(self, number: int, detail: str) -> None:
        """Queue an event for something that was done, but not as asked."""
        self.status |= event_bit(number)
        self.events.add(number, f"{TEXTS[number]}; {detail}")

    def channel_words(self) -> dict[str, int]:
        """Return the channels that there are: `CH1` → 1."""
        return {f"CH{number}": number for number in range(1, len(self.settings.channels) + 1)}

    def listing(self, text: str) -> object:
        """Return a list of frames in quotes or not."""
        return QuotedString(text) if self.quoted_lists else Raw(text)
