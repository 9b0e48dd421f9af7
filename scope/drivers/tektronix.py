# SPDX-License-Identifier: Apache-2.0
"""Tektronix 4, 5 and 6 Series MSO: set-up, run control, measurements.

Sources, as quoted at the commands: TMD, docstrings of Tektronix's tm_devices, generated from the programmer
manual of these series; P7 and P2, the programmer manuals of the 7 Series DPO and the 2 Series MSO (the same
interface); CQ, Tektronix's curvequery; SH, scopehal, a program in use on MSO5/6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scope.drivers.commands import Commands
from scope.drivers.tektronix_waveform import read_frames
from scope.settings import (
    ChannelSettings,
    Coupling,
    OscilloscopeSettings,
    RealisedChannel,
    RealisedSettings,
    Slope,
)
from scope.waveform import Frame

NO_ERRORS = frozenset({0, 1, 401, 402, 468})
"""Queue empty, events pending, power on, operation complete, knob turned (P7)."""
WARNINGS = range(529, 550)
"""P7: events of execution that changed nothing for the worse; 528 says that another value was set."""
ERROR_BITS = 0x3C
"""Of the standard event status: command, execution, device and query error (P2)."""

_EVENT = re.compile(r'(\d{1,9})\s*,\s*"([^"]*)"')
_SLOPES = {Slope.RISING: "RISe", Slope.FALLING: "FALL"}


class TektronixMso(Commands):
    """The commands of 4, 5 and 6 Series MSO oscilloscopes."""

    data_command = "CURVe?"
    remarks: tuple[str, ...] = ()

    def prepare(self) -> None:
        """Fix the form of replies: *RST would not (TMD), and whether it is per connection is unknown.

        SH: state of the parser outlives a connection, so what still arrives is thrown away. `*CLS` empties
        the event queue, but not the output queue (P7).
        """
        self.link.write("*CLS")
        self.link.write("*CLS")
        self.link.flush()
        self.set("HEADer OFF")
        self.set("VERBose ON")

    def read_errors(self) -> list[str]:
        """`*ESR?` makes the events readable, `ALLEv?` reads them all (P7, TMD)."""
        try:
            status = int(self.link.query("*ESR?"))
        except ValueError as error:
            raise self.link.garbage("no number in reply to *ESR?") from error
        if status == 0:
            return []
        reply = self.link.query("ALLEv?")
        events = [(int(number), text) for number, text in _EVENT.findall(reply)]
        self.remarks += tuple(f"{number} {text}" for number, text in events if number in WARNINGS)
        errors = [
            f"{number} {text}"
            for number, text in events
            if number not in NO_ERRORS and number not in WARNINGS
        ]
        if not errors and status & ERROR_BITS and not any(number in WARNINGS for number, _ in events):
            errors.append(f"event status {status}, and no event that explains it: {reply[:80]}")
        return errors

    def configure(self, settings: OscilloscopeSettings) -> RealisedSettings:
        """Set up everything, channels first."""
        self.remarks = ()
        self.stop()
        self.set("ACQuire:MODe SAMple")
        used = {channel.number: channel for channel in settings.channels}
        for number in range(1, self.identity.channels + 1):
            self.set(f"DISplay:GLObal:CH{number}:STATE {'ON' if number in used else 'OFF'}")
        for channel in settings.channels:
            self._set_channel(channel)
        self._set_time(settings)
        trigger = settings.trigger
        self.set("TRIGger:A:TYPe EDGE")
        self.set(f"TRIGger:A:EDGE:SOUrce CH{trigger.channel}")
        self.set(f"TRIGger:A:EDGE:SLOpe {_SLOPES[trigger.slope]}")
        self.set("TRIGger:A:EDGE:COUPling DC")
        self.set(f"TRIGger:A:LEVel:CH{trigger.channel} {trigger.level_v:.9G}")  # a level a channel (P2)
        self.set("TRIGger:A:MODe NORMal")  # never a record without a trigger
        self.set_segments(settings.segments)
        rate_hz = self.ask_number("HORizontal:SAMPLERate?")
        if rate_hz <= 0:
            raise self.error("HORizontal:SAMPLERate?", f"a rate of {rate_hz:g} samples/s")
        return RealisedSettings(
            channels=tuple(self._realised(channel.number) for channel in settings.channels),
            window_s=self.ask_integer("HORizontal:RECOrdlength?") / rate_hz,
            sample_rate_hz=rate_hz,
            segments=settings.segments,
            remarks=self.remarks,
        )

    def _set_channel(self, channel: ChannelSettings) -> None:
        """One input. The probe's own gain (0.1 of a x10) counts already, EXTAtten comes on top (P2, SH)."""
        name = f"CH{channel.number}"
        gain = self.ask_number(f"{name}:PRObe:GAIN?")
        if gain <= 0:
            raise self.error(f"{name}:PRObe:GAIN?", f"a gain of {gain:g}")
        limit_hz = channel.bandwidth_limit_hz
        self.set(f"{name}:INVert OFF")  # left on at the front panel, rising edges would be falling ones (TMD)
        self.set(f"{name}:PROBEFunc:EXTAtten {channel.probe_ratio * gain:.9G}")
        self.set(f"{name}:TERmination {'50' if channel.termination_ohm == 50 else '1.0E+6'}")
        self.set(f"{name}:COUPling {'DC' if channel.coupling is Coupling.DC else 'AC'}")
        self.set(f"{name}:BANdwidth {'FULl' if limit_hz is None else f'{limit_hz:.9G}'}")
        self.set(f"{name}:SCAle {channel.scale_v_per_div:.9G}")
        self.set(f"{name}:POSition 0")  # in divisions (P2)
        self.set(f"{name}:OFFSet {channel.offset_v:.9G}")
        self.set_deskew(channel.number, channel.deskew_s)

    def _set_time(self, settings: OscilloscopeSettings) -> None:
        """Width of the screen, and its middle after the trigger (delay mode, TMD)."""
        base = settings.timebase
        if base.lowest_sample_rate_hz is None:
            self.set("HORizontal:MODe AUTO")
            self.set(f"HORizontal:SCAle {base.window_s / 10:.9G}")
        else:
            self.set("HORizontal:MODe MANual")  # needed to set the record length (TMD, P7)
            self.set(f"HORizontal:MODe:SAMPLERate {base.lowest_sample_rate_hz:.9G}")
            rate_hz = self.ask_number("HORizontal:MODe:SAMPLERate?")
            self.set(f"HORizontal:MODe:RECOrdlength {max(1, round(base.window_s * rate_hz))}")
        self.set("HORizontal:DELay:MODe ON")
        self.set(f"HORizontal:DELay:TIMe {base.centre_s:.9G}")

    def _realised(self, number: int) -> RealisedChannel:
        name = f"CH{number}"
        return RealisedChannel(
            number=number,
            scale_v_per_div=self.ask_number(f"{name}:SCAle?"),
            offset_v=self.ask_number(f"{name}:OFFSet?"),
            deskew_s=self.ask_number(f"{name}:DESKew?"),
            bandwidth_hz=self.ask_number(f"{name}:BANdwidth?"),
        )

    def set_deskew(self, channel: int, deskew_s: float) -> float:
        """`CH<x>:DESKew`: steps of 40 ps, cut at 125 ns without a word (TMD); positive is earlier (SH)."""
        self.set(f"CH{channel}:DESKew {deskew_s:.9G}")
        return self.ask_number(f"CH{channel}:DESKew?")

    def set_segments(self, segments: int) -> None:
        """FastFrame, without the frame that sums up the others (TMD)."""
        if segments == 1:
            self.set("HORizontal:FASTframe:STATE OFF")
            return
        self.set("HORizontal:FASTframe:STATE ON")
        most = self.ask_integer("HORizontal:FASTframe:MAXFRames?")
        if segments > most:
            raise self.error(
                f"HORizontal:FASTframe:COUNt {segments}", f"at most {most} frames of this record length"
            )
        # Models differ in the form, and some know no summary; a frame too many would be found by its number.
        if not self.accepts("HORizontal:FASTframe:SUMFrame:STATE OFF"):
            self.accepts("HORizontal:FASTframe:SUMFrame NONe")
        self.set(f"HORizontal:FASTframe:COUNt {segments}")
        realised = self.ask_integer("HORizontal:FASTframe:COUNt?")
        if realised != segments:
            raise self.error(f"HORizontal:FASTframe:COUNt {segments}", f"set {realised} frames instead")

    def arm(self) -> None:
        """Single sequence; STATE ON begins anew (TMD, CQ)."""
        self.set("ACQuire:STOPAfter SEQuence")
        self.set("ACQuire:STATE ON")

    def running(self) -> bool:
        """`ACQuire:STATE?`: 1 until the sequence is complete (TMD, CQ)."""
        return self.ask_integer("ACQuire:STATE?") != 0

    def stop(self) -> None:
        """End the acquisition; what there is stays."""
        self.set("ACQuire:STATE OFF")

    def acquired(self, segments: int, finished: bool) -> int:
        """Frames that were acquired (TMD); of a plain acquisition, whether there was one."""
        if segments == 1:
            return min(1, self.ask_integer("ACQuire:NUMACq?")) if finished else 0
        return self.ask_integer("ACQuire:NUMFRAMESACQuired?")

    def frames(self, channel: int, count: int, settings: OscilloscopeSettings) -> Iterator[Frame]:
        """All frames in one transfer."""
        return read_frames(self, channel, count, settings)

    def clips(self, channel: int) -> bool:
        """`CH<x>:CLIPping?` (P2)."""
        return self.ask_integer(f"CH{channel}:CLIPping?") != 0
