# SPDX-License-Identifier: Apache-2.0
"""What keywords may ask of a bench. Keywords name these protocols, never a driver."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hw.edges import CapturedEdges
from hw.path_settings import Flow, PathSettings, RealisedPath
from hw.router import PathDirection
from scope.settings import OscilloscopeSettings, RealisedSettings
from scope.waveform import Acquisition

READY_S = 60.0
"""How long a tool may take to its `ready`: only a hang is longer. Services take 9 s on an emulated board."""


@dataclass(frozen=True)
class CommandResult:
    """A command that has ended."""

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str


class Job(Protocol):
    """A native tool that runs on a node and writes NDJSON."""

    name: str

    def process_id(self) -> int:
        """Return the id that the tool has, or had, on its node."""
        ...

    def wait_ready(self, timeout_s: float = READY_S) -> None:
        """Return when the tool has said `ready`; raise BenchError when it ended or was silent."""
        ...

    def wait(self, timeout_s: float) -> int:
        """Return the exit code once the tool has ended; raise BenchError at the deadline."""
        ...

    def stop(self) -> None:
        """Ask the tool to end and give its result so far (SIGTERM); harmless when it has ended."""
        ...

    def fetch(self) -> Path:
        """Return the local file with all that the tool has written to stdout so far."""
        ...


class Conversation(Job, Protocol):
    """A program that is told things and answers while it runs, by lines of JSON (docs/experiments.md).

    `stop` says no more to it: it ends by itself, and so it does when this process ends.
    """

    def tell(self, phase: str, parameters: Mapping[str, Any]) -> None:
        """Say which phase it is; raise OverdueError where that is not taken from here."""
        ...

    def hear(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next answer, or None at its end; raise TimeoutError where it says nothing so long."""
        ...

    def said(self) -> str:
        """Return what it complained of last."""
        ...

    def hang_up(self) -> None:
        """End at once what is here of it."""
        ...


class Node(Protocol):
    """A machine, or a namespace, that runs commands."""

    name: str
    clock: str
    priority: int
    work_folder: str
    """Where the folders of its tools' files are; nodes of one machine may share it."""

    @property
    def powered(self) -> bool:
        """False once the bench knows, without asking the node, that it has lost its power."""
        ...

    def is_reached(self) -> bool:
        """Tell whether it answers now; False where its connection is gone."""
        ...

    def run(self, argv: Sequence[str], timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run a command to its end.

        Raises:
            BenchError: The node cannot be reached, the deadline passed, or the exit code is not 0 (with
            `check`).
        """
        ...

    def start(self, argv: Sequence[str], stem: Path) -> Job:
        """Start a native tool that outlives the connection; it writes to `stem`.ndjson and `stem`.err."""
        ...

    def converse(self, argv: Sequence[str], stem: Path) -> Conversation:
        """Start a program that is told things and answers: `stem`.ndjson and `stem`.err keep what it says.

        Raises:
            CapabilityError: The node cannot have one.
        """
        ...

    def put(self, local: Path, remote: str) -> None:
        """Copy a file to the node, keeping its mode.

        Raises:
            BenchError: It cannot be copied; OverdueError: not within a time that follows from its bytes.
        """
        ...

    def get(self, remote: str, local: Path) -> None:
        """Copy a file from the node; raises as `put`."""
        ...

    def bring(self, file: Path) -> str:
        """Bring a file to the node, into its folder for such; return its path there."""
        ...

    def fresh_folder(self, name: str) -> str:
        """Make an empty folder of that name for a tool's files; return its path there."""
        ...

    def files(self, folder: str) -> list[str]:
        """Return the names of the files in a folder of the node; none where there is no folder."""
        ...


class Power(Protocol):
    """Power of a node."""

    def on(self) -> None:
        """Power up; return when the node answers, or raise BenchError."""
        ...

    def off(self) -> None:
        """Cut the power, without asking the node."""
        ...


class Router(Protocol):
    """What delays, loses and reorders packets on paths of the test network."""

    def configure(
        self, paths: Collection[PathDirection], settings: PathSettings, flows: Sequence[Flow] = ()
    ) -> RealisedPath:
        """Treat packets of these paths so; return what was really set, raise where that was not asked for.

        Args:
            paths: Links, all in one direction. The other direction stays as it is.
            settings: What happens to the packets.
            flows: Those that alone are treated; none: all.
        """
        ...

    def clear(self) -> None:
        """Treat no packets, and take the router out of the way."""
        ...


class Oscilloscope(Protocol):
    """An oscilloscope; of any maker, real or virtual.

    Whatever goes wrong is an InstrumentError (`scope.errors`) that names instrument, command and reason.
    """

    @property
    def identity(self) -> object:
        """What it says it is; its text is the reply to `*IDN?`: maker, model, serial number, firmware."""
        ...

    def configure(self, settings: OscilloscopeSettings) -> RealisedSettings:
        """Stop, set everything up, and return what was really set; raise where that is not what was asked."""
        ...

    def set_deskew(self, channel: int, deskew_s: float) -> float:
        """Set by how much a channel is shown earlier; return what was really set."""
        ...

    def arm(self) -> None:
        """Start one acquisition of all segments; returns before the trigger."""
        ...

    def collect(self, timeout_s: float) -> Acquisition:
        """Wait for the triggers and read all segments of all channels.

        Raises:
            IncompleteAcquisitionError: No trigger in time, too few segments, clipped, broken off; what was
            acquired is with it (`scope.incomplete`).
        """
        ...

    def close(self) -> None:
        """Disconnect; harmless when it is not connected. The next use connects again."""
        ...


class TimedOutput(Protocol):
    """A pin that makes edges at instants of a clock, whatever software does meanwhile.

    Each pulse is a rising edge at the instant, and a falling one half a period, or 100 us at most, later.
    """

    pin: str
    """As `bw-edge` names it."""
    clock: str
    """The clock that its instants are of, in ns: `phc:/dev/ptp0`, `card`, `tai`."""

    def start_periodic(self, period_ns: int, start_ns: int | None = None) -> int:
        """Make pulses, one a period, until `stop`; return the instant of one of them.

        All others are full periods away from that; those that have passed are left out.

        Args:
            period_ns: From rising edge to rising edge.
            start_ns: Instant of one of them; None: the full periods of the clock.

        Raises:
            BenchError: The tool failed, or pulses are being made already.
            CapabilityError: The pin cannot do that.
        """
        ...

    def stop(self) -> dict[str, object]:
        """Make no more pulses; return the tool's result, {} where none were being made."""
        ...


class EdgeCapture(Protocol):
    """A pin that notes the instants of rising edges."""

    pin: str
    """As `bw-edge` names it."""
    clock: str
    """The clock that its instants are of, as with `TimedOutput`, or `counter`: ticks of the processor's."""

    def start(self, count: int, duration_ms: int) -> None:
        """Begin to note instants; return when it does.

        Args:
            count: Edges after which it ends.
            duration_ms: Time after which it ends, whatever has come.

        Raises:
            BenchError: The tool failed, or instants are being noted already.
            CapabilityError: The pin cannot do that.
        """
        ...

    def collect(self, timeout_s: float) -> CapturedEdges:
        """Wait for the end that was agreed on and return what was seen.

        Raises:
            BenchError: It was not started, has not ended in time, or failed.
        """
        ...

    def stop(self) -> CapturedEdges:
        """End early and return what was seen so far; nothing where it was not started."""
        ...
