# SPDX-License-Identifier: Apache-2.0
"""Edges from files, sockets and other threads; the instrument as a program."""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hw.errors import ConfigError
from hw.virtual.oscilloscope.__main__ import main
from hw.virtual.oscilloscope.edge_lines import SENDERS_MAX, EdgePort, parse_line, read_file
from hw.virtual.oscilloscope.edges import Edge, EndOfEdges, LiveEdges, Progress
from tests.hw.virtual_oscilloscope import test_keysight, test_tektronix
from tests.hw.virtual_oscilloscope.controller import Controller
from tests.patience import HANG_S

# A thread of the instrument that dies is a failure too.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")


def line(time_ps: int, channel: int, rising: bool) -> str:
    fields = {"channel": channel, "time_ns": time_ps // 1000, "fraction_ps": time_ps % 1000, "rising": rising}
    return json.dumps(fields) + "\n"


def pulse(begin_ps: int, delay_ps: int = 37_500) -> str:
    return "".join(
        line(begin_ps + offset_ps, channel, rising)
        for offset_ps, channel, rising in (
            (0, 1, True), (delay_ps, 2, True), (50_000_000, 1, False), (50_000_000 + delay_ps, 2, False)
        )
    )  # fmt: skip


def test_a_line_is_an_edge_or_a_promise():
    assert parse_line(line(1_234_567, 2, False), "x:1") == Edge(1_234_567, 2, False)
    assert parse_line('{"until_ns": 5}', "x:1") == Progress(5000)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("nonsense", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "not an object"),
        ('{"channel":1}', "allowed"),
        (
            '{"channel":0,"time_ns":1,"fraction_ps":0,"rising":true}',
            "channel: 0; allowed: an integer, 1 to 8",
        ),
        ('{"channel":1,"time_ns":-1,"fraction_ps":0,"rising":true}', "time_ns: -1"),
        ('{"channel":1,"time_ns":1.5,"fraction_ps":0,"rising":true}', "time_ns: 1.5"),
        ('{"channel":1,"time_ns":true,"fraction_ps":0,"rising":true}', "time_ns: True"),
        (
            '{"channel":1,"time_ns":1,"fraction_ps":1000,"rising":true}',
            "fraction_ps: 1000; allowed: an integer, 0 to 999",
        ),
        ('{"channel":1,"time_ns":1,"fraction_ps":0,"rising":1}', "rising: 1; allowed: true, false"),
        ('{"until_ns":null}', "until_ns: None"),
    ],
)
def test_a_wrong_line_is_named(text: str, error: str):
    with pytest.raises(ConfigError, match=r"f\.ndjson:3: ") as caught:
        parse_line(text, "f.ndjson:3")
    assert error in str(caught.value)


def test_a_file_is_read_line_by_line(tmp_path: Path):
    file = tmp_path / "edges.ndjson"
    file.write_text(line(5, 1, True) + "\n" + line(6, 1, False))
    assert list(read_file(file)) == [Edge(5, 1, True), Edge(6, 1, False)]
    file.write_text(line(5, 1, True) + "x" * 5000)
    with pytest.raises(ConfigError, match=r"edges\.ndjson:2: longer than 1000"):
        list(read_file(file))
    with pytest.raises(ConfigError, match=r"none\.ndjson"):
        list(read_file(tmp_path / "none.ndjson"))


def test_live_edges_are_limited_and_end():
    edges = LiveEdges(kept=2)
    for number in range(5):
        edges.put(Edge(number, 1, True))
    assert (edges.take(0), edges.take(0), edges.take(0), edges.lost) == (
        Edge(3, 1, True),
        Edge(4, 1, True),
        None,
        3,
    )
    edges.end()
    with pytest.raises(EndOfEdges):
        edges.take(1)


def test_what_happened_before_the_arming_is_not_seen_but_its_level_stays():
    edges = LiveEdges()
    with test_keysight.scope(source=edges) as c:
        for event in (Edge(1_000_000, 1, True), Edge(1_000_000, 2, True)):
            edges.put(event)
        c.write(":SINGle")
        while not int(c.query(":OPERegister:CONDition?")) & 8:
            pass
        for edge in (Edge(2_000_000, 1, False), Edge(3_000_000, 1, True), Edge(3_037_500, 2, False)):
            edges.put(edge)
        edges.put(Progress(10_000_000))
        while int(c.query(":OPERegister:CONDition?")) & 8:
            pass
        c.write(":MEASure:DEFine DELay,+1,-1")
        assert float(c.query(":MEASure:DELay? CHANnel1,CHANnel2")) == pytest.approx(37.5e-9, abs=3e-12)


def test_a_live_source_that_falls_silent_does_not_hold_a_record_up():
    edges = LiveEdges()
    with test_tektronix.scope(source=edges) as c:
        c.write("ACQuire:STATE ON")
        while c.query("ACQuire:STATE?") != "1":
            pass
        edges.put(Edge(2_000_000, 1, True))
        assert c.query("*OPC?;:ACQuire:NUMACq?") == "1;1"


def test_edges_come_in_by_a_port():
    edges = LiveEdges()
    port = EdgePort("127.0.0.1", 0, edges)
    with socket.create_connection(("127.0.0.1", port.port)) as sender:
        sender.sendall(pulse(1_000_000).encode())
        assert [edges.take(HANG_S) for _ in range(4)][1] == Edge(1_037_500, 2, True)
        sender.sendall(b"nonsense\n")
        assert sender.recv(1) == b""
    assert port.refused == 1
    with pytest.raises(ConfigError, match=f"port {port.port}"):
        EdgePort("127.0.0.1", port.port, edges)
    port.close()


def test_the_number_of_senders_is_limited():
    port = EdgePort("127.0.0.1", 0, LiveEdges())
    with contextlib.ExitStack() as stack:
        senders = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port.port), timeout=HANG_S))
            for _ in range(SENDERS_MAX + 1)
        ]
        assert senders[-1].recv(1) == b""
    port.close()


@contextmanager
def program(*arguments: str) -> Generator[tuple[subprocess.Popen[str], dict[str, object]]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "hw.virtual.oscilloscope", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline() or "{}")
    finally:
        process.kill()
        process.communicate()


def test_a_signal_that_a_thread_of_a_library_gets_ends_it_well() -> None:
    """Numpy has begun threads before the program could tell them anything; the kernel may choose any."""
    for place in (0, 1, -1):
        with program("--dialect", "keysight", "--edge-port", "0") as (process, ready):
            assert ready["type"] == "ready"
            threads = sorted(int(name.name) for name in Path(f"/proc/{process.pid}/task").iterdir())
            assert ctypes.CDLL(None).tgkill(process.pid, threads[place], signal.SIGTERM) == 0
            assert process.wait(HANG_S) == 0


@pytest.mark.parametrize(
    ("dialect", "set_up"), [("keysight", test_keysight.SET_UP), ("tektronix", test_tektronix.SET_UP)]
)
def test_the_program_takes_edges_while_they_happen(dialect: str, set_up: tuple[str, ...]):
    with program("--dialect", dialect, "--edge-port", "0", "--noise-v", "0.001") as (process, ready):
        assert ready["type"] == "ready"
        with Controller(int(str(ready["port"]))) as c:
            keysight = dialect == "keysight"
            c.write(*set_up, ":SINGle" if keysight else "ACQuire:STATE ON")
            state = ":RSTate?" if keysight else "ACQuire:STATE?"
            while c.query(state) not in {"RUN", "1"}:
                pass
            with socket.create_connection(("127.0.0.1", int(str(ready["edge_port"])))) as sender:
                sender.sendall((pulse(5_000_000) + '{"until_ns":60000}\n').encode())
                while c.query(state) in {"RUN", "1"}:
                    pass
            assert len(c.blocks(":WAVeform:DATA?" if keysight else "CURVe?")[0]) == 2000
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_S) == 0


def test_the_program_replays_a_file(tmp_path: Path):
    file = tmp_path / "edges.ndjson"
    file.write_text("".join(pulse(n * 1_000_000_000) for n in range(1, 6)))
    with (
        program("--dialect", "keysight", "--edges", str(file), "--skew-ps", "0", "--skew-ps", "500") as (
            _,
            ready,
        ),
        Controller(int(str(ready["port"]))) as c,
    ):
        c.write(*test_keysight.SET_UP, ":ACQuire:MODE SEGMented;SEGMented:COUNt 5", ":DIGitize")
        assert c.query(":WAVeform:SEGMented:COUNt?") == "+5"
        assert float(c.query(":MEASure:DELay? CHANnel1,CHANnel2")) == pytest.approx(38e-9, abs=20e-12)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--address", "8.8.8.8"], "address: 8.8.8.8; allowed"),
        (["--adc-bits", "20"], "--adc-bits: 20; allowed: 6 to 16"),
        (["--noise-v", "nan"], "--noise-v: nan"),
        (["--edges", "none.ndjson"], "--edges: none.ndjson: no such file"),
        (["--channels", "1", "--skew-ps", "1", "--skew-ps", "2"], "--skew-ps"),
    ],
)
def test_the_program_names_what_is_wrong(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["--dialect", "keysight", *arguments]) == 2
    assert error in capsys.readouterr().err
