# SPDX-License-Identifier: Apache-2.0
"""What a dialect has to be able to do, and how every command is checked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

from scope.drivers.identity import Identity
from scope.drivers.link import Link, SilentError
from scope.errors import InstrumentError
from scope.settings import OscilloscopeSettings, RealisedSettings
from scope.waveform import Frame

NOT_A_NUMBER = 9.0e37
"""From here on a reply means "not measurable": InfiniiVision says 9.9E+37, Tektronix 9.91E+37."""


class Commands(ABC):
    """The commands of one family of instruments, over one link."""

    data_command: str
    """The command that fetches samples, for messages."""

    def __init__(self, link: Link, identity: Identity) -> None:
        self.link = link
        self.identity = identity

    def set(self, command: str) -> None:
        """Send a command and ask at once whether it was accepted.

        Raises:
            InstrumentError: With the instrument's own words.
        """
        self.link.write(command)
        errors = self.read_errors()
        if errors:
            raise InstrumentError(self.link.instrument, command, "refused: " + "; ".join(errors))

    def accepts(self, command: str) -> bool:
        """Send a command that not every model knows; tell whether it was accepted."""
        self.link.write(command)
        return not self.read_errors()

    def ask(self, command: str) -> str:
        """Return the reply without a header; a silence is explained by the error queue where it can be."""
        try:
            reply = self.link.query(command)
        except SilentError as error:
            raise self.explained(error) from error
        return reply.partition(" ")[2].strip() if reply.startswith(":") else reply

    def ask_number(self, command: str) -> float:
        """Return a finite number; 9.9E+37 and NaN are none."""
        return self.number(command, self.ask(command))

    def ask_integer(self, command: str) -> int:
        """Return a whole number, with or without sign."""
        number = self.ask_number(command)
        if number != int(number):
            raise self.link.garbage(f"{number!r} in place of a whole number")
        return int(number)

    def number(self, command: str, text: str) -> float:
        """Read one number of a reply."""
        try:
            number = float(text.strip().strip('"'))
        except ValueError as error:
            raise self.link.garbage(f"{text[:60]!r} in place of a number") from error
        if not math.isfinite(number) or abs(number) >= NOT_A_NUMBER:
            raise InstrumentError(self.link.instrument, command, f"has no value ({text.strip()})")
        return number

    def error(self, command: str, reason: str) -> InstrumentError:
        """Return an error of this instrument."""
        return InstrumentError(self.link.instrument, command, reason)

    def explained(self, error: SilentError) -> InstrumentError:
        """Add what the error queue says to the error of a silence; the link stays closed."""
        try:
            self.link.open()
            said = self.read_errors()
        except InstrumentError:
            said = []
        finally:
            self.link.close()
        if not said:
            return error
        return InstrumentError(error.instrument, error.command, f"{error.reason}: " + "; ".join(said))

    @abstractmethod
    def prepare(self) -> None:
        """Bring a new connection into a known state: queue empty, form of the replies."""

    @abstractmethod
    def read_errors(self) -> list[str]:
        """Read the error queue until it is empty; return what in it is an error."""

    @abstractmethod
    def configure(self, settings: OscilloscopeSettings) -> RealisedSettings:
        """Stop, set up channels, time base, trigger and segments; return what was really set."""

    @abstractmethod
    def set_deskew(self, channel: int, deskew_s: float) -> float:
        """Set the deskew of one channel; return what was really set."""

    @abstractmethod
    def set_segments(self, segments: int) -> None:
        """Divide the memory into so many records."""

    @abstractmethod
    def arm(self) -> None:
        """Start one acquisition of all segments; returns before the trigger."""

    @abstractmethod
    def running(self) -> bool:
        """Tell whether the acquisition goes on."""

    @abstractmethod
    def stop(self) -> None:
        """End the acquisition."""

    @abstractmethod
    def acquired(self, segments: int, finished: bool) -> int:
        """Return how many segments hold a record."""

    @abstractmethod
    def frames(self, channel: int, count: int, settings: OscilloscopeSettings) -> Iterator[Frame]:
        """Yield the frames of one channel as they come over; raise InstrumentError where it breaks off."""

    @abstractmethod
    def clips(self, channel: int) -> bool:
        """Tell whether the instrument itself says that the channel is clipped; False where it cannot."""
