# SPDX-License-Identifier: Apache-2.0
"""An InfiniiVision: identity, error queue, run control, and how replies are written."""

from __future__ import annotations

from collections import deque

from hw.virtual.oscilloscope.dialect import LinkGoneError, Raw, Word
from hw.virtual.oscilloscope.edges import EdgeSource
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware
from hw.virtual.oscilloscope.keysight import measure, setup, waveform
from hw.virtual.oscilloscope.keysight.front_panel import FrontPanel
from hw.virtual.oscilloscope.keysight.settings import after_reset, record_setup
from hw.virtual.oscilloscope.scpi_errors import TEXTS, ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters, short_form
from hw.virtual.oscilloscope.scpi_tree import Command, Suffixes

ERRORS_KEPT = 29
RUN_BIT = 8


class InfiniiVision(FrontPanel):
    """A simulated InfiniiVision.

    Attributes:
        meter: Measurements installed, and their statistics.
    """

    def __init__(
        self, hardware: Hardware, source: EdgeSource, faults: set[Fault], skew_sign: int = 1
    ) -> None:
        """Switch on.

        Args:
            hardware: What it is made of.
            source: Edges at its inputs.
            faults: Defects.
            skew_sign: What :CHANnel<n>:PROBe:SKEW does, which the guides do not say: 1: a positive skew shows
                the channel earlier, -1: later.
        """
        super().__init__(hardware, source, faults)
        self.meter = measure.DelayMeter(self)
        self._skew_sign = skew_sign
        self._errors: deque[tuple[int, str]] = deque()
        self.add_query("SYSTem:ERRor", lambda _: self._next_error())
        self._add_run_control()
        setup.add_commands(self, self.meter.measure_all)
        waveform.add_commands(self)
        measure.add_commands(self, self.meter)

    def identity(self) -> str:
        """Return maker, model (its second-last character is the number of channels), serial, firmware."""
        return f"KEYSIGHT TECHNOLOGIES,MSO-X 310{len(self.settings.channels)}T,MY00000001,07.50.2102009999"

    def reset(self) -> None:
        """Return to the default set-up; the error queue stays as it is (SCPI-1999)."""
        self.acquisition.stop()
        self.settings = after_reset(len(self.settings.channels))
        self.segment_index = 1
        self.meter.reset()

    def clear(self) -> None:
        """Empty the error queue."""
        self._errors.clear()

    def report(self, error: ScpiError) -> None:
        """Queue an error; the thirtieth says that more were lost (status chapter of the guide)."""
        if len(self._errors) < ERRORS_KEPT:
            self._errors.append((-error.number, TEXTS[error.number]))
        elif len(self._errors) == ERRORS_KEPT:
            self._errors.append((-350, TEXTS[350]))

    def _next_error(self) -> Raw:
        number, text = self._errors.popleft() if self._errors else (0, "No error")
        return Raw(f'{number:+d},"{text}"')

    def render(self, command: Command, suffixes: Suffixes, value: object) -> bytes:  # noqa: ARG002
        """Write a reply: no header, signed integers, short forms in capitals."""
        match value:
            case bytes():
                return value
            case bool():
                text = str(int(value))
            case int():
                text = f"{value:+d}"
            case float():
                text = measure.written(value)
            case Word():
                text = short_form(value).upper()
            case _:
                text = str(value)
        return text.encode("ascii")

    def completed(self) -> None:
        """Measure what the screen shows now."""
        self.segment_index = max(1, len(self.acquisition.segments))
        self.meter.measure_screen()

    def operations_pending(self) -> bool:
        """Tell that nothing overlaps: :SINGle and :RUN return at once, :DIGitize is sequential."""
        return False

    def wait_for_operations(self) -> None:
        """Wait for nothing."""

    def start(self, channels: list[int], continuous: bool) -> None:
        """Start to acquire these channels."""
        self.acquisition.start(
            record_setup(self.settings, self.hardware, channels, self._skew_sign), continuous
        )

    def _add_run_control(self) -> None:
        self.add_action("RUN", lambda: self.start(self.displayed_channels(), continuous=True))
        self.add_action("STOP", self.acquisition.stop)
        self.add_action("SINGle", self._single)
        self.commands.add("DIGitize", setter=self._digitize)
        self.add_query("OPERegister:CONDition", lambda _: RUN_BIT if self.acquisition.running else 0)
        self.add_query("RSTate", lambda _: Word("RUN" if self.acquisition.running else "STOP"))
        self.add_query("TER", lambda _: self._read_trigger_event())

    def _single(self) -> None:
        self.settings.sweep = Word("NORMal")
        self.start(self.displayed_channels(), continuous=False)

    def _digitize(self, _: Suffixes, parameters: Parameters) -> None:
        parameters.expect(0, len(self.settings.channels))
        words = self.channel_words()
        channels = sorted({parameters.choice(words, place) for place in range(len(parameters))})
        self.start(channels or self.displayed_channels(), continuous=False)
        try:
            self.wait_for_acquisition()
        except LinkGoneError:
            self.acquisition.stop()
            raise

    def _read_trigger_event(self) -> bool:
        seen = self.acquisition.triggered
        self.acquisition.triggered = False
        return seen
