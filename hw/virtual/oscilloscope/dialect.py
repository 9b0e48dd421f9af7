# SPDX-License-Identifier: Apache-2.0
"""What both dialects share: the common commands of IEEE 488.2, and how a message is worked through."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from hw.virtual.oscilloscope.acquisition import Acquisition
from hw.virtual.oscilloscope.edges import EdgeSource
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware
from hw.virtual.oscilloscope.link import Link
from hw.virtual.oscilloscope.scpi_errors import ScpiError, event_bit
from hw.virtual.oscilloscope.scpi_message import Parameters, parse_unit, split_outside_quotes
from hw.virtual.oscilloscope.scpi_tree import Command, CommandTree, Suffixes

POWER_ON = 0x80
OPERATION_COMPLETE = 0x01
EVENT_SUMMARY = 0x20
REPLY_BYTES_MAX = 1 << 26
"""What replies to one message may come to before no further one is made: 64 KiB can ask for 6000 records."""

_REGISTER_MAX = 255


class LinkGoneError(Exception):
    """The controller hung up while the instrument worked for it."""


class Word(str):
    """A choice as the guides write it, `POSitive`; each dialect has its own way of saying it."""

    __slots__ = ()


def words(names: Iterable[str]) -> dict[str, Word]:
    """Return choices that stand for themselves."""
    return {name: Word(name) for name in names}


def only(word: str, *others: str) -> Callable[[Suffixes, Parameters], None]:
    """Return what accepts the one choice that is simulated; the others are a settings conflict."""

    def accept(_: Suffixes, parameters: Parameters) -> None:
        if parameters.choice(words((word, *others))) != word:
            raise ScpiError(221, f"only {word} is simulated")

    return accept


class Raw(str):
    """A reply as it is."""

    __slots__ = ()


class Block(bytes):
    """Binary data with its header, `#45000...`."""

    __slots__ = ()


class Dialect(abc.ABC):
    """An instrument, except for what its maker decided.

    Attributes:
        hardware: What it is made of.
        faults: Defects, which may be switched at any time.
        acquisition: Run control.
        commands: Every command.
    """

    def __init__(
        self, hardware: Hardware, source: EdgeSource, faults: set[Fault], suffix_limits: Mapping[str, int]
    ) -> None:
        self.hardware = hardware
        self.faults = faults
        self.acquisition = Acquisition(hardware, source, faults, self.completed)
        self.commands = CommandTree(dict(suffix_limits))
        self.status = POWER_ON
        self._enabled = {"*ESE": 0, "*SRE": 0}
        self._completion_asked = False
        self._link: Link | None = None
        self._sends_block = False
        self._add_common_commands()

    # What a dialect decides

    @abc.abstractmethod
    def identity(self) -> str:
        """Return the reply to *IDN?."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Do *RST."""

    @abc.abstractmethod
    def clear(self) -> None:
        """Empty the queue of errors."""

    @abc.abstractmethod
    def report(self, error: ScpiError) -> None:
        """Put an error into the queue."""

    @abc.abstractmethod
    def render(self, command: Command, suffixes: Suffixes, value: object) -> bytes:
        """Return the reply to a query."""

    @abc.abstractmethod
    def completed(self) -> None:
        """Take note of a completed acquisition; called in its thread."""

    @abc.abstractmethod
    def wait_for_operations(self) -> None:
        """Wait for what *OPC? waits for."""

    @abc.abstractmethod
    def operations_pending(self) -> bool:
        """Tell whether *OPC? would have to wait."""

    def read_status(self) -> int:
        """Return the standard event status register, and clear it."""
        if self._completion_asked and not self.operations_pending():
            self._completion_asked = False
            self.status |= OPERATION_COMPLETE
        status, self.status = self.status, 0
        return status

    # What the server calls

    @property
    def keeps_replies(self) -> bool:
        """Tell whether the rest of a reply outlives its connection."""
        return False

    def handle(self, message: bytes, link: Link) -> bytes:
        """Do a message; return the reply with its line feed, or nothing."""
        self._link = link
        self._sends_block = False
        replies: list[bytes] = []
        try:
            units = split_outside_quotes(_decode(message), ";")
            self._do_units(units, replies)
        except ScpiError as error:
            self.fail(error)
        except LinkGoneError:
            return b""
        return b";".join(replies) + b"\n" if replies else b""

    def _do_units(self, units: list[str], replies: list[bytes]) -> None:
        path: tuple[str, ...] = ()
        held = 0
        for text in units:
            if not text.strip():
                continue
            try:
                unit = parse_unit(text, path)
                command, suffixes = self.commands.find(unit.header)
                if not unit.header[0].startswith("*"):
                    path = unit.header[:-1]
                if unit.query:
                    if held >= REPLY_BYTES_MAX:  # IEEE 488.2, 6.3.1.7: drop what was made, and the rest
                        replies.clear()
                        self.fail(ScpiError(430))
                        return
                    replies.append(self._answer(command, suffixes, unit.parameters))
                    held += len(replies[-1]) + 1
                elif command.setter is None:
                    raise ScpiError(113, ":".join(unit.header))
                else:
                    command.setter(suffixes, unit.parameters)
            except ScpiError as error:
                if error.is_command_error:
                    raise
                self.fail(error)

    def _answer(self, command: Command, suffixes: Suffixes, parameters: Parameters) -> bytes:
        if command.getter is None:
            raise ScpiError(113, command.pattern)
        value = command.getter(suffixes, parameters)
        self._sends_block = self._sends_block or isinstance(value, Block)
        return self.render(command, suffixes, value)

    def stall_after(self, reply: bytes) -> int | None:
        """Return where the transfer of a block stops, if that defect is on."""
        return len(reply) // 2 if self._sends_block and Fault.STALLED_TRANSFER in self.faults else None

    def interrupted(self) -> None:
        """Report a query INTERRUPTED."""
        self.fail(ScpiError(410))

    def oversized(self) -> None:
        """Report a message that is too long."""
        self.fail(ScpiError(223))

    def fail(self, error: ScpiError) -> None:
        """Report an error and set its status bit."""
        self.status |= event_bit(error.number)
        self.report(error)

    def close(self) -> None:
        """End what runs."""
        self.acquisition.stop()

    # For the dialects

    def wait_for_acquisition(self) -> None:
        """Wait until no acquisition runs.

        Raises:
            LinkGoneError: The controller hung up meanwhile.
        """
        link = self._link
        if not self.acquisition.wait(link.gone if link is not None else lambda: True):
            raise LinkGoneError

    def waveform_block(self, data: bytes, digits: int | None = None) -> Block:
        """Return data as a definite block (IEEE 488.2, 8.7.9), or what the defect makes of it.

        Args:
            data: Content.
            digits: Digits of the length; None: as few as it needs.
        """
        if Fault.GARBAGE_BLOCK in self.faults:
            return Block(b"#Z?" + np.random.default_rng(self.hardware.seed).bytes(max(64, len(data) // 2)))
        length = str(len(data)) if digits is None else f"{len(data):0{digits}d}"
        return Block(f"#{len(length)}{length}".encode() + data)

    def add_query(self, pattern: str, getter: Callable[[Suffixes], object]) -> None:
        """Add a query without parameters."""
        self.commands.add(pattern, getter=_without_parameters(getter))

    def add_action(self, pattern: str, action: Callable[[], None]) -> None:
        """Add a command without parameters and without a query."""

        def act(_: Suffixes, parameters: Parameters) -> None:
            parameters.expect(0)
            action()

        self.commands.add(pattern, setter=act)

    def add_setting(
        self,
        pattern: str,
        getter: Callable[[Suffixes], object],
        setter: Callable[[Suffixes, Parameters], None],
    ) -> None:
        """Add a command with one parameter, and its query."""

        def put(suffixes: Suffixes, parameters: Parameters) -> None:
            parameters.expect(1)
            setter(suffixes, parameters)

        self.commands.add(pattern, setter=put, getter=_without_parameters(getter))

    def add_field(
        self,
        pattern: str,
        of: Callable[[Suffixes], object],
        name: str,
        read: Callable[[Parameters], object],
    ) -> None:
        """Add a command whose one parameter becomes an attribute of an object, and its query."""
        self.add_setting(pattern, lambda s: getattr(of(s), name), lambda s, p: setattr(of(s), name, read(p)))

    def _add_common_commands(self) -> None:
        self.add_query("*IDN", lambda _: Raw(self._identity()))
        self.add_query("*TST", lambda _: Raw("0"))
        self.add_query("*ESR", lambda _: self.read_status())
        self.add_query("*STB", lambda _: self._status_byte())
        self.add_action("*RST", self.reset)
        self.add_action("*CLS", self._clear)
        self.add_action("*WAI", self.wait_for_operations)
        for register in self._enabled:
            self.add_setting(
                register,
                lambda _, name=register: self._enabled[name],
                lambda _, p, name=register: self._enabled.update({name: p.integer_within(0, _REGISTER_MAX)}),
            )
        self.commands.add("*OPC", setter=self._ask_completion, getter=self._await_completion)

    def _identity(self) -> str:
        return "ACME,MODEL 7,0,0" if Fault.WRONG_IDENTITY in self.faults else self.identity()

    def _clear(self) -> None:
        self.status = 0
        self._completion_asked = False
        self.clear()

    def _status_byte(self) -> int:
        return EVENT_SUMMARY if self.status & self._enabled["*ESE"] else 0

    def _ask_completion(self, _: Suffixes, parameters: Parameters) -> None:
        parameters.expect(0)
        self._completion_asked = True

    def _await_completion(self, _: Suffixes, parameters: Parameters) -> object:
        parameters.expect(0)
        self.wait_for_operations()
        return Raw("1")


def _without_parameters(getter: Callable[[Suffixes], object]) -> Callable[[Suffixes, Parameters], object]:
    def get(suffixes: Suffixes, parameters: Parameters) -> object:
        parameters.expect(0)
        return getter(suffixes)

    return get


def _decode(message: bytes) -> str:
    """Return the text of a message.

    Raises:
        ScpiError: There is something in it that is not ASCII text.
    """
    try:
        text = message.rstrip(b"\r").decode("ascii")
    except UnicodeDecodeError as error:
        raise ScpiError(101) from error
    if any(ord(character) < 0x20 and character != "\t" for character in text):
        raise ScpiError(101)
    return text
