# SPDX-License-Identifier: Apache-2.0
"""Ends of STAMP: the verbs echo and roundtrip as processes, and reflectors in Python by scapy."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scapy.contrib.stamp import (
    STAMPSessionReflectorTestUnauthenticated,
    STAMPSessionSenderTestUnauthenticated,
)

from tests.patience import HANG_S, STALL_S

Json = dict[str, Any]
Reflect = Callable[[bytes, socket.socket, Any], object]
NTP_UNIX_S = 2_208_988_800
PATIENT_MS = "100000"
WAITING = ("--timeout-ms", "60000")
RESIDENCE_NS = 20_000
"""Less than scapy takes for a packet."""


@dataclass
class Echo:
    """A running `bw-traffic echo`."""

    process: subprocess.Popen[str]
    address: str

    def socket_address(self) -> tuple[str, int]:
        """Return where it listens, as sockets take it."""
        host, port = self.address.split(":")
        return host, int(port)

    def stop(self) -> Json:
        """End it by the signal that is its way to end, and return its result."""
        self.process.send_signal(signal.SIGTERM)
        output, _ = self.process.communicate(timeout=HANG_S)
        assert self.process.returncode == 0
        result: Json = json.loads(output.splitlines()[-1])
        assert (result["complete"], result["valid"], result["invalid_reasons"]) == (True, True, [])
        return result


def free_port() -> int:
    """Return a UDP port that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_echo(program: Path, *options: str, host: str = "127.0.0.1") -> Generator[Echo]:
    """Run `bw-traffic echo` at a free port while the context lasts."""
    address = f"{host}:{free_port()}"
    command = [program, "echo", "--listen", address, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        ready = json.loads(process.stdout.readline())
        assert (ready["type"], ready["tool"], ready["address"]) == ("ready", "bw-traffic echo", address)
        yield Echo(process, address)
        process.kill()


def probe_peer(program: Path, peer: str, *options: str) -> tuple[int, Json]:
    """Return exit code and result of a roundtrip that waits for each reply as long as it may take."""
    command = [program, "roundtrip", "--peer", peer, "--interval-us", "1000", *WAITING, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert not done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["type"] == "ready"
    assert all(line["type"] == "progress" for line in lines[1:-1])
    return done.returncode, lines[-1]


def scapy_reply(request: bytes) -> bytes:
    """Answer a request as scapy's reflector would, after a residence of RESIDENCE_NS by its own stamps."""
    asked = STAMPSessionSenderTestUnauthenticated(request)
    reply = STAMPSessionReflectorTestUnauthenticated(
        seq=asked.seq,
        ts=asked.ts,
        ssid=asked.ssid,
        ts_rx=asked.ts,
        seq_sender=asked.seq,
        ts_sender=asked.ts,
        err_estimate_sender=asked.err_estimate,
        tlv_objects=asked.tlv_objects,
    )
    built = bytearray(bytes(reply))
    # Stamps as 64 bits: scapy keeps seconds as a float. The peer's clock need not be ours.
    received = 3_900_000_000 << 32
    built[4:12] = (received + (RESIDENCE_NS << 32) // 10**9).to_bytes(8, "big")
    built[16:24] = received.to_bytes(8, "big")
    built[28:36] = request[4:12]
    return bytes(built)


class Reflector:
    """A reflector in Python: `reflect` gets a request, the socket and the sender's address."""

    def __init__(self, reflect: Reflect) -> None:
        """Begin to answer on a thread."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(STALL_S)
        self._reflect = reflect
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                request, source = self._socket.recvfrom(65536)
            except TimeoutError:
                continue
            self._reflect(request, self._socket, source)

    def __enter__(self) -> Reflector:
        """Start."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._end.set()
        self._thread.join()
        self._socket.close()
