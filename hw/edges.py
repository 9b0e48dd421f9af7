# SPDX-License-Identifier: Apache-2.0
"""Pins for timed edges: the table `edges` of a target in a bench file, and what an input has seen.

A pin is named as `bw-edge` names it, KIND:WHERE[,option=number...].
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import Fields


class EdgeRole(StrEnum):
    """What a pin of a target is for."""

    REFERENCE = "reference"  # periodic edges of the PTP hardware clock
    TIMECARD_REFERENCE = "timecard_reference"  # periodic edges of the timecard
    TIMED = "timed"  # edges at instants that software programs beforehand
    SOFTWARE = "software"  # a line that software sets at once
    LATCH = "latch"  # notes counter values of the reference's edges
    CAPTURE = "capture"  # notes PTP hardware clock time of edges


INPUT_ROLES = frozenset({EdgeRole.LATCH, EdgeRole.CAPTURE})

BENCH_CLOCKS = {
    "sdp-out": "phc",
    "card-pps": "card",
    "tgpio-out": "tai",
    "gpio": "tai",
    "tgpio-in": "counter",
    "sdp-in": "phc",
}
"""Pin of a virtual bench's edge device → the clock that its instants are of.

What counts ticks is programmed by an instant of TAI, but notes ticks.
"""
BENCH_INPUTS = frozenset({"tgpio-in", "sdp-in"})

_LARGEST_PTP, _LARGEST_LINE = 255, 65535
_PTP = re.compile(
    r"(?:ptp|tgpio):/dev/ptp\d+(?:,pin=(?P<pin>\d{1,3}))?(?:,channel=(?P<channel>\d{1,3}))?(?:,edges=(?:rising|both))?"
)
_GPIO = re.compile(r"gpio:/dev/gpiochip\d+,line=(?P<line>\d{1,5})")
_PPS = re.compile(r"tgpio-pps:/sys/class/pps-gen/pps-gen\d+")
PIN_FORMS = (
    "ptp:/dev/ptpN[,pin=N][,channel=N][,edges=rising|both], tgpio:/dev/ptpN with the same,"
    " gpio:/dev/gpiochipN,line=N or tgpio-pps:/sys/class/pps-gen/pps-genN,"
    f" each pin and channel in 0..{_LARGEST_PTP}, each line in 0..{_LARGEST_LINE}"
)


@dataclass(frozen=True)
class EdgesSpec:
    """The pins of a target, as `bw-edge` names them; None: it has none for that."""

    reference: str
    timed: str
    timecard_reference: str | None = None
    software: str | None = None
    latch: str | None = None
    capture: str | None = None

    @property
    def pins(self) -> dict[str, str]:
        """The pins by field of the bench file."""
        found = {role.value: self.pin(role) for role in EdgeRole}
        return {role: pin for role, pin in found.items() if pin is not None}

    def pin(self, role: EdgeRole) -> str | None:
        """Return the pin of a role."""
        pin: str | None = getattr(self, role.value)
        return pin


@dataclass(frozen=True)
class CapturedEdges:
    """What an input has seen.

    Attributes:
        edges: (number of the edge, instant in the pin's clock), in order; a gap in the numbers is a loss.
        seen: Edges in all; more than `edges` has where the tool keeps no more.
        result: The tool's `result` line.
        answer: File with all that the tool has said, as evidence.
    """

    edges: tuple[tuple[int, int], ...]
    seen: int
    result: dict[str, object] = field(default_factory=dict[str, object])
    answer: Path | None = None


def read_edges(table: Fields | None) -> EdgesSpec | None:
    """Read the table `edges` of a target.

    Args:
        table: The table; None: it is not there.

    Raises:
        ConfigError: Names file, field and allowed form.
    """
    if table is None:
        return None
    spec = EdgesSpec(
        reference=_pin(table, EdgeRole.REFERENCE),
        timed=_pin(table, EdgeRole.TIMED),
        timecard_reference=_optional_pin(table, EdgeRole.TIMECARD_REFERENCE),
        software=_optional_pin(table, EdgeRole.SOFTWARE),
        latch=_optional_pin(table, EdgeRole.LATCH),
        capture=_optional_pin(table, EdgeRole.CAPTURE),
    )
    table.finish()
    owners: dict[str, str] = {}
    for role, pin in spec.pins.items():
        if owners.setdefault(pin, role) != role:
            raise ConfigError(
                f"{table.file}: {table.table}.{role}: must be its own pin, found {pin} as {owners[pin]}"
            )
    return spec


def _optional_pin(table: Fields, role: EdgeRole) -> str | None:
    if not table.has(role.value):
        table.text(role.value, "")  # a key that is known
        return None
    return _pin(table, role)


def _pin(table: Fields, role: EdgeRole) -> str:
    pin = table.text(role.value)
    if not _fits(pin, role in INPUT_ROLES):
        raise ConfigError(f"{table.file}: {table.table}.{role.value}: must be {_forms(role)}, found {pin!r}")
    return pin


def _fits(pin: str, is_input: bool) -> bool:
    kind, _, name = pin.partition(":")
    if kind == "bench":
        return name in BENCH_CLOCKS and (name in BENCH_INPUTS) is is_input
    if _PPS.fullmatch(pin):
        return not is_input
    for form, largest in ((_PTP, _LARGEST_PTP), (_GPIO, _LARGEST_LINE)):
        match = form.fullmatch(pin)
        if match is not None:
            return all(int(number or 0) <= largest for number in match.groups())
    return False


def _forms(role: EdgeRole) -> str:
    is_input = role in INPUT_ROLES
    names = [f"bench:{name}" for name in BENCH_CLOCKS if (name in BENCH_INPUTS) is is_input]
    forms = PIN_FORMS.replace(" or tgpio-pps:/sys/class/pps-gen/pps-genN", "") if is_input else PIN_FORMS
    forms = forms.replace("same, gpio:", "same or gpio:") if is_input else forms
    return f"{', '.join(names)}, {forms}"


def pin_clock(pin: str, ptp_clock: str = "", *, is_input: bool = False) -> str:
    """Return the clock that the instants of a pin are of.

    Args:
        pin: As `bw-edge` names it.
        is_input: What counts ticks is programmed by an instant of TAI, but notes ticks.
        ptp_clock: The target's PTP hardware clock, of which the edge device's pins are.

    Returns:
        `phc:DEVICE`, `card`, `tai`, or `counter`: instants are ticks.
    """
    kind, _, rest = pin.partition(":")
    if kind == "ptp":
        return f"phc:{rest.partition(',')[0]}"
    if kind == "bench":
        clock = BENCH_CLOCKS[rest]
        return f"phc:{ptp_clock}" if clock == "phc" else clock
    return "counter" if kind == "tgpio" and is_input else "tai"
