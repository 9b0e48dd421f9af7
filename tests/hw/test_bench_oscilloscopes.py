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
from hw.oscilloscopes import OscilloscopeSpec
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
    table = entry
    *above, key = path.split(".")
    for step in above:
        table = table[step]
    table[key] = value
    with pytest.raises(ConfigError) as refused:
        _load(tmp_path, entry)
    where = path if "termination" not in path else "signals.edge"
    assert f"benchwright.oscilloscopes.scope-a.{where}: " in str(refused.value)
    assert wanted in str(refused.value)


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
