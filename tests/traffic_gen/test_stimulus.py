# SPDX-License-Identifier: Apache-2.0
"""The verb stimulus: both ends with each other, and each with a peer that does not keep to it."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from tests.patience import HANG_S
from tests.traffic_gen.two_ends import PATIENT, Json, end, ended, free

HEAD = struct.Struct(">4sBBHIIIIqqq")


def both(
    bw_traffic: Path, server: tuple[str, ...] = (), client: tuple[str, ...] = (), host: str = "127.0.0.1"
) -> tuple[tuple[int, Json, str], tuple[int, Json, str]]:
    """Run both ends to their end; the server is ready before the client begins."""
    address = free(host)
    with (
        end(bw_traffic, "stimulus", "--serve", address, *PATIENT, *server) as (serving, ready),
        end(bw_traffic, "stimulus", "--peer", address, *PATIENT, *client) as (asking, _),
    ):
        assert ready["address"] == address
        return ended(serving), ended(asking)


@pytest.mark.parametrize("size_bytes", [48, 49, 1448, 65536])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_each_stimulus_is_answered(bw_traffic: Path, size_bytes: int, host: str) -> None:
    options = ("--count", "200", "--interval-us", "200", "--size-bytes", str(size_bytes))
    (code, server, _), (client_code, client, _) = both(bw_traffic, options, host=host)
    assert (code, client_code) == (0, 0)
    for found in (server, client):
        assert (found["count"], found["size_bytes"]) == (200, size_bytes)
        assert (found["sent"], found["received"], found["negative"]) == (200, 200, 0)
        assert (found["complete"], found["valid"], found["invalid_reasons"]) == (True, True, [])
        assert found["received_minus_sent"]["n"] == 200
        assert found["received_minus_sent"]["min_ns"] > 0
    assert client["residence"]["n"] == 200
    assert server["round_trip"]["min_ns"] > client["residence"]["min_ns"]


def test_message_that_comes_before_it_was_sent_is_counted_and_told(bw_traffic: Path) -> None:
    options = ("--count", "20", "--interval-us", "200", "--tai-utc-s", "38")
    (_, server, _), (code, client, errors) = both(bw_traffic, options, ("--tai-utc-s", "37"))
    if not client["negative"]:  # where the kernel knows TAI - UTC, both ends take it from there
        pytest.skip("the kernel knows TAI - UTC")
    assert (code, client["negative"], client["first_negative"]) == (0, 20, 0)
    assert -1_000_000_000 < client["first_negative_ns"] < -900_000_000
    assert "20 of 20 messages came before they were sent" in errors
    assert (server["negative"], server["received_minus_sent"]["min_ns"] > 1_000_000_000) == (0, True)


def test_known_delay_lies_in_each_second_turn(bw_traffic: Path) -> None:
    options = ("--count", "60", "--interval-us", "2000", "--delay-send-us", "300", "--delay-turn", "10")
    (_, server, _), (_, client, _) = both(bw_traffic, options)
    assert (server["sending"]["n"], server["sending_delayed"]["n"]) == (30, 30)
    assert server["sending_delayed"]["min_ns"] >= 300_000
    assert server["sending"]["min_ns"] < 300_000
    assert (server["delay_send_us"], server["delay_turn"]) == (300, 10)
    assert client["sending_delayed"]["n"] == 60  # always, by 0
    (_, first, _), _ = both(bw_traffic, ("--count", "10", *options[2:]))
    assert (first["sending"]["n"], first["sending_delayed"]["n"]) == (10, 0)


def test_server_that_is_asked_to_end_says_so(bw_traffic: Path) -> None:
    with end(bw_traffic, "stimulus", "--serve", free()) as (process, _):
        process.send_signal(signal.SIGTERM)
        code, result, _ = ended(process)
    assert (code, result["complete"], result["valid"]) == (4, False, False)
    assert result["invalid_reasons"] == ["stopped before its end"]


def test_second_client_is_not_served(bw_traffic: Path) -> None:
    with end(bw_traffic, "stimulus", "--serve", free(), *PATIENT, "--count", "1") as (process, ready):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))) as first:
            stimulus = first.recv(48, socket.MSG_WAITALL)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((host, int(port)))
            first.sendall(stimulus[:5] + b"\x01" + stimulus[6:])
            code, result, _ = ended(process)
    assert (code, result["received"]) == (0, 1)


def wire(number: int = 0, kind: int = 1, size_bytes: int = 48, count: int = 3) -> bytes:
    """Return a message."""
    return HEAD.pack(b"BWSR", 1, kind, 0, size_bytes, count, number, 0, 0, 0, 0).ljust(size_bytes, b"\0")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"x" * 48, "what came was no response"),
        (wire(kind=0), "what came was no response"),
        (wire(number=1), "what came was no response"),
        (wire(size_bytes=64), "what came was no response"),
        (wire()[:20], "what came was no response"),
        (b"", "the connection failed"),
    ],
)
def test_client_that_answers_something_else_ends_it(bw_traffic: Path, answer: bytes, said: str) -> None:
    with end(bw_traffic, "stimulus", "--serve", free(), *PATIENT, "--count", "3") as (process, ready):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))) as client:
            client.recv(48, socket.MSG_WAITALL)
            client.sendall(answer)
            client.shutdown(socket.SHUT_WR)
            code, result, _ = ended(process)
    assert (code, result["valid"], result["invalid_reasons"]) == (4, False, [said])


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"GET / HTTP/1.1\r\n".ljust(48), "what came was no stimulus"),
        (wire(kind=0, number=1), "what came was no stimulus"),
        (b"", "the server ended before its last stimulus"),
        (wire(kind=0), "the server ended before its last stimulus"),
        (wire(kind=0)[:40], "what came was no stimulus"),
    ],
)
def test_server_that_sends_something_else_ends_it(bw_traffic: Path, sent: bytes, said: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        end(bw_traffic, "stimulus", "--peer", "{}:{}".format(*listener.getsockname()), *PATIENT) as (
            process,
            _,
        ),
    ):
        connection, _ = listener.accept()
        with connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            code, result, _ = ended(process)
    assert (code, result["valid"], result["invalid_reasons"]) == (4, False, [said])


def test_peer_that_says_nothing_is_waited_for_no_longer_than_asked(bw_traffic: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = "{}:{}".format(*listener.getsockname())
        with end(bw_traffic, "stimulus", "--peer", peer, "--timeout-ms", "100") as (process, _):
            code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["no stimulus came in time"])


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--serve", "127.0.0.1:9", "--peer", "127.0.0.1:9"),
        ("--peer", "127.0.0.1:9", "--count", "5"),
        ("--peer", "nowhere"),
        ("--serve", "127.0.0.1"),
        ("--serve", "127.0.0.1:0", "--size-bytes", "47"),
        ("--serve", "127.0.0.1:0", "--count", "0"),
    ],
)
def test_command_line_that_cannot_be_is_refused(bw_traffic: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [bw_traffic, "stimulus", *arguments], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
