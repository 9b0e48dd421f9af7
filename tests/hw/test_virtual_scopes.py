# SPDX-License-Identifier: Apache-2.0
"""Virtual oscilloscopes of a bench: the session starts them, and none outlives it, however it ends."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from bench.lab.killed_run import MARK, marked_processes
from hw.errors import BenchError, CapabilityError
from hw.session import RUN_FOLDER, open_bench
from scope.delay import DelayMeter
from scope.settings import OscilloscopeSettings, TimebaseSettings, TriggerSettings
from tests.patience import wait_until

pytestmark = [pytest.mark.simulated, pytest.mark.timed]

BENCH = """
benchwright:
  schema: benchwright.bench/1
  name: {name}
  simulated: true
  reference_clock: host
  nodes: {{host: {{kind: local, clock: host}}}}
  clocks: {{host: {{node: host, address: 127.0.0.1}}}}
  targets: {{}}
  producers: {{}}
  oscilloscopes:
    first:
      resource: TCPIP::127.0.0.1::{ports[0]}::SOCKET
      dialect: keysight-infiniivision
      virtual: {{dialect: keysight, edge_port: {ports[1]}, noise_mv: 3, skew_ps: [0, 500]}}
      signals: &signals
        reference: {{channel: 1, scale_v_per_div: 0.5, offset_v: 1.65}}
        edge: {{channel: 2, scale_v_per_div: 0.5, offset_v: 1.65}}
    second:
      resource: TCPIP::127.0.0.1::{ports[2]}::SOCKET
      virtual: {{dialect: tektronix, edge_port: {ports[3]}, noise_mv: 3, skew_ps: [0, 500]}}
      signals: *signals
    real:
      resource: TCPIP::127.0.0.1::1::SOCKET
      signals: *signals
"""
OWN = f"virtual-scopes-{os.getpid()}"
RUN = """
import sys, time
from pathlib import Path
from hw.session import open_bench

with open_bench(Path(sys.argv[1])) as bench:
    bench.instruments.edge_port("first")
    sleep = [sys.executable, "-c", "import time; time.sleep(600)", sys.argv[1]]
    bench.host.start(sleep, Path(sys.argv[2]))
    print("open", flush=True)
    time.sleep(600)
"""
SEGMENTS = 20
DELAY_PS = 4_000
SKEW_PS = 500


def _free_ports(count: int) -> list[int]:
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(holder.getsockname()[1]) for holder in holders]
    for holder in holders:
        holder.close()
    return ports


@pytest.fixture
def bench_file(tmp_path: Path) -> Generator[Path]:
    """Return a bench of this machine alone with two virtual oscilloscopes and one that does not answer."""
    name = f"bwx-scope-{os.getpid()}"
    path = tmp_path / "bench.yaml"
    path.write_text(BENCH.format(name=name, ports=_free_ports(4)))
    yield path
    (RUN_FOLDER / f"{name}.lock").unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def _mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mark what this test starts, as its children inherit it."""
    monkeypatch.setenv(MARK, OWN)


def _scopes(argument: str = "hw.virtual.oscilloscope") -> set[int]:
    """Return the process ids of what this test has started with an argument: its oscilloscopes."""
    words = {pid: command.split() for pid, command in marked_processes(OWN).items()}
    return {pid for pid, each in words.items() if argument in each and "setpriv" not in each[0]}


def _send_edges(address: tuple[str, int], stop: threading.Event) -> None:
    with socket.create_connection(address) as sender:
        start_ns = 1_000_000_000
        while not stop.wait(0.002):  # how often it sends
            for rising, later_ns in ((True, 0), (False, 100_000)):
                for channel, shift_ps in ((1, 0), (2, DELAY_PS)):
                    time_ns, fraction_ps = divmod((start_ns + later_ns) * 1000 + shift_ps, 1000)
                    edge = {"channel": channel, "time_ns": time_ns, "fraction_ps": fraction_ps}
                    sender.sendall(json.dumps({**edge, "rising": rising}).encode() + b"\n")
            sender.sendall(json.dumps({"until_ns": start_ns + 500_000}).encode() + b"\n")
            start_ns += 1_000_000


@pytest.mark.parametrize("name", ["first", "second"])
def test_edges_of_the_bench_are_seen_by_the_driver(bench_file: Path, name: str) -> None:
    before = _scopes()
    with open_bench(bench_file) as bench:
        assert _scopes() == before  # nothing runs that nobody has asked for
        spec = bench.spec.oscilloscopes[name]
        assert spec.virtual is not None
        address = bench.instruments.edge_port(name)
        assert address == ("127.0.0.1", spec.virtual.edge_port)
        stop = threading.Event()
        sender = threading.Thread(target=_send_edges, args=(address, stop))
        sender.start()
        try:
            scope = bench.instruments.oscilloscope(name)
            channels = tuple(signal.channel for signal in spec.signals.values())
            trigger = TriggerSettings(1, spec.signals["reference"].level_v)
            scope.configure(OscilloscopeSettings(channels, TimebaseSettings(400e-9), trigger, SEGMENTS))
            scope.arm()
            meter = DelayMeter(1, 2)
            meter.add(scope.collect(20.0))
            scope.close()
        finally:
            stop.set()
            sender.join()
        result = meter.result()
        assert result is not None
        assert result.counts.pairs == SEGMENTS
        assert result.delays.mean_s == pytest.approx((DELAY_PS + SKEW_PS) * 1e-12, abs=50e-12)
        assert len(_scopes() - before) == 1
    assert _scopes() == before


def test_it_outlives_the_thread_that_asked_for_it(bench_file: Path) -> None:
    """Keywords with a time-out run in threads of their own."""
    with open_bench(bench_file) as bench:
        thread = threading.Thread(target=bench.instruments.edge_port)
        thread.start()
        thread.join()
        time.sleep(0.3)
        scope = bench.instruments.oscilloscope("first")
        assert "MSO-X" in str(scope.identity) or "KEYSIGHT" in str(scope.identity)
        scope.close()


def test_a_killed_session_leaves_no_process(bench_file: Path, tmp_path: Path) -> None:
    before = _scopes()
    command = [sys.executable, "-c", RUN, str(bench_file), str(tmp_path / "tool")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        assert len(_scopes() - before) == 1
        assert len(_scopes(str(bench_file))) == 2  # the run, and its tool outside of all namespaces
        process.kill()
    wait_until(lambda: not (_scopes() - before or _scopes(str(bench_file))), "the end of what was killed")
    with open_bench(bench_file) as bench:  # and its ports are free again
        bench.instruments.edge_port("first")


def test_a_port_in_use_is_named(bench_file: Path) -> None:
    with open_bench(bench_file) as bench:
        virtual = bench.spec.oscilloscopes["first"].virtual
        assert virtual is not None
        with (
            socket.create_server(("127.0.0.1", virtual.edge_port)),
            pytest.raises(
                BenchError, match=rf"oscilloscope first: .*port {virtual.edge_port}: Address already"
            ),
        ):
            bench.instruments.edge_port("first")


def test_a_real_one_is_not_started(bench_file: Path) -> None:
    before = _scopes()
    with open_bench(bench_file) as bench:
        assert bench.instruments.edge_port("real") is None
        with pytest.raises(CapabilityError, match="no oscilloscope third"):
            bench.instruments.edge_port("third")
        with pytest.raises(BenchError, match="oscilloscope real "):
            bench.instruments.oscilloscope("real")
        assert _scopes() == before
