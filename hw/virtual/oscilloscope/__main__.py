# SPDX-License-Identifier: Apache-2.0
"""A virtual oscilloscope as a program: `python -m hw.virtual.oscilloscope --dialect keysight`.

It prints one NDJSON line, `{"type":"ready",...}`, with its ports; SIGTERM or SIGINT end it, with exit code 0.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from hw.errors import BenchwrightError, ConfigError
from hw.virtual.oscilloscope.edge_lines import CHANNELS_MAX, EdgePort, read_file
from hw.virtual.oscilloscope.edges import EdgeSource, LiveEdges, ReplayedEdges
from hw.virtual.oscilloscope.faults import Fault
from hw.virtual.oscilloscope.front_end import Hardware, InputSignal
from hw.virtual.oscilloscope.keysight.instrument import InfiniiVision
from hw.virtual.oscilloscope.server import Server, check_address
from hw.virtual.oscilloscope.tektronix.instrument import FiveSeries

PROGRAM = "python -m hw.virtual.oscilloscope"
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="An oscilloscope that digitises edges.")
    parser.add_argument("--dialect", required=True, choices=("keysight", "tektronix"))
    parser.add_argument("--address", default="127.0.0.1", help="loopback, or private to a namespace")
    parser.add_argument("--port", type=int, default=0, help="of SCPI; 0: any")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--edges", type=Path, metavar="FILE", help="NDJSON file of edges to replay")
    source.add_argument("--edge-port", type=int, metavar="PORT", help="take edges as they happen; 0: any")
    parser.add_argument("--fault", action="append", default=[], choices=[fault.value for fault in Fault])
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bandwidth-hz", type=float, default=1e9)
    parser.add_argument("--adc-bits", type=int, default=None, help="default: 8 (Keysight), 12 (Tektronix)")
    parser.add_argument("--sample-rate-max-hz", type=float, default=5e9)
    parser.add_argument("--memory-samples", type=int, default=8_000_000)
    parser.add_argument("--timebase-error-ppm", type=float, default=0.0, help="positive: fast")
    parser.add_argument("--trigger-jitter-ps", type=float, default=0.0)
    parser.add_argument("--low-v", type=float, default=0.0)
    parser.add_argument("--high-v", type=float, default=3.3)
    parser.add_argument("--rise-time-ns", type=float, default=1.0, help="10 to 90 %%, of the source")
    parser.add_argument("--noise-v", type=float, default=5e-3, help="standard deviation")
    parser.add_argument(
        "--skew-ps", type=float, action="append", default=[], help="once a channel; positive: arrives later"
    )
    return parser


RANGES: dict[str, tuple[float, float]] = {
    "port": (0, 65535),
    "edge_port": (0, 65535),
    "channels": (1, CHANNELS_MAX),
    "seed": (0, 2**63),
    "bandwidth_hz": (1e5, 1e12),
    "adc_bits": (6, 16),
    "sample_rate_max_hz": (1e3, 1e12),
    "memory_samples": (10_000, 100_000_000),
    "timebase_error_ppm": (-1000, 1000),
    "trigger_jitter_ps": (0, 1e9),
    "low_v": (-100, 100),
    "high_v": (-100, 100),
    "rise_time_ns": (0, 1e9),
    "noise_v": (0, 100),
}


def read_hardware(arguments: argparse.Namespace) -> Hardware:
    """Return the instrument that the command line describes.

    Raises:
        ConfigError: A value is out of its range.
    """
    for name, (low, high) in RANGES.items():
        value: float | None = getattr(arguments, name)
        if value is not None and not low <= value <= high:
            raise ConfigError(f"--{name.replace('_', '-')}: {value}; allowed: {low:g} to {high:g}")
    skews: list[float] = arguments.skew_ps
    if len(skews) > arguments.channels or any(not abs(skew) <= 1e9 for skew in skews):
        raise ConfigError(f"--skew-ps: {skews}; allowed: one a channel at most, -1e9 to 1e9")
    skews = skews + [0.0] * (arguments.channels - len(skews))
    bits: int | None = arguments.adc_bits
    return Hardware(
        signals=tuple(
            InputSignal(
                arguments.low_v, arguments.high_v, arguments.rise_time_ns * 1e-9, skew, arguments.noise_v
            )
            for skew in skews
        ),
        bandwidth_hz=arguments.bandwidth_hz,
        adc_bits=bits if bits is not None else {"keysight": 8, "tektronix": 12}[arguments.dialect],
        sample_rate_max_hz=arguments.sample_rate_max_hz,
        memory_samples=arguments.memory_samples,
        timebase_error_ppm=arguments.timebase_error_ppm,
        trigger_jitter_ps=arguments.trigger_jitter_ps,
        seed=arguments.seed,
    )


def _told_by_signals() -> socket.socket:
    """Return a socket that has something to read once the program is to end.

    Some libraries have begun threads of their own when they were imported, and a signal goes to any thread:
    blocking it in this one would leave them to be killed by it.
    """
    ended, waker = socket.socketpair()
    waker.setblocking(False)
    for number in ENDING_SIGNALS:
        signal.signal(number, lambda _number, _frame: waker.send(b"."))
    signal.set_wakeup_fd(waker.fileno())
    return ended


def run(arguments: argparse.Namespace) -> None:
    """Serve until a signal comes."""
    hardware = read_hardware(arguments)
    check_address(arguments.address)
    ready: dict[str, object] = {"type": "ready", "dialect": arguments.dialect, "address": arguments.address}
    source: EdgeSource = ReplayedEdges(())
    edge_port: EdgePort | None = None
    if arguments.edges is not None:
        if not arguments.edges.is_file():
            raise ConfigError(f"--edges: {arguments.edges}: no such file")
        for _ in read_file(arguments.edges):  # a wrong line is found now, not when a record is taken
            pass
        source = ReplayedEdges(read_file(arguments.edges))
    ended = _told_by_signals()
    if arguments.edge_port is not None:
        source = LiveEdges()
        edge_port = EdgePort(arguments.address, arguments.edge_port, source)
        ready["edge_port"] = edge_port.port
    make = InfiniiVision if arguments.dialect == "keysight" else FiveSeries
    faults = {Fault(name) for name in arguments.fault}
    with Server(make(hardware, source, faults), arguments.address, arguments.port) as server:
        print(json.dumps(ready | {"port": server.port}), flush=True)
        ended.recv(1)
    if edge_port is not None:
        edge_port.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    try:
        run(make_parser().parse_args(argv))
    except BenchwrightError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
