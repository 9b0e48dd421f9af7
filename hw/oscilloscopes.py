# SPDX-License-Identifier: Apache-2.0
"""Oscilloscopes in a bench file: how each is reached, and which signal is on which input."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hw.errors import ConfigError
from hw.fields import Fields
from scope.drivers.identity import Dialect
from scope.settings import LARGEST_CHANNEL, ChannelSettings, Coupling, SettingsError

ANY_DIALECT = "any"
BANDWIDTH_LIMITS_MHZ = (1.0, 100_000.0)
DEFAULT_LIBRARY = "@py"
RESOURCE_FORMS = "TCPIP::HOST::PORT::SOCKET, TCPIP::HOST::inst0::INSTR or TCPIP::HOST::hislip0[,PORT]::INSTR"

_RESOURCE = re.compile(
    r"TCPIP\d*::[A-Za-z0-9._-]+"
    r"(?:::(?P<socket>\d+)::SOCKET|(?:::inst\d+|::hislip\d+(?:,(?P<hislip>\d+))?)?::INSTR)"
)


@dataclass(frozen=True)
class SignalSpec:
    """A signal on an input."""

    channel: ChannelSettings
    level_v: float
    """Voltage at which its edge counts, at the tip of the probe."""


@dataclass(frozen=True)
class OscilloscopeSpec:
    """An oscilloscope of the bench."""

    name: str
    resource: str
    """VISA resource name."""
    dialect: Dialect | None
    """The dialect that it has to speak; None: whichever it does."""
    library: str
    """VISA library of this machine; `@py` is pyvisa-py."""
    timeout_s: float
    signals: dict[str, SignalSpec]
    """By the names that suites use, such as `reference` and `edge`."""


def read_oscilloscopes(section: Fields) -> dict[str, OscilloscopeSpec]:
    """Read the optional table `oscilloscopes` of a bench file.

    Raises:
        ConfigError: Names file, field and allowed range.
    """
    tables = section.table_of("oscilloscopes", optional=True)
    return {name: _oscilloscope(name, table) for name, table in tables.items()}


def _oscilloscope(name: str, table: Fields) -> OscilloscopeSpec:
    dialect = table.text("dialect", ANY_DIALECT, choices=(ANY_DIALECT, *Dialect))
    spec = OscilloscopeSpec(
        name=table.check_name("(name)", name),
        resource=_resource(table),
        dialect=None if dialect == ANY_DIALECT else Dialect(dialect),
        library=table.text("library", DEFAULT_LIBRARY),
        timeout_s=table.number("timeout_s", 0.1, 600.0, 5.0),
        signals={signal: _signal(signal, fields) for signal, fields in table.table_of("signals").items()},
    )
    table.finish()
    if not spec.signals:
        raise ConfigError(f"{table.file}: {table.table}.signals: must name at least one signal")
    owners: dict[int, str] = {}
    for signal, entry in spec.signals.items():
        owner = owners.setdefault(entry.channel.number, signal)
        if owner != signal:
            raise ConfigError(
                f"{table.file}: {table.table}.signals.{signal}.channel: must be its own, found"
                f" {entry.channel.number} as {owner}"
            )
    return spec


def _resource(table: Fields) -> str:
    text = table.text("resource")
    match = _RESOURCE.fullmatch(text)
    if match is not None and all(1 <= int(port) <= 65535 for port in match.groups() if port is not None):
        return text
    raise ConfigError(
        f"{table.file}: {table.table}.resource: must be {RESOURCE_FORMS},"
        f" the port in 1..65535, found {text!r}"
    )


def _signal(name: str, table: Fields) -> SignalSpec:
    table.check_name("(name)", name)
    offset_v = table.number("offset_v", -10_000.0, 10_000.0, 0.0)
    limit_mhz = table.number("bandwidth_limit_mhz", *BANDWIDTH_LIMITS_MHZ, default=BANDWIDTH_LIMITS_MHZ[1])
    try:
        channel = ChannelSettings(
            number=table.integer("channel", 1, LARGEST_CHANNEL),
            scale_v_per_div=table.number("scale_v_per_div", 1e-4, 1000.0),
            offset_v=offset_v,
            coupling=Coupling(table.text("coupling", Coupling.DC.value, choices=tuple(Coupling))),
            termination_ohm=table.integer("termination_ohm", 50, 1_000_000, 1_000_000),
            probe_ratio=table.number("probe_ratio", 1e-3, 1e4, 1.0),
            bandwidth_limit_hz=limit_mhz * 1e6 if table.has("bandwidth_limit_mhz") else None,
            deskew_s=table.integer("deskew_ps", -100_000, 100_000, 0) / 1e12,
        )
    except SettingsError as error:
        raise ConfigError(f"{table.file}: {table.table}: {error}") from error
    spec = SignalSpec(channel, table.number("level_v", -10_000.0, 10_000.0, offset_v))
    table.finish()
    return spec
