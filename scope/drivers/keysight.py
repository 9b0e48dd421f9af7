# SPDX-License-Identifier: Apache-2.0
"""Keysight InfiniiVision (3000T, 4000X, 6000X, HD3): set-up, run control, measurements.

Sources, as quoted at the commands: PG3T, "InfiniiVision 3000T X-Series Programmer's Guide"; PG4, the same of
the 4000 X-Series (its pages); PG92, M9241/42/43A, the newest text of the same commands; KEX, the maker's
example scripts. [B]: believed, not read: either form is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scope.drivers.commands import Commands
from scope.drivers.keysight_waveform import read_record, read_segments
from scope.settings import (
    ChannelSettings,
    Coupling,
    OscilloscopeSettings,
    RealisedChannel,
    RealisedSettings,
    Slope,
)
from scope.waveform import Frame

QUEUE_ENTRIES = 30
"""PG92 p. 1328: 29 errors and one overflow entry."""
RUN_BIT = 8
"""PG4 p. 1603, KEX: bit 3 of the operation status condition register."""
LIMITED_BANDWIDTH_HZ = (15e6, 30e6)
"""The one limit of the family, about 20 or 25 MHz by model."""

_ERROR = re.compile(r'([+-]?\d{1,9})\s*,\s*"?(.*?)"?')
_SLOPES = {Slope.RISING: "POSitive", Slope.FALLING: "NEGative"}


class KeysightInfiniiVision(Commands):
    """The commands of InfiniiVision oscilloscopes."""

    data_command = ":WAVeform:DATA?"
    _has_run = _triggered = False

    def prepare(self) -> None:
        """Empty the error queue and the status registers (PG92 p. 1328). Replies carry no headers here."""
        self.read_errors()
        self.link.write("*CLS")

    def read_errors(self) -> list[str]:
        """`:SYSTem:ERRor?` until `+0,"No error"`: by its number, the texts differ (PG92 p. 1328)."""
        errors: list[str] = []
        for _ in range(QUEUE_ENTRIES + 2):
            reply = self.link.query(":SYSTem:ERRor?")
            match = _ERROR.fullmatch(reply)
            if match is None:
                raise self.link.garbage(f"{reply[:60]!r} in place of an error number and text")
            if int(match[1]) == 0:
                return errors
            errors.append(f"{int(match[1])} {match[2]}")
        raise self.error(":SYSTem:ERRor?", f"the error queue does not end: {'; '.join(errors[-2:])}")

    def configure(self, settings: OscilloscopeSettings) -> RealisedSettings:
        """Set up everything; probe ratio before scale, scale before level (PG4, MEASure:DEFine)."""
        self.stop()
        self.set(":ACQuire:TYPE NORMal")
        used = {channel.number: channel for channel in settings.channels}
        for number in range(1, self.identity.channels + 1):
            self.set(f":CHANnel{number}:DISPlay {'ON' if number in used else 'OFF'}")
        for channel in settings.channels:
            self._set_channel(channel)
        self._set_time(settings)
        trigger = settings.trigger
        self.set(":TRIGger:MODE EDGE")
        self.set(f":TRIGger:EDGE:SOURce CHANnel{trigger.channel}")
        self.set(f":TRIGger:EDGE:SLOPe {_SLOPES[trigger.slope]}")
        self.set(":TRIGger:EDGE:COUPling DC")
        self.set(":TRIGger:EDGE:REJect OFF")
        self.set(f":TRIGger:EDGE:LEVel {trigger.level_v:.9G},CHANnel{trigger.channel}")
        self.set(":TRIGger:SWEep NORMal")  # PG4 p. 1603: never a record without a trigger
        self.set_segments(settings.segments)
        return RealisedSettings(
            channels=tuple(self._realised(channel.number) for channel in settings.channels),
            window_s=self.ask_number(":TIMebase:RANGe?"),
            sample_rate_hz=self.ask_number(":ACQuire:SRATe?"),
            segments=settings.segments,
        )

    def _set_channel(self, channel: ChannelSettings) -> None:
        """One input: 8 divisions high, offset is the voltage at the middle of the screen (PG3T, YORigin)."""
        name = f":CHANnel{channel.number}"
        limit_hz = channel.bandwidth_limit_hz
        if limit_hz is not None and not LIMITED_BANDWIDTH_HZ[0] <= limit_hz <= LIMITED_BANDWIDTH_HZ[1]:
            raise self.error(
                f"{name}:BWLimit",
                f"limits to 20 or 25 MHz by model, not to {limit_hz:g} Hz; give {LIMITED_BANDWIDTH_HZ[0]:g}.."
                f"{LIMITED_BANDWIDTH_HZ[1]:g} Hz or none",
            )
        self.set(f"{name}:INVert OFF")  # left on at the front panel, rising edges would be falling ones
        self.set(f"{name}:PROBe {channel.probe_ratio:.9G}")
        self.set(f"{name}:IMPedance {'FIFTy' if channel.termination_ohm == 50 else 'ONEMeg'}")
        self.set(f"{name}:COUPling {'DC' if channel.coupling is Coupling.DC else 'AC'}")
        self.set(f"{name}:BWLimit {'OFF' if limit_hz is None else 'ON'}")
        self.set(f"{name}:SCALe {channel.scale_v_per_div:.9G}")
        self.set(f"{name}:OFFSet {channel.offset_v:.9G}")
        self.set_deskew(channel.number, channel.deskew_s)

    def _set_time(self, settings: OscilloscopeSettings) -> None:
        """Full width, and the middle of the screen after the trigger (reference in the centre)."""
        self.set(":TIMebase:MODE MAIN")
        self.set(":TIMebase:REFerence CENTer")
        self.set(f":TIMebase:RANGe {settings.timebase.window_s:.9G}")
        self.set(f":TIMebase:POSition {settings.timebase.centre_s:.9G}")

    def _realised(self, number: int) -> RealisedChannel:
        name = f":CHANnel{number}"
        return RealisedChannel(
            number=number,
            scale_v_per_div=self.ask_number(f"{name}:SCALe?"),
            offset_v=self.ask_number(f"{name}:OFFSet?"),
            deskew_s=self.ask_number(f"{name}:PROBe:SKEW?"),
            bandwidth_hz=None,
        )

    def set_deskew(self, channel: int, deskew_s: float) -> float:
        """`:CHANnel<n>:PROBe:SKEW`; the sign of its effect was not read anywhere [B]."""
        self.set(f":CHANnel{channel}:PROBe:SKEW {deskew_s:.9G}")
        return self.ask_number(f":CHANnel{channel}:PROBe:SKEW?")

    def set_segments(self, segments: int) -> None:
        """`:ACQuire:MODE SEGMented`, then the number, which is read back (PG3T)."""
        if segments == 1:
            self.set(":ACQuire:MODE RTIMe")
            return
        self.set(":ACQuire:MODE SEGMented")
        self.set(f":ACQuire:SEGMented:COUNt {segments}")
        realised = self.ask_integer(":ACQuire:SEGMented:COUNt?")
        if realised != segments:
            raise self.error(f":ACQuire:SEGMented:COUNt {segments}", f"set {realised} segments instead")

    def arm(self) -> None:
        """`:SINGle` returns at once (PG4 p. 91); the status is asked in messages of its own (KEX)."""
        self.link.write("*CLS")  # the trigger event register, too
        self._has_run = self._triggered = False
        self.set(":SINGle")

    def running(self) -> bool:
        """Bit 3 of `:OPERegister:CONDition?`, whatever the other bits say (PG4 p. 1603).

        It is clear as well before the instrument has armed: until it was seen set, or a trigger has come, the
        acquisition goes on.
        """
        if self.ask_integer(":OPERegister:CONDition?") & RUN_BIT:
            self._has_run = True
            return True
        return not self._has_run and not self._has_triggered()

    def _has_triggered(self) -> bool:
        """`:TER?`, which is cleared as it is read: whether there was a trigger since it was armed."""
        self._triggered = self._triggered or self.ask_integer(":TER?") != 0
        return self._triggered

    def stop(self) -> None:
        """`:STOP`."""
        self.set(":STOP")

    def acquired(self, segments: int, finished: bool) -> int:
        """`:WAVeform:SEGMented:COUNt?`: really acquired, not asked for (PG3T); of one record, its trigger.

        Stop at the front of the instrument ends an acquisition as well.
        """
        if segments == 1:
            return int(finished and self._has_triggered())
        return self.ask_integer(":WAVeform:SEGMented:COUNt?")

    def frames(self, channel: int, count: int, settings: OscilloscopeSettings) -> Iterator[Frame]:
        """All segments in one transfer where the model can, else one by one."""
        self.set(f":WAVeform:SOURce CHANnel{channel}")
        self.set(f":WAVeform:FORMat {'WORD' if settings.sample_bytes == 2 else 'BYTE'}")
        self.set(":WAVeform:UNSigned 1")
        self.set(":WAVeform:BYTeorder LSBFirst")
        self.set(":WAVeform:POINts MAXimum")  # KEX: this changes the mode below, so it comes first
        self.set(":WAVeform:POINts:MODE RAW")
        if settings.segments == 1:
            yield from read_record(self, channel, 0, 0.0)
            return
        if self.accepts(":WAVeform:SEGMented:ALL 1"):  # 3000T and newer (PG3T)
            yield from read_segments(self, channel, count)
            return
        for index in range(count):
            self.set(f":ACQuire:SEGMented:INDex {index + 1}")  # from 1 (KEX)
            time_tag_s = self.ask_number(":WAVeform:SEGMented:TTAG?")
            yield from read_record(self, channel, index, time_tag_s)

    def clips(self, channel: int) -> bool:  # noqa: ARG002 - this family tells by codes alone
        """Clipped samples have codes of their own."""
        return False
