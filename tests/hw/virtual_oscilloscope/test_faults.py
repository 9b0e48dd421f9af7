# SPDX-License-Identifier: Apache-2.0
"""Defects on demand, and bad input of any kind."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable

import pytest

from hw.errors import ConfigError
from hw.virtual.oscilloscope.dialect import Dialect
from hw.virtual.oscilloscope.edges import ReplayedEdges
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.keysight.instrument import InfiniiVision
from hw.virtual.oscilloscope.server import CONNECTIONS_MAX, Server, check_address
from hw.virtual.oscilloscope.tektronix.instrument import FiveSeries
from tests.hw.virtual_oscilloscope import test_keysight, test_tektronix
from tests.hw.virtual_oscilloscope.controller import Controller, ImpatientLink, hardware, pulses

# A thread of the instrument that dies is a failure too.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

FUZZ_MESSAGES = 3000

DIALECTS: list[tuple[Callable[..., Dialect], tuple[str, ...], str]] = [
    (InfiniiVision, (*test_keysight.SET_UP, ":DIGitize"), ":WAVeform:DATA?"),
    (FiveSeries, (*test_tektronix.SET_UP, "ACQuire:STATE ON", "*WAI"), "CURVe?"),
]
both = pytest.mark.parametrize(("make", "acquire", "transfer"), DIALECTS, ids=["keysight", "tektronix"])


@both
def test_another_identity(make: Callable[..., Dialect], acquire: tuple[str, ...], transfer: str):
    faults = {Fault.WRONG_IDENTITY}
    with Server(make(hardware(), ReplayedEdges(pulses()), faults)) as server, Controller(server.port) as c:
        assert c.query("*IDN?") == "ACME,MODEL 7,0,0"
        faults.clear()
        assert "ACME" not in c.query("*IDN?")


@both
def test_a_transfer_that_stops_half_way(
    make: Callable[..., Dialect], acquire: tuple[str, ...], transfer: str
):
    instrument = make(hardware(), ReplayedEdges(pulses()), {Fault.STALLED_TRANSFER})
    with Server(instrument) as server, Controller(server.port) as c:
        c.write(*acquire, transfer)
        assert len(c.read(1000)) == 1000
        c.expect_fewer(1100)


@both
def test_a_block_that_is_none(make: Callable[..., Dialect], acquire: tuple[str, ...], transfer: str):
    instrument = make(hardware(), ReplayedEdges(pulses()), {Fault.GARBAGE_BLOCK})
    with Server(instrument) as server, Controller(server.port) as c:
        c.write(*acquire, transfer)
        assert c.read(3) == b"#Z?"


def test_fewer_frames_than_asked_for():
    faults = {Fault.FEWER_FRAMES}
    with test_keysight.scope(faults=faults) as c:
        c.write(":ACQuire:MODE SEGMented;SEGMented:COUNt 10", ":DIGitize")
        assert c.query(":ACQuire:SEGMented:COUNt?;:WAVeform:SEGMented:COUNt?") == "+10;+5"
    with test_tektronix.scope(faults=faults) as c:
        c.write("HORizontal:FASTframe:STATE ON;COUNt 10")
        test_tektronix.acquire(c)
        assert c.query("ACQuire:NUMFRAMESACQuired?") == "5"
        assert len(c.blocks("CURVe?")) == 5


def test_no_trigger():
    with test_keysight.scope(faults={Fault.NO_TRIGGER}) as c:
        c.write(":SINGle")
        assert c.query(":OPERegister:CONDition?") == "+8"
        c.write(":STOP")
        assert c.query(":OPERegister:CONDition?;:TER?") == "+0;0"
    with test_tektronix.scope(faults={Fault.NO_TRIGGER}) as c:
        c.write("ACQuire:STATE ON")
        assert c.query("ACQuire:STATE?;NUMACq?") == "1;0"
        c.write("ACQuire:STATE OFF")
        assert c.query("ACQuire:STATE?") == "0"


def fuzzed_message(generator: random.Random, headers: list[str]) -> bytes:
    """Return noise, or commands with parameters that are likely to be near a limit, or mutilated commands."""
    if generator.random() < 0.2:
        return generator.randbytes(generator.randrange(40))
    values = [
        "",
        " 1",
        " 0",
        " -1",
        " 1E99",
        " MAX",
        " ON",
        " CHAN2",
        " CH2",
        ' "a;b"',
        " 1,2,3",
        "?",
        "? 1",
        " #15abcde",
    ]
    units = [
        generator.choice(headers).replace("<n>", str(generator.randrange(6))) + generator.choice(values)
        for _ in range(generator.randrange(1, 4))
    ]
    message = bytearray(generator.choice([";", ";:", " ; "]).join(units).encode())
    if generator.random() < 0.3:
        message[generator.randrange(len(message))] = generator.randrange(256)
    return bytes(message)


@both
def test_no_input_ends_the_instrument(make: Callable[..., Dialect], acquire: tuple[str, ...], transfer: str):
    instrument = make(hardware(memory_samples=20_000), ReplayedEdges(pulses()), set())
    added: list[str] = []
    add = type(instrument.commands).add

    def collect(tree: object, pattern: str, **handlers: object) -> None:
        added.append(pattern)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(instrument.commands), "add", collect)
        make(hardware(), ReplayedEdges(()), set())
    assert type(instrument.commands).add is add
    headers = [":" + pattern for pattern in added if not pattern.startswith("*")]
    assert len(headers) > 60
    generator = random.Random(4)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = ImpatientLink(ours, lambda: False)
        for _ in range(FUZZ_MESSAGES):
            message = fuzzed_message(generator, headers).replace(b"\n", b"")
            if generator.random() < 0.1:
                message = generator.choice((*acquire, transfer)).encode()
            instrument.handle(message, link)
        instrument.handle(b"*CLS;*RST", link)
        assert instrument.handle(b"*IDN?", link)
    instrument.close()


def test_the_number_of_connections_is_limited():
    with Server(InfiniiVision(hardware(), ReplayedEdges(pulses()), set())) as server:
        connections = [Controller(server.port) for _ in range(CONNECTIONS_MAX)]
        assert all(c.query("*OPC?") == "1" for c in connections)
        with Controller(server.port) as further:
            assert further.read(1) == b""
        for c in connections:
            c.__exit__(None, None, None)


@pytest.mark.parametrize("address", ["0.0.0.0", "8.8.8.8", "localhost", "::1", ""])  # noqa: S104
def test_it_listens_to_nobody_outside(address: str):
    with pytest.raises(ConfigError, match="address"):
        check_address(address)


def test_a_port_in_use_is_an_error():
    instrument = InfiniiVision(hardware(), ReplayedEdges(pulses()), set())
    with Server(instrument) as server, pytest.raises(ConfigError, match=f"port {server.port}"):
        Server(instrument, port=server.port)
