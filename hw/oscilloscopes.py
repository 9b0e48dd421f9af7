# SPDX-License-Identifier: Apache-2.0
"""Oscilloscopes in a bench file: how each is reached, and which signal is on which input."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path

from hw.errors import ConfigError
from hw.fields import HOST_LABELS, Fields, can_be_looked_up
from scope.budget import InstrumentLimits
from scope.calibration import Calibration, load_calibration
from scope.drivers.identity import Dialect
from scope.errors import CalibrationError
from scope.settings import LARGEST_CHANNEL, ChannelSettings, Coupling, SettingsError

ANY_DIALECT = "any"
BANDWIDTH_LIMITS_MHZ = (1.0, 100_000.0)
DEFAULT_LIBRARY = "@py"
HISLIP_PORT = 4880
VXI11_PORT = 111
"""Of the portmapper, which names the instrument's own."""
LARGEST_JITTER_PS = 1_000_000
VIRTUAL_DIALECTS = {"keysight": Dialect.KEYSIGHT_INFINIIVISION, "tektronix": Dialect.TEKTRONIX_MSO}
"""As `hw.virtual.oscilloscope` names them."""
VIRTUAL_OPTIONS: dict[str, tuple[str, float, float, float]] = {
    "bandwidth_mhz": ("--bandwidth-hz", 1e6, 0.1, 1e6),
    "sample_rate_max_mhz": ("--sample-rate-max-hz", 1e6, 1e-3, 1e6),
    "rise_time_ns": ("--rise-time-ns", 1.0, 0.0, 1e9),
    "noise_mv": ("--noise-v", 1e-3, 0.0, 1e5),
    "time_base_error_ppm": ("--timebase-error-ppm", 1.0, -1000.0, 1000.0),
    "trigger_jitter_ps": ("--trigger-jitter-ps", 1.0, 0.0, 1e9),
}
"""Field of the bench file → option of the program, by what it is multiplied, lowest and highest value."""
RESOURCE_FORMS = "TCPIP::HOST::PORT::SOCKET, TCPIP::HOST::inst0::INSTR or TCPIP::HOST::hislip0[,PORT]::INSTR"

_RESOURCE = re.compile(
    r"TCPIP\d*::(?P<host>[A-Za-z0-9._-]+)"
    r"(?:::(?P<socket>\d{1,5})::SOCKET|(?:::inst\d+|::hislip\d+(?:,(?P<hislip>\d{1,5}))?)?::INSTR)"
)


@dataclass(frozen=True)
class SignalSpec:
    """A signal on an input."""

    channel: ChannelSettings
    level_v: float
    """Voltage at which its edge counts, at the tip of the probe."""
    calibrated_by: tuple[str, ...] = ()
    """Ids of the calibration records of what stands in its way."""


@dataclass(frozen=True)
class VirtualOscilloscopeSpec:
    """An oscilloscope that the project runs by itself, on loopback."""

    dialect: str
    """`keysight` or `tektronix`."""
    address: str
    port: int
    """Of SCPI; from the resource."""
    edge_port: int
    """Where edges are sent while they happen."""
    options: tuple[str, ...] = ()
    """Further options of `python -m hw.virtual.oscilloscope`."""


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
    limits: InstrumentLimits | None = None
    """What its data sheet says; None: no budget of uncertainty can be made."""
    calibration: Calibration = field(default_factory=lambda: Calibration({}))
    virtual: VirtualOscilloscopeSpec | None = None
    """None: an instrument that is there by itself."""

    @property
    def address(self) -> tuple[str, int]:
        """Host and TCP port of the resource."""
        match = _RESOURCE.fullmatch(self.resource)
        assert match is not None
        default = HISLIP_PORT if "::hislip" in self.resource else VXI11_PORT
        return match["host"], int(match["socket"] or match["hislip"] or default)


def read_oscilloscopes(section: Fields, simulated: bool) -> dict[str, OscilloscopeSpec]:
    """Read the optional table `oscilloscopes` of a bench file.

    Args:
        section: The project's section of the bench file.
        simulated: Whether the bench's records are marked so: else a virtual oscilloscope is refused.

    Raises:
        ConfigError: Names file, field and allowed range.
    """
    tables = section.table_of("oscilloscopes", optional=True)
    specs = {name: _oscilloscope(name, table, simulated) for name, table in tables.items()}
    owners: dict[tuple[str, int], str] = {}
    for name, spec in specs.items():
        if spec.virtual is None:
            continue
        ports = {"resource": spec.virtual.port, "virtual.edge_port": spec.virtual.edge_port}
        for key, port in ports.items():
            where = f"{name}.{key}"
            owner = owners.setdefault((spec.virtual.address, port), where)
            if owner != where:
                raise ConfigError(
                    f"{section.file}: {section.table}.oscilloscopes.{where}: its port must be its own,"
                    f" found {port} as {owner}"
                )
    return specs


def _oscilloscope(name: str, table: Fields, simulated: bool) -> OscilloscopeSpec:
    dialect = table.text("dialect", ANY_DIALECT, choices=(ANY_DIALECT, *Dialect))
    calibration = _calibration(table)
    spec = OscilloscopeSpec(
        name=table.check_name("(name)", name),
        resource=_resource(table),
        dialect=None if dialect == ANY_DIALECT else Dialect(dialect),
        library=table.text("library", DEFAULT_LIBRARY),
        timeout_s=table.number("timeout_s", 0.1, 600.0, 5.0),
        signals={
            signal: _signal(signal, fields, calibration)
            for signal, fields in table.table_of("signals").items()
        },
        limits=_limits(table.child("limits", optional=True)),
        calibration=calibration,
        virtual=_virtual(table, table.child("virtual", optional=True), simulated),
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
    if spec.virtual is not None and spec.dialect not in (None, VIRTUAL_DIALECTS[spec.virtual.dialect]):
        raise ConfigError(
            f"{table.file}: {table.table}.dialect: must be {ANY_DIALECT} or"
            f" {VIRTUAL_DIALECTS[spec.virtual.dialect]} with virtual.dialect {spec.virtual.dialect},"
            f" found {spec.dialect}"
        )
    return spec


def _calibration(table: Fields) -> Calibration:
    """Read the file of calibration records; its path is relative to the bench file."""
    text = table.text("calibration", "")
    if not text:
        return Calibration({})
    try:
        return load_calibration(Path(table.file).resolve().parent / text)
    except CalibrationError as error:
        raise ConfigError(f"{table.file}: {table.table}.calibration: {error}") from error


def _limits(table: Fields | None) -> InstrumentLimits | None:
    if table is None:
        return None
    limits = InstrumentLimits(
        time_base_error=table.number("time_base_error_ppm", 0.0, 1000.0) * 1e-6,
        clock_jitter_s=table.number("clock_jitter_ps", 0.0, LARGEST_JITTER_PS) * 1e-12,
        trigger_jitter_s=table.number("trigger_jitter_ps", 0.0, LARGEST_JITTER_PS) * 1e-12,
        skew_s=table.number("skew_ps", 0.0, LARGEST_JITTER_PS) * 1e-12,
    )
    table.finish()
    return limits


def _virtual(scope: Fields, table: Fields | None, simulated: bool) -> VirtualOscilloscopeSpec | None:
    if table is None:
        return None
    if not simulated:
        raise ConfigError(f"{table.file}: {table.table}: only where benchwright.simulated is true")
    match = _RESOURCE.fullmatch(scope.text("resource"))
    if match is None or match["socket"] is None or not _is_loopback(match["host"]):
        raise ConfigError(
            f"{scope.file}: {scope.table}.resource: must be TCPIP::127.0.0.1::PORT::SOCKET of an oscilloscope"
            f" with a virtual section, found {scope.text('resource')!r}"
        )
    options: list[str] = []
    for key, (option, factor, low, high) in VIRTUAL_OPTIONS.items():
        if table.has(key):
            options += [f"{option}={table.number(key, low, high) * factor!r}"]
        else:
            table.number(key, low, high, low)  # a key that is known
    for skew_ps in table.integers("skew_ps", -LARGEST_JITTER_PS, LARGEST_JITTER_PS, ()):
        options += [f"--skew-ps={skew_ps}"]
    spec = VirtualOscilloscopeSpec(
        dialect=table.text("dialect", choices=tuple(VIRTUAL_DIALECTS)),
        address=match["host"],
        port=int(match["socket"]),
        edge_port=table.integer("edge_port", 1, 65535),
        options=(*options, f"--seed={table.integer('seed', 0, 2**31, 1)}"),
    )
    table.finish()
    return spec


def _is_loopback(host: str) -> bool:
    try:
        return IPv4Address(host).is_loopback
    except AddressValueError:
        return False


def _resource(table: Fields) -> str:
    text = table.text("resource")
    match = _RESOURCE.fullmatch(text)
    ports = [] if match is None else [match["socket"], match["hislip"]]
    if (
        match is not None
        and all(1 <= int(port) <= 65535 for port in ports if port is not None)
        and can_be_looked_up(match["host"])
    ):
        return text
    raise ConfigError(
        f"{table.file}: {table.table}.resource: must be {RESOURCE_FORMS},"
        f" the port in 1..65535, {HOST_LABELS}, found {text!r}"
    )


def _signal(name: str, table: Fields, calibration: Calibration) -> SignalSpec:
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
    level_v = table.number("level_v", -10_000.0, 10_000.0, offset_v)
    records = table.texts("calibrated_by", tuple(calibration.records), ())
    spec = SignalSpec(channel, level_v, records)
    table.finish()
    return spec
