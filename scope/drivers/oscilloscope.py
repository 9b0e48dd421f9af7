# SPDX-License-Identifier: Apache-2.0
"""An oscilloscope behind SCPI: one procedure for all dialects.

Every command is followed by a look at the error queue, everything that waits has a deadline, every error
names instrument, command and reason, and what was acquired before an error is kept with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from scope.drivers.clipping import check_samples
from scope.drivers.commands import Commands
from scope.drivers.identity import Dialect, Identity, parse_identity, terminal_reason
from scope.drivers.keysight import KeysightInfiniiVision
from scope.drivers.link import Link, SilentError, TransferError
from scope.drivers.tektronix import TektronixMso
from scope.errors import InstrumentError, ScopeError
from scope.incomplete import IncompleteAcquisitionError
from scope.settings import OscilloscopeSettings, RealisedSettings
from scope.waveform import Acquisition, Frame

POLL_S = (0.01, 0.2)
"""Rests between two looks at a running acquisition: the first, and the longest."""
DESKEW_TOLERANCE_S = 50e-12
"""Steps of 40 ps are to be expected; more than that was cut."""
SETTING_TOLERANCE = 0.02

_DIALECTS: dict[Dialect, type[Commands]] = {
    Dialect.KEYSIGHT_INFINIIVISION: KeysightInfiniiVision,
    Dialect.TEKTRONIX_MSO: TektronixMso,
}


class ScpiOscilloscope:
    """One oscilloscope; the dialect follows from its reply to `*IDN?`."""

    def __init__(
        self, link: Link, dialect: Dialect | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take a link; nothing is opened yet.

        Args:
            link: Where the instrument is.
            dialect: The dialect that it has to speak; None: whichever it does.
            clock: Seconds that only go forward.
        """
        self._link = link
        self._dialect = dialect
        self._clock = clock
        self._commands: Commands | None = None
        self._settings: OscilloscopeSettings | None = None  # those asked for last
        self._is_set_up = False
        self._armed = False

    def __enter__(self) -> ScpiOscilloscope:
        self._ready()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def identity(self) -> Identity:
        """What the instrument says it is."""
        return self._ready().identity

    def open(self) -> None:
        """Connect, ask who is there, and empty its error queue.

        Raises:
            InstrumentError: Nobody, somebody unknown, or another instrument than before.
        """
        self._link.open()
        try:
            identity = self._identify()
            before = self._commands.identity if self._commands else None
            if before is not None and (before.model, before.serial) != (identity.model, identity.serial):
                raise InstrumentError(
                    self._link.instrument,
                    "*IDN?",
                    f"another instrument than before: {identity}, was {before}",
                )
            commands = _DIALECTS[identity.dialect](self._link, identity)
            commands.prepare()
        except InstrumentError:
            self._link.close()
            raise
        self._commands = commands

    def close(self) -> None:
        """Disconnect; harmless when it is not connected."""
        self._link.close()
        self._armed = False

    def configure(self, settings: OscilloscopeSettings) -> RealisedSettings:
        """Stop, set everything up, and check what was really set.

        Raises:
            InstrumentError: A command was refused, or something else was set than asked for.
        """
        commands = self._ready()
        self._settings, self._is_set_up = settings, False
        for channel in settings.channels:
            if channel.number > commands.identity.channels:
                raise commands.error("", f"has {commands.identity.channels} channels, not {channel.number}")
        realised = commands.configure(settings)
        self._check(commands, settings, realised)
        self._is_set_up = True
        return realised

    def set_deskew(self, channel: int, deskew_s: float) -> float:
        """Set by how much a channel is shown earlier; return what was really set."""
        commands = self._ready()
        realised_s = commands.set_deskew(channel, deskew_s)
        self._check_deskew(commands, channel, deskew_s, realised_s)
        return realised_s

    def arm(self) -> None:
        """Start one acquisition; returns before its trigger.

        After a reconnection, or a set-up that failed, all is set up anew.
        """
        lost = self._link.broken
        commands = self._ready()
        if self._settings is None:
            raise commands.error("", "is not set up: configure first")
        if lost or not self._is_set_up:
            self.configure(self._settings)
        commands.arm()
        self._armed = True

    def acquire(self, timeout_s: float) -> Acquisition:
        """Arm, wait, and read; see `collect`."""
        self.arm()
        return self.collect(timeout_s)

    def collect(self, timeout_s: float) -> Acquisition:
        """Wait until all segments are acquired and read those of all channels.

        Raises:
            IncompleteAcquisitionError: No trigger within the time, fewer segments than asked for, clipped, or
                the transfer broke off; with all frames that were read.
            InstrumentError: It is not armed.
        """
        settings = self._settings
        commands = self._commands
        if settings is None or commands is None or not self._armed:
            raise InstrumentError(self._link.instrument, "", "is not armed: arm first")
        self._armed = False
        frames: list[Frame] = []
        try:
            self._collect(commands, settings, timeout_s, frames)
        except ScopeError as error:
            said = (
                error
                if isinstance(error, InstrumentError)
                else commands.error(commands.data_command, str(error))
            )
            if isinstance(error, SilentError):
                said = commands.explained(error)
            kept = self._acquisition(commands, settings, frames)
            raise IncompleteAcquisitionError(said, kept) from error
        return self._acquisition(commands, settings, frames)

    def _ready(self) -> Commands:
        if self._link.broken or self._commands is None:
            self.open()
        assert self._commands is not None
        return self._commands

    def _identify(self) -> Identity:
        """Ask `*IDN?`; an answer that is none may be the rest of one to somebody else: ask once more."""
        reason = ""
        for _ in range(2):
            try:
                identity = parse_identity(self._link.query("*IDN?"))
            except (ValueError, TransferError) as error:
                received: bytes = getattr(error, "received", b"")
                reason = terminal_reason(received) or getattr(error, "reason", str(error))
                if self._link.broken:  # rest of a block that an earlier connection was not there to read
                    self._link.open()
                self._link.flush()
                continue
            if self._dialect is not None and identity.dialect is not self._dialect:
                raise InstrumentError(
                    self._link.instrument, "*IDN?", f"{identity} does not speak {self._dialect}"
                )
            return identity
        raise InstrumentError(self._link.instrument, "*IDN?", f"unknown instrument: {reason}")

    def _check(self, commands: Commands, settings: OscilloscopeSettings, realised: RealisedSettings) -> None:
        base = settings.timebase
        if realised.window_s < base.window_s * (1 - SETTING_TOLERANCE):
            raise commands.error(
                "time base", f"a window of {realised.window_s:g} s was set, {base.window_s:g} s asked for"
            )
        lowest_hz = base.lowest_sample_rate_hz
        if lowest_hz is not None and realised.sample_rate_hz < lowest_hz * (1 - 1e-6):
            raise commands.error(
                "time base", f"{realised.sample_rate_hz:g} samples/s, at least {lowest_hz:g} are needed"
            )
        for asked, found in zip(settings.channels, realised.channels, strict=True):
            height_v = asked.scale_v_per_div
            if abs(found.scale_v_per_div - height_v) > SETTING_TOLERANCE * height_v:
                raise commands.error(
                    f"scale of channel {asked.number}",
                    f"{found.scale_v_per_div:g} V/div was set, {height_v:g} V/div asked for",
                )
            if abs(found.offset_v - asked.offset_v) > height_v / 4:
                raise commands.error(
                    f"offset of channel {asked.number}",
                    f"{found.offset_v:g} V was set, {asked.offset_v:g} V asked for",
                )
            self._check_deskew(commands, asked.number, asked.deskew_s, found.deskew_s)

    @staticmethod
    def _check_deskew(commands: Commands, channel: int, asked_s: float, found_s: float) -> None:
        if abs(found_s - asked_s) > DESKEW_TOLERANCE_S:
            raise commands.error(
                f"deskew of channel {channel}", f"{found_s:g} s was set, {asked_s:g} s asked for"
            )

    def _collect(
        self, commands: Commands, settings: OscilloscopeSettings, timeout_s: float, frames: list[Frame]
    ) -> None:
        """Append all frames; raise what is wrong after as many as possible were read."""
        wanted = settings.segments
        finished = self._wait(commands, timeout_s)
        found = commands.acquired(wanted, finished)
        for channel in settings.channels:
            if found:
                for frame in commands.frames(channel.number, min(found, wanted), settings):
                    frames.append(frame)  # noqa: PERF402 - what came before an error has to stay
        if not finished:
            raise commands.error(
                "trigger", f"no trigger within {timeout_s:g} s: {found} of {wanted} segments"
            )
        if found != wanted:
            stopped = "" if found else ": it was stopped, at its front or by somebody else"
            raise commands.error("segments", f"{found} segments were acquired, {wanted} asked for{stopped}")
        check_samples(commands, settings, frames)

    def _wait(self, commands: Commands, timeout_s: float) -> bool:
        """Return whether the acquisition ended by itself; stop it at the deadline."""
        deadline = self._clock() + timeout_s
        rest_s = POLL_S[0]
        while commands.running():
            if self._clock() >= deadline:
                commands.stop()
                return False
            time.sleep(rest_s)
            rest_s = min(2 * rest_s, POLL_S[1])
        return True

    @staticmethod
    def _acquisition(commands: Commands, settings: OscilloscopeSettings, frames: list[Frame]) -> Acquisition:
        return Acquisition(str(commands.identity), tuple(frames), settings.segments)


def open_oscilloscope(
    name: str, resource: str, dialect: Dialect | None = None, library: str = "@py", timeout_s: float = 5.0
) -> ScpiOscilloscope:
    """Connect to an oscilloscope and identify it.

    Args:
        name: What the bench calls it.
        resource: VISA resource name, see `Link`.
        dialect: The dialect that it has to speak; None: whichever it does.
        library: VISA library; `@py` is pyvisa-py.
        timeout_s: Longest silence before and within a reply.

    Raises:
        InstrumentError: Nobody is there, or nobody that is known.
    """
    oscilloscope = ScpiOscilloscope(Link(name, resource, library, timeout_s), dialect)
    oscilloscope.open()
    return oscilloscope
