# SPDX-License-Identifier: Apache-2.0
"""The verbs echo and roundtrip with other implementations of STAMP: with scapy's, and against forgers."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scapy.contrib.stamp import (
    ErrorEstimate,
    STAMPSessionReflectorTestUnauthenticated,
    STAMPSessionSenderTestUnauthenticated,
    STAMPTestTLV,
)

from tests.patience import HANG_S, wait_until
from tests.traffic_gen.lab import tai_ns
from tests.traffic_gen.stamp_lab import (
    NTP_UNIX_S,
    RESIDENCE_NS,
    Echo,
    Reflector,
    probe_peer,
    running_echo,
    scapy_reply,
)


@contextmanager
def _client(echo: Echo) -> Generator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(echo.socket_address())
        client.settimeout(HANG_S)
        yield client


def test_scapy_is_answered(bw_traffic: Path) -> None:
    padding = STAMPTestTLV(flags=0, type=1, len=10, value=b"0123456789")
    request = STAMPSessionSenderTestUnauthenticated(seq=5, ssid=77, ts=3_900_000_000.5, tlv_objects=[padding])
    with running_echo(bw_traffic) as echo, _client(echo) as client:
        before_s = time.time()
        client.send(bytes(request))
        wire = client.recv(65536)
        reply = STAMPSessionReflectorTestUnauthenticated(wire)
        after_s = time.time()
    assert len(wire) == len(bytes(request))
    assert (reply.seq, reply.ssid, reply.seq_sender, reply.ts_sender) == (5, 77, 5, request.ts)
    assert bytes(reply.err_estimate_sender) == bytes(request.err_estimate)
    assert (reply.err_estimate.Z, reply.err_estimate.multiplier) == (0, 1)
    received_s, sent_s = (int.from_bytes(wire[at : at + 8], "big") / 2**32 - NTP_UNIX_S for at in (16, 4))
    assert before_s - 1e-3 <= received_s <= sent_s <= after_s + 1e-3
    assert wire[44:] == bytes([0, 1, 0, 10]) + b"0123456789"


def test_a_sender_of_ptp_stamps_gets_ptp_stamps(bw_traffic: Path) -> None:
    request = bytearray(bytes(STAMPSessionSenderTestUnauthenticated(seq=1, err_estimate=ErrorEstimate(Z=1))))
    with running_echo(bw_traffic) as echo, _client(echo) as client:
        before_ns = tai_ns()
        client.send(request)
        wire = client.recv(65536)
        after_ns = tai_ns()
    assert wire[12] & 0x40
    received_ns, sent_ns = (
        int.from_bytes(wire[at : at + 4], "big") * 10**9 + int.from_bytes(wire[at + 4 : at + 8], "big")
        for at in (16, 4)
    )
    assert before_ns <= received_ns <= sent_ns <= after_ns


@pytest.mark.parametrize(("options", "expected"), [([], [9, 9, 30]), (["--stateful"], [0, 1, 2])])
def test_replies_are_numbered(bw_traffic: Path, options: list[str], expected: list[int]) -> None:
    with running_echo(bw_traffic, *options) as echo, _client(echo) as client:
        found: list[int] = []
        for sequence in (9, 9, 30):
            client.send(bytes(STAMPSessionSenderTestUnauthenticated(seq=sequence)))
            found.append(STAMPSessionReflectorTestUnauthenticated(client.recv(65536)).seq)
    assert found == expected


@pytest.mark.parametrize("size_bytes", [44, 60, 1472])
def test_scapy_reflects(bw_traffic: Path, size_bytes: int) -> None:
    """Its clock is another one: only the difference of its stamps counts."""

    def reflect(request: bytes, sock: socket.socket, source: Any) -> None:
        sock.sendto(scapy_reply(request), source)

    with Reflector(reflect) as peer:
        code, result = probe_peer(bw_traffic, peer.address, "--count", "5", "--size-bytes", str(size_bytes))
    assert (code, result["received"], result["foreign"], result["invalid"]) == (0, 5, 0, 0)
    assert abs(result["residence"]["min_ns"] - RESIDENCE_NS) <= 1
    assert abs(result["residence"]["max_ns"] - RESIDENCE_NS) <= 1


def _changed(reply: bytes, at: int) -> bytes:
    return reply[:at] + bytes([reply[at] ^ 1]) + reply[at + 1 :]


def _send_forged(request: bytes, sock: socket.socket, source: Any) -> int:
    """Change session, sequence, stamp, format, size, multiplier, source, each alone; return their number."""
    reply = scapy_reply(request)
    forged = [
        _changed(reply, 15),
        _changed(reply, 27),
        _changed(reply, 35),
        reply[:36] + bytes([reply[36] ^ 0x40]) + reply[37:],
        reply + b"\0",
        reply[:43],
        reply[:13] + b"\0" + reply[14:],
    ]
    for datagram in forged:
        sock.sendto(datagram, source)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as elsewhere:
        elsewhere.sendto(reply, source)
    return len(forged) + 1


def test_forged_replies_are_not_used(bw_traffic: Path) -> None:
    with Reflector(_send_forged) as peer:
        code, result = probe_peer(bw_traffic, peer.address, "--count", "1", "--timeout-ms", "300")
    assert code == 4
    assert result["invalid_reasons"] == ["the peer has not answered"]
    assert (result["sent"], result["received"], result["lost"]) == (1, 0, 1)
    assert result["round_trip"]["n"] == 0


def test_forged_replies_are_counted(bw_traffic: Path) -> None:
    forged: list[int] = []

    def reflect(request: bytes, sock: socket.socket, source: Any) -> None:
        if not forged:
            forged.append(_send_forged(request, sock, source))
        sock.sendto(scapy_reply(request), source)

    with Reflector(reflect) as peer:
        code, result = probe_peer(bw_traffic, peer.address, "--count", "2", "--interval-us", "100000")
    assert (code, result["received"], result["foreign"]) == (0, 2, forged[0])


def test_late_replies_are_counted_and_not_used(bw_traffic: Path) -> None:
    """The first request is answered only when the second one has come."""
    requests: list[bytes] = []

    def reflect(request: bytes, sock: socket.socket, source: Any) -> None:
        requests.append(request)
        answered = {1: [], 2: [requests[0]]}.get(len(requests), [request])
        for other in answered:
            sock.sendto(scapy_reply(other), source)

    command = [bw_traffic, "roundtrip", "--count", "1000000", "--timeout-ms", "100", "--peer"]
    with (
        Reflector(reflect) as peer,
        subprocess.Popen([*command, peer.address], stdout=subprocess.PIPE, text=True) as process,
    ):
        wait_until(lambda: len(requests) >= 5, "five requests")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=HANG_S)
    result = json.loads(output.splitlines()[-1])
    assert result["late"] >= 1
    assert result["received"] <= result["sent"] - 2
    assert (result["foreign"], result["duplicates"]) == (0, 0)


@pytest.mark.parametrize(
    "residence_s", [-1, 1000], ids=["sent-before-it-came", "stayed-longer-than-the-trip"]
)
def test_a_reply_that_cannot_be_is_no_answer(bw_traffic: Path, residence_s: int) -> None:
    def reflect(request: bytes, sock: socket.socket, source: Any) -> None:
        reply = scapy_reply(request)
        sent_s = int.from_bytes(reply[16:20], "big") + residence_s
        sock.sendto(reply[:4] + sent_s.to_bytes(4, "big") + reply[8:], source)

    with Reflector(reflect) as peer:
        code, result = probe_peer(bw_traffic, peer.address, "--count", "3")
    assert (code, result["invalid"], result["received"], result["lost"]) == (4, 3, 0, 0)
    assert result["invalid_reasons"] == ["no answer of the peer was possible"]
