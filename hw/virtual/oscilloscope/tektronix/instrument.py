# SPDX-License-Identifier: Apache-2.0
"""A 5 Series MSO: identity, events, headers, run control."""

from __future__ import annotations

from hw.virtual.oscilloscope.dialect import Block, Raw, Word, only, words
from hw.virtual.oscilloscope.edges import EdgeSource
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware
from hw.virtual.oscilloscope.scpi_errors import TEXTS, ScpiError
from hw.virtual.oscilloscope.scpi_message import Parameters
from hw.virtual.oscilloscope.scpi_tree import Command, Suffixes
from hw.virtual.oscilloscope.tektronix import fast_frame, measure, setup, waveform
from hw.virtual.oscilloscope.tektronix.front_panel import FrontPanel
from hw.virtual.oscilloscope.tektronix.replies import Fields, group_text, header, value_text
from hw.virtual.oscilloscope.tektronix.settings import after_reset, record_setup

POWER_ON_EVENT = (401, "Power on; ")


class FiveSeries(FrontPanel):
    """A simulated 5 Series MSO. It is stopped when switched on.

    Attributes:
        meter: Measurements and their statistics.
    """

    def __init__(
        self, hardware: Hardware, source: EdgeSource, faults: set[Fault], quoted_lists: bool = True
    ) -> None:
        """Switch on.

        Args:
            hardware: What it is made of.
            source: Edges at its inputs.
            faults: Defects.
            quoted_lists: Whether lists of frames come in quotes.
        """
        super().__init__(hardware, source, faults, quoted_lists)
        self.meter = measure.DelayMeter()
        self.events.add(*POWER_ON_EVENT)
        self._add_events()
        self._add_run_control()
        setup.add_commands(self)
        fast_frame.add_commands(self)
        waveform.add_commands(self)
        measure.add_commands(self, self.meter)

    @property
    def keeps_replies(self) -> bool:
        """State of the parser outlives connections: the next one gets what the last one left unread."""
        return True

    def identity(self) -> str:
        """Return maker, model, serial, firmware."""
        return f"TEKTRONIX,MSO5{len(self.settings.channels)},C000000,CF:91.1CT FV:1.99.11.1268"

    def reset(self) -> None:
        """Return to the default set-up, but for headers, transfer settings and events."""
        self.acquisition.stop()
        self.settings = after_reset(len(self.settings.channels))
        self.meter.delete_all()

    def clear(self) -> None:
        """Empty the event queue."""
        self.events.clear()

    def report(self, error: ScpiError) -> None:
        """Queue an event, with what it was about."""
        detail = f"Command not found; {error.detail}" if error.number == 113 else error.detail
        self.events.add(error.number, f"{TEXTS[error.number]}; {detail}".replace('"', "'"))

    def read_status(self) -> int:
        """Return and clear the status register; let its events out."""
        self.events.release()
        return super().read_status()

    def render(self, command: Command, suffixes: Suffixes, value: object) -> bytes:
        """Write a reply, with the header that HEADer and VERBose ask for."""
        with_header = self.transfer.header and not command.pattern.startswith("*")
        verbose = self.transfer.verbose
        if isinstance(value, Fields):
            return group_text(command.pattern, value, with_header, verbose).encode("ascii")
        start = header(command.pattern, suffixes, verbose) + " " if with_header else ""
        if isinstance(value, Block):
            return start.encode("ascii") + value
        return (start + value_text(value, verbose)).encode("ascii")

    def completed(self) -> None:
        """Measure all frames of the acquisition."""
        self.meter.take(self.acquisition.segments)

    def operations_pending(self) -> bool:
        """Tell whether a single sequence runs; one without end is no pending operation."""
        return self.settings.stop_after == "SEQuence" and self.acquisition.running

    def wait_for_operations(self) -> None:
        """Wait for the end of a single sequence."""
        if self.operations_pending():
            self.wait_for_acquisition()

    def _add_events(self) -> None:
        def one(with_text: bool) -> object:
            number, text = self.events.next()
            return Raw(f'{number},"{text}"') if with_text else number

        def everything() -> Raw:
            return Raw(",".join(f'{number},"{text}"' for number, text in self.events.take_all()))

        self.add_query("ALLEv", lambda _: everything())
        self.add_query("EVENT", lambda _: one(with_text=False))
        self.add_query("EVMsg", lambda _: one(with_text=True))
        self.add_query("EVQty", lambda _: self.events.readable())
        self.add_field("HEADer", lambda _: self.transfer, "header", Parameters.boolean)
        self.add_field("VERBose", lambda _: self.transfer, "verbose", Parameters.boolean)

    def _add_run_control(self) -> None:
        def set_state(_: Suffixes, p: Parameters) -> None:
            text = p.texts[0].upper()
            run = text == "RUN" or (text != "STOP" and p.boolean())
            if not run:
                self.acquisition.stop()
                return
            continuous = self.settings.stop_after == "RUNSTop"
            self.settings.frame_selected = 1
            self.meter.begin()
            self.acquisition.start(record_setup(self.settings, self.hardware), continuous)

        def frames() -> int:
            return len(self.acquisition.segments) if self.settings.fast_frame else 0

        self.add_setting("ACQuire:STATE", lambda _: self.acquisition.running, set_state)
        self.add_field(
            "ACQuire:STOPAfter",
            self.settings_of,
            "stop_after",
            lambda p: p.choice(words(("RUNSTop", "SEQuence"))),
        )
        self.add_setting(
            "ACQuire:MODe",
            lambda _: Word("SAMple"),
            only("SAMple", "PEAKdetect", "HIRes", "AVErage", "ENVelope"),
        )
        self.add_query("ACQuire:NUMACq", lambda _: self.acquisition.count)
        self.add_query("ACQuire:NUMFRAMESACQuired", lambda _: frames())
        self.add_query("BUSY", lambda _: self.operations_pending())
        self.add_query("TRIGger:STATE", lambda _: Word("READY" if self.acquisition.running else "SAVe"))
