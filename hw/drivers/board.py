# SPDX-License-Identifier: Apache-2.0
"""A board's boot: labgrid's strategy over its power and its serial console, real or virtual.

A boot begins without power and ends when the console says so. Whatever else the console says or does not say
in time is a fault of the bench that names what happened. All that it ever says is kept in one log.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any, cast

import attr
from labgrid.protocol import PowerProtocol
from labgrid.strategy import Strategy
from pexpect import TIMEOUT

from hw.answers import tail
from hw.boot import BootExpectation, BootState, BootWatch
from hw.drivers.labgrid_api import register_driver, target_name
from hw.errors import BenchError, ConfigError

READY = "benchwright: ready"
_POLL_S = 0.05
_READ_S = 0.2


class _ConsoleReader:
    """Reads a console in a thread of its own, into a log and for whoever watches, until `stop`."""

    def __init__(self, name: str, console: Any, log: Path | None) -> None:
        self._console = console
        self._log = log
        self._lock = threading.Lock()
        self._unread = bytearray()
        self._stopping = threading.Event()
        self.failure: Exception | None = None
        """Why nothing more can be read."""
        self._thread = threading.Thread(target=self._run, name=f"console of {name}", daemon=True)
        self._thread.start()

    def note(self, text: str) -> None:
        """Write a line of the bench's own into the log."""
        instant = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._keep(f"\n--- benchwright: {text} {instant} ---\n".encode())

    def take(self) -> bytes:
        """Return what was read since the last call."""
        with self._lock:
            data = bytes(self._unread)
            self._unread.clear()
        return data

    def stop(self) -> None:
        """End; the console is nobody's then."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                data: bytes = self._console.read(size=1, timeout=_READ_S)
                self._keep(data)
            except TIMEOUT:
                continue
            except Exception as error:  # noqa: BLE001 - whatever a serial port raises is told by who watches
                self.failure = error
                return
            with self._lock:
                self._unread += data

    def _keep(self, data: bytes) -> None:
        if self._log is not None:
            with self._log.open("ab") as log:
                log.write(data)


def _pattern(_driver: object, attribute: Any, value: Any) -> None:
    """Attribute validator of attrs: a regular expression that matches something."""
    try:
        empty = re.compile(value).search("") is not None
    except (TypeError, re.error) as error:
        raise ValueError(f"{attribute.name}: {value!r}; must be a regular expression: {error}") from error
    if empty:
        raise ValueError(f"{attribute.name}: {value!r}; must not match an empty console")


def _seconds(_driver: object, attribute: Any, value: Any) -> None:
    """Attribute validator of attrs: a time."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 3600:
        raise ValueError(f"{attribute.name}: {value!r}; must be a number of seconds in 0..3600")


def _texts(_driver: object, attribute: Any, value: Any) -> None:
    """Attribute validator of attrs: a list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[Any]", value)):
        raise ValueError(f"{attribute.name}: {value!r}; must be a list of names of files")


@register_driver
@attr.s(eq=False)
class BoardStrategy(Strategy, PowerProtocol):
    """Powers a board and watches it boot; attributes are described in docs/embedded.md.

    It stands behind the power and the console driver in a bench file and takes the power driver's place.

    Args:
        ready: Regular expression of what the console says when the system is up.
        first_output_s: Time from power to the first character, at most.
        silence_s: Longest silence until it is up.
        prompt_s: Silence after which what looks like a prompt is one.
        boot_deadline_s: Time from power until it is up, at most.
        off_s: Time without power before a boot, for what is charged to lose its charge.
        boot_files: Files that are put on the TFTP, HTTP or NFS server before each boot.
        log: File of all that the console says (filled in by the bench).
    """

    bindings = {  # noqa: RUF012  (labgrid's form)
        "power": "PowerProtocol",
        "console": "ConsoleProtocol",
        "server": {"TFTPProviderDriver", "HTTPProviderDriver", "NFSProviderDriver", None},
    }
    priorities = {PowerProtocol: 1}  # noqa: RUF012

    ready: str = attr.ib(default=READY, validator=_pattern)
    first_output_s: float = attr.ib(default=30.0, validator=_seconds)
    silence_s: float = attr.ib(default=30.0, validator=_seconds)
    prompt_s: float = attr.ib(default=3.0, validator=_seconds)
    boot_deadline_s: float = attr.ib(default=180.0, validator=_seconds)
    off_s: float = attr.ib(default=3.0, validator=_seconds)
    boot_files: list[str] = attr.ib(factory=list[str], validator=_texts)
    log: str = attr.ib(default="", validator=attr.validators.instance_of(str))

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        self._reader: _ConsoleReader | None = None
        self._up = False

    def transition(self, status: str) -> None:
        """Bring the board into a state, in labgrid's words: `off` or `on`.

        Raises:
            ConfigError: There is no such state.
            BenchError: The board did not come up.
        """
        if status not in ("off", "on"):
            raise ConfigError(f"board {target_name(self)}: state: must be off or on, found {status!r}")
        (self.on if status == "on" else self.off)()

    def on(self) -> None:
        """Boot the board from the off state; harmless when this process has booted it already.

        Raises:
            BenchError: It did not come up; the text begins with how, and quotes the console.
        """
        if self._up and self.powered:
            return
        self.off()
        time.sleep(self.off_s)
        for file in self.boot_files:
            self._stage(file)
        reader = self._listen()
        reader.take()
        reader.note("power on")
        self._of.power.on()
        self._watch(reader)
        self._up = True

    def off(self) -> None:
        """Cut the power, without asking the board."""
        self._up = False
        self._of.target.activate(self._of.power)
        self._listen().note("power off")
        self._of.power.off()

    def cycle(self) -> None:
        """Cut the power and boot again."""
        self.off()
        self.on()

    @property
    def powered(self) -> bool:
        """Tell whether it has power, as far as its power driver knows without asking."""
        return bool(getattr(self._of.power, "powered", True))

    @property
    def _of(self) -> Any:
        return self  # labgrid sets what `bindings` names

    def _error(self, text: str) -> BenchError:
        return BenchError(f"board {target_name(self)}: {text}")

    def _listen(self) -> _ConsoleReader:
        if self._reader is not None and self._reader.failure is not None:
            self._reader.stop()
            self._reader = None
        if self._reader is None:
            try:
                self._of.target.activate(self._of.console)
            except Exception as error:
                raise self._error(f"its serial console cannot be opened: {error}") from error
            if self.log:
                Path(self.log).parent.mkdir(parents=True, exist_ok=True)
            self._reader = _ConsoleReader(
                target_name(self), self._of.console, Path(self.log) if self.log else None
            )
        return self._reader

    def _stage(self, file: str) -> None:
        if self._of.server is None:
            raise self._error(
                f"boot_files: {file}: there is no TFTPProviderDriver, HTTPProviderDriver or NFSProviderDriver"
            )
        path = self._of.target.env.config.resolve_path(file)
        try:
            self._of.target.activate(self._of.server)
            self._of.server.stage(path)
        except Exception as error:
            raise self._error(f"boot_files: {file} cannot be put on the server: {error}") from error

    def _watch(self, reader: _ConsoleReader) -> None:
        expected = BootExpectation(
            re.compile(self.ready), self.first_output_s, self.silence_s, self.prompt_s, self.boot_deadline_s
        )
        watch = BootWatch(expected, time.monotonic())
        while True:
            powered = self.powered
            watch.feed(reader.take(), time.monotonic())
            found = watch.finding(time.monotonic())
            if found is not None and found.state is BootState.READY:
                return
            if found is not None:
                raise self._error(f"{found.state.value}: {found.detail}; {self._said()}")
            if not powered:
                raise self._error(f"has lost its power while it booted; {self._said()}")
            if reader.failure is not None:
                raise self._error(f"its serial console cannot be read: {reader.failure}")
            time.sleep(_POLL_S)

    def _said(self) -> str:
        return f"console: {tail(Path(self.log))}" if self.log else "console: not kept"


def driver_attributes(drivers: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the attributes, to be added to, of a BoardStrategy among drivers; None: there is none."""
    return next((each for each in drivers if each["cls"] == BoardStrategy.__name__), None)
