# SPDX-License-Identifier: Apache-2.0
"""Oscilloscopes of a bench file: what they say, what is refused, and how one is opened."""

from __future__ import annotations

import copy
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from hw.bench import load_bench
from hw.drivers.oscilloscope import connect
from hw.errors import BenchError, ConfigError
from hw.oscilloscopes import VIRTUAL_OPTIONS, OscilloscopeSpec
from hw.virtual.oscilloscope.__main__ import make_parser, read_hardware
from scope.drivers.identity import Dialect
from scope.settings import Coupling
from tests.scope.transcript import TranscriptServer

VIRTUAL = Path(__file__).resolve().parents[2] / "hw" / "benches" / "virtual.yaml"
ENTRY: dict[str, Any] = {
    "resource": "TCPIP::192.0.2.7::5025::SOCKET",
    "dialect": "keysight-infiniivision",
    "timeout_s": 10,
    "signals": {
        "reference": {"channel": 1, "scale_v_per_div": 0.5, "offset_v": 1.65, "probe_ratio": 10},
        "edge": {
            "channel": 3,
            "scale_v_per_div": 0.5,
            "offset_v": 1.65,
            "level_v": 1.2,
            "coupling": "ac",
            "termination_ohm": 50,
            "bandwidth_limit_mhz": 20,
            "deskew_ps": -1680,
        },
    },
}


def _load(tmp_path: Path, entry: object) -> dict[str, OscilloscopeSpec]:
    document = yaml.safe_load(VIRTUAL.read_text())
    document["benchwright"]["oscilloscopes"] = {"scope-a": entry}
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return load_bench(path).oscilloscopes


def _set(table: dict[str, Any], path: str, value: object) -> None:
    *above, key = path.split(".")
    for step in above:
        table = table[step]
    table[key] = value


def test_reads_an_oscilloscope(tmp_path: Path) -> None:
    spec = _load(tmp_path, ENTRY)["scope-a"]
    assert (spec.name, spec.resource) == ("scope-a", "TCPIP::192.0.2.7::5025::SOCKET")
    assert (spec.dialect, spec.library, spec.timeout_s) == (Dialect.KEYSIGHT_INFINIIVISION, "@py", 10.0)
    reference, edge = spec.signals["reference"], spec.signals["edge"]
    assert (reference.channel.number, reference.channel.probe_ratio) == (1, 10.0)
    assert reference.level_v == 1.65
    assert reference.channel.bandwidth_limit_hz is None
    assert reference.channel.termination_ohm == 1_000_000
    assert edge.level_v == 1.2
    assert (edge.channel.coupling, edge.channel.termination_ohm) == (Coupling.AC, 50)
    assert edge.channel.bandwidth_limit_hz == 20e6
    assert edge.channel.deskew_s == pytest.approx(-1.68e-9)


@pytest.mark.parametrize(
    "resource",
    [
        "TCPIP::scope-a.lab::4000::SOCKET",
        "TCPIP0::192.0.2.7::INSTR",
        "TCPIP::192.0.2.7::inst0::INSTR",
        "TCPIP::192.0.2.7::hislip0::INSTR",
        "TCPIP::192.0.2.7::hislip0,4881::INSTR",
    ],
)
def test_reads_every_form_of_address(tmp_path: Path, resource: str) -> None:
    assert _load(tmp_path, {**ENTRY, "resource": resource})["scope-a"].resource == resource


@pytest.mark.parametrize(
    ("path", "value", "wanted"),
    [
        ("resource", "192.0.2.7", "TCPIP::HOST::PORT::SOCKET"),
        ("resource", "TCPIP::192.0.2.7::65536::SOCKET", "the port in 1..65535"),
        ("resource", f"TCPIP::192.0.2.7::{'1' * 5000}::SOCKET", "the port in 1..65535"),
        ("resource", "TCPIP::scope..lab::5025::SOCKET", "each label of HOST of 1..63 characters"),
        ("resource", f"TCPIP::{64 * 's'}::inst0::INSTR", "each label of HOST of 1..63 characters"),
        ("resource", "TCPIP::192.0.2.7::SOCKET", "TCPIP::HOST::PORT::SOCKET"),
        ("resource", "USB0::1::2::3::INSTR", "TCPIP::HOST::PORT::SOCKET"),
        ("dialect", "scpi", "one of any, keysight-infiniivision, tektronix-mso"),
        ("timeout_s", 0, "a number in 0.1..600.0"),
        ("signals", {}, "at least one signal"),
        ("colour", "blue", "unknown key"),
        ("signals.edge.channel", 1, "its own, found 1 as reference"),
        ("signals.edge.channel", 9, "an integer in 1..8"),
        ("signals.edge.scale_v_per_div", 0, "a number in"),
        ("signals.edge.coupling", "gnd", "one of dc, ac"),
        ("signals.edge.termination_ohm", 75, "must be 50 or 1000000"),
        ("signals.edge.deskew_ps", 100_001, "an integer in -100000..100000"),
        ("signals.edge.bandwidth_limit_mhz", 0.5, "a number in 1.0..100000.0"),
        ("signals.edge.level", 1.0, "unknown key"),
    ],
)
def test_refuses_a_wrong_value(tmp_path: Path, path: str, value: object, wanted: str) -> None:
    entry = copy.deepcopy(ENTRY)
    _set(entry, path, value)
    with pytest.raises(ConfigError) as refused:
        _load(tmp_path, entry)
    where = path if "termination" not in path else "signals.edge"
    assert f"benchwright.oscilloscopes.scope-a.{where}: " in str(refused.value)
    assert wanted in str(refused.value)


VIRTUAL_ENTRY: dict[str, Any] = {
    "resource": "TCPIP::127.0.0.1::4025::SOCKET",
    "dialect": "keysight-infiniivision",
    "virtual": {
        "dialect": "keysight",
        "edge_port": 4035,
        "noise_mv": 2,
        "bandwidth_mhz": 500,
        "skew_ps": [0, 9],
    },
    "signals": {"edge": {"channel": 1, "scale_v_per_div": 0.5}},
}


def test_reads_a_virtual_oscilloscope(tmp_path: Path) -> None:
    virtual = _load(tmp_path, VIRTUAL_ENTRY)["scope-a"].virtual
    assert virtual is not None
    assert (virtual.dialect, virtual.address) == ("keysight", "127.0.0.1")
    assert (virtual.port, virtual.edge_port) == (4025, 4035)
    arguments = make_parser().parse_args([f"--dialect={virtual.dialect}", *virtual.options])
    machine = read_hardware(arguments)
    assert machine.bandwidth_hz == 500e6
    assert [signal.noise_v for signal in machine.signals] == [2e-3] * 4
    assert [signal.skew_ps for signal in machine.signals] == [0, 9, 0, 0]


def test_every_field_of_a_virtual_oscilloscope_is_an_option_of_the_program() -> None:
    for option, factor, low, high in VIRTUAL_OPTIONS.values():
        for value in (low, high):
            read_hardware(make_parser().parse_args(["--dialect=keysight", f"{option}={value * factor!r}"]))


@pytest.mark.parametrize(
    ("path", "value", "wanted"),
    [
        ("resource", "TCPIP::192.0.2.7::4025::SOCKET", "TCPIP::127.0.0.1::PORT::SOCKET"),
        ("resource", "TCPIP::127.0.0.1::inst0::INSTR", "TCPIP::127.0.0.1::PORT::SOCKET"),
        ("dialect", "tektronix-mso", "any or keysight-infiniivision with virtual.dialect keysight"),
        ("virtual.dialect", "lecroy", "one of keysight, tektronix"),
        ("virtual.edge_port", 0, "an integer in 1..65535"),
        ("virtual.edge_port", 4025, "its port must be its own, found 4025 as scope-a.resource"),
        ("virtual.noise_mv", -1, "a number in 0.0..100000.0"),
        ("virtual.skew_ps", 3, "a list of integers"),
        ("virtual.colour", "blue", "unknown key"),
        ("virtual", None, "a table of keys"),
    ],
)
def test_refuses_a_wrong_virtual_oscilloscope(tmp_path: Path, path: str, value: object, wanted: str) -> None:
    entry = copy.deepcopy(VIRTUAL_ENTRY)
    _set(entry, path, value)
    with pytest.raises(ConfigError) as refused:
        _load(tmp_path, entry)
    assert f"benchwright.oscilloscopes.scope-a.{path}: " in str(refused.value)
    assert wanted in str(refused.value)


def test_a_virtual_oscilloscope_is_for_simulated_benches_only(tmp_path: Path) -> None:
    document = yaml.safe_load(VIRTUAL.with_name("example-hardware.yaml").read_text())
    document["benchwright"]["oscilloscopes"] = {"scope-a": VIRTUAL_ENTRY}
    path = tmp_path / "bench.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ConfigError, match=r"scope-a\.virtual: only where benchwright\.simulated is true"):
        load_bench(path)


LIMITS: dict[str, float] = {
    "time_base_error_ppm": 1.6,
    "clock_jitter_ps": 5,
    "trigger_jitter_ps": 30,
    "skew_ps": 150,
}


def test_reads_the_limits_of_the_data_sheet(tmp_path: Path) -> None:
    assert _load(tmp_path, ENTRY)["scope-a"].limits is None
    limits = _load(tmp_path, {**ENTRY, "limits": LIMITS})["scope-a"].limits
    assert limits is not None
    assert limits.time_base_error == pytest.approx(1.6e-6)
    found = (limits.clock_jitter_s, limits.trigger_jitter_s, limits.skew_s)
    assert found == pytest.approx((5e-12, 30e-12, 150e-12))


@pytest.mark.parametrize("key", LIMITS)
def test_refuses_limits_that_are_not_whole(tmp_path: Path, key: str) -> None:
    where = f"benchwright.oscilloscopes.scope-a.limits.{key}: "
    for value, wanted in ((-1, "a number in 0.0..1000"), ("5 ps", "a number in 0.0..1000")):
        with pytest.raises(ConfigError, match=where + ".*" + wanted):
            _load(tmp_path, {**ENTRY, "limits": {**LIMITS, key: value}})
    missing = {name: value for name, value in LIMITS.items() if name != key}
    with pytest.raises(ConfigError, match=where + "missing"):
        _load(tmp_path, {**ENTRY, "limits": missing})


CALIBRATION = """
schema = "benchwright.scope-calibration/1"
[[record]]
id = "cable-3"
kind = "cable_delay"
delay_ps = 1200.0
uncertainty_ps = 3.0
uncertainty_kind = "standard"
date = 2026-01-10
expires = 2027-01-10
source = "this test"
"""


def test_reads_calibration_records_beside_the_bench_file(tmp_path: Path) -> None:
    (tmp_path / "scope.toml").write_text(CALIBRATION)
    entry = copy.deepcopy({**ENTRY, "calibration": "scope.toml"})
    _set(entry, "signals.edge.calibrated_by", ["cable-3"])
    spec = _load(tmp_path, entry)["scope-a"]
    assert spec.signals["edge"].calibrated_by == ("cable-3",)
    assert spec.signals["reference"].calibrated_by == ()
    assert spec.calibration.records["cable-3"].delay_s == pytest.approx(1.2e-9)


@pytest.mark.parametrize(
    ("calibration", "records", "wanted"),
    [
        ("absent.toml", ["cable-3"], r"scope-a\.calibration: .*absent\.toml.*No such file"),
        ("broken.toml", ["cable-3"], r"scope-a\.calibration: .*broken\.toml: schema"),
        (
            "scope.toml",
            ["cable-4"],
            r"signals\.edge\.calibrated_by: must be a list of cable-3, found 'cable-4'",
        ),
        ("", ["cable-3"], r"signals\.edge\.calibrated_by: must be a list of nothing, found 'cable-3'"),
        ("scope.toml", "cable-3", r"signals\.edge\.calibrated_by: must be a list of cable-3"),
    ],
)
def test_refuses_calibration_records_that_are_not_there(
    tmp_path: Path, calibration: str, records: object, wanted: str
) -> None:
    (tmp_path / "scope.toml").write_text(CALIBRATION)
    (tmp_path / "broken.toml").write_text("")
    entry = copy.deepcopy({**ENTRY, "calibration": calibration})
    _set(entry, "signals.edge.calibrated_by", records)
    with pytest.raises(ConfigError, match=wanted):
        _load(tmp_path, entry)


def _spec(resource: str) -> OscilloscopeSpec:
    return OscilloscopeSpec("scope-a", resource, None, "@py", 0.5, {})


def test_opens_what_the_bench_file_names() -> None:
    reply = (
        '> *IDN?\n< KEYSIGHT TECHNOLOGIES,MSO-X 3054T,MY1,07.40\n> *CLS\n> :SYSTem:ERRor?\n< +0,"No error"'
    )
    with TranscriptServer(reply) as server:
        oscilloscope = connect(_spec(server.resource))
        assert str(oscilloscope.identity) == "KEYSIGHT TECHNOLOGIES,MSO-X 3054T,MY1,07.40"
        oscilloscope.close()


def test_nobody_there_is_the_benchs_fault() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(BenchError, match=r"oscilloscope scope-a \(TCPIP::127\.0\.0\.1::\d+::SOCKET\): "):
        connect(_spec(f"TCPIP::127.0.0.1::{port}::SOCKET"))
