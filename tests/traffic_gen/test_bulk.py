# SPDX-License-Identifier: Apache-2.0
"""The verb bulk: both ends with each other, each with a peer that does not keep to it, and their points."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest

from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_streams
from tests.patience import HANG_S
from tests.traffic_gen.two_ends import PATIENT, Json, end, ended, free


def both(
    bw_traffic: Path, *sender: str, receiver: tuple[str, ...] = (), host: str = "127.0.0.1"
) -> tuple[Json, Json]:
    """Run both ends to their end, and return their results, the sender's first."""
    address = free(host)
    with (
        end(bw_traffic, "bulk", "--serve", address, *PATIENT, *receiver) as (receiving, ready),
        end(bw_traffic, "bulk", "--peer", address, *PATIENT, *sender) as (sending, _),
    ):
        assert ready["address"] == address
        sent, received = ended(sending), ended(receiving)
    assert (sent[0], received[0], sent[2], received[2]) == (0, 0, "", "")
    return sent[1], received[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
@pytest.mark.parametrize(
    ("block_bytes", "bytes_sent"), [(1, 1), (7, 20), (1448, 1_000_000), (1 << 20, 5_000_000)]
)
def test_every_byte_arrives(bw_traffic: Path, block_bytes: int, bytes_sent: int, host: str) -> None:
    options = ("--bytes", str(bytes_sent), "--block-bytes", str(block_bytes))
    sent, received = both(bw_traffic, *options, receiver=("--block-bytes", "4096"), host=host)
    assert (sent["bytes"], received["bytes"]) == (bytes_sent, bytes_sent)
    assert (sent["role"], received["role"]) == ("sender", "receiver")
    assert sent["checksum"] == received["checksum"]
    assert sent["calls"] >= -(-bytes_sent // block_bytes)
    assert received["calls"] >= -(-bytes_sent // 4096)
    assert all(each["complete"] and each["valid"] for each in (sent, received))


def test_two_runs_do_not_send_the_same(bw_traffic: Path) -> None:
    checksums = {both(bw_traffic, "--bytes", "1000")[0]["checksum"] for _ in range(2)}
    assert len(checksums) == 2


def test_rate_is_not_exceeded(bw_traffic: Path) -> None:
    sent, _ = both(bw_traffic, "--bytes", "250000", "--rate-mbit", "10", "--block-bytes", "1000")
    # The last block is due after 249 of 250 parts of 200 ms.
    assert sent["duration_ns"] >= 199_200_000
    assert sent["throughput_mbit"] <= 10.05
    assert sent["calls"] >= 250


def test_duration_ends_it_before_bytes_do(bw_traffic: Path) -> None:
    options = ("--bytes", "1000000000000", "--duration-ms", "50", "--rate-mbit", "1", "--block-bytes", "100")
    sent, received = both(bw_traffic, *options)
    assert sent["bytes"] == received["bytes"]
    assert 0 < sent["bytes"] < 1_000_000_000_000


def test_duration_ends_it_before_the_next_block_is_due(bw_traffic: Path) -> None:
    """At 1 Mbit/s the second block of 1 MiB would be due after 8 s."""
    sent, received = both(
        bw_traffic, "--duration-ms", "50", "--rate-mbit", "1", "--block-bytes", str(1 << 20)
    )
    assert sent["bytes"] == received["bytes"] == 1 << 20


def test_receiver_to_which_nobody_comes_ends_by_itself(bw_traffic: Path) -> None:
    with end(bw_traffic, "bulk", "--serve", free(), "--duration-ms", "50") as (process, _):
        code, result, errors = ended(process)
    assert (code, result["bytes"], result["invalid_reasons"]) == (4, 0, ["no sender came in time"])
    assert errors == ""


@pytest.mark.parametrize("sent", [b"", b"some"])
def test_receiver_ends_by_itself_while_its_sender_goes_on(bw_traffic: Path, sent: bytes) -> None:
    """The sender is silent for longer than it may be, but for the receiver's own end."""
    with end(bw_traffic, "bulk", "--serve", free(), *PATIENT, "--duration-ms", "1000") as (process, ready):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))) as sender:
            sender.sendall(sent)
            code, result, _ = ended(process)
    assert (code, result["bytes"]) == (4, len(sent))
    assert result["invalid_reasons"] == ["its time was over before its sender's"]


def test_receiver_that_never_waits_for_bytes_ends_by_itself(bw_traffic: Path) -> None:
    address = free()
    with (
        end(bw_traffic, "bulk", "--serve", address, *PATIENT, "--duration-ms", "500") as (receiving, _),
        end(bw_traffic, "bulk", "--peer", address, *PATIENT, "--duration-ms", "60000") as (sending, _),
    ):
        code, result, _ = ended(receiving)
        assert ended(sending)[0] == 4
    assert (code, result["invalid_reasons"]) == (4, ["its time was over before its sender's"])


def test_receiver_that_takes_nothing_blocks_the_sender(bw_traffic: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = "{}:{}".format(*listener.getsockname())
        with end(bw_traffic, "bulk", "--peer", peer, "--timeout-ms", "100") as (process, _):
            code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["the receiver has taken nothing in time"])
    assert result["blocked_ns"] >= 100_000_000
    assert result["bytes"] > 0


def test_sender_that_says_nothing_is_waited_for_no_longer_than_asked(bw_traffic: Path) -> None:
    with end(bw_traffic, "bulk", "--serve", free(), "--timeout-ms", "100") as (process, ready):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))):
            code, result, _ = ended(process)
    assert (code, result["bytes"], result["invalid_reasons"]) == (4, 0, ["nothing came in time"])
    assert result["blocked_ns"] >= 100_000_000


def test_receiver_that_goes_away_ends_the_sender(bw_traffic: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        peer = "{}:{}".format(*listener.getsockname())
        with end(bw_traffic, "bulk", "--peer", peer, *PATIENT) as (process, _):
            connection, _ = listener.accept()
            connection.recv(1)
            connection.close()
            code, result, errors = ended(process)
    assert (code, result["complete"], result["invalid_reasons"]) == (4, False, ["the connection failed"])
    assert len(errors.splitlines()) == 1


def test_nobody_who_listens_is_said(bw_traffic: Path) -> None:
    with end(bw_traffic, "bulk", "--peer", free()) as (process, _):
        code, result, errors = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["the receiver could not be reached"])
    assert len(errors.splitlines()) == 1


def test_end_that_is_asked_to_end_says_what_it_has_done(bw_traffic: Path) -> None:
    with (
        end(bw_traffic, "bulk", "--serve", free(), *PATIENT) as (receiving, ready),
        end(bw_traffic, "bulk", "--peer", ready["address"], *PATIENT, "--rate-mbit", "8") as (sending, _),
    ):
        assert sending.stdout
        assert json.loads(sending.stdout.readline())["type"] == "progress"
        sending.send_signal(signal.SIGTERM)
        (code, sent, _), (other, received, _) = ended(sending), ended(receiving)
    assert (code, sent["invalid_reasons"]) == (4, ["stopped before its end"])
    assert (other, received["bytes"], received["checksum"]) == (0, sent["bytes"], sent["checksum"])


def test_second_sender_is_not_served(bw_traffic: Path) -> None:
    with end(bw_traffic, "bulk", "--serve", free(), *PATIENT) as (process, ready):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))) as first:
            first.sendall(b"x")
            while not _is_refused(host, int(port)):
                pass
        code, result, _ = ended(process)
    assert (code, result["bytes"], result["checksum"]) == (0, 1, f"{ord('x'):016x}")


def _is_refused(host: str, port: int) -> bool:
    """Say whether nobody listens any more; until then the kernel may take a connection for the program."""
    try:
        socket.create_connection((host, port)).close()
    except ConnectionRefusedError:
        return True
    return False


def pieces(stream: EventStream, name: str) -> tuple[list[int], list[int]]:
    """Return offset and bytes of each piece, in the order of time."""
    found = stream.of(name)
    return stream.tag[found].tolist(), stream.data(found).copy().view("<u4").reshape(-1).tolist()


def test_points_hold_every_piece_at_both_ends(bw_traffic: Path, bw_events: Path, tmp_path: Path) -> None:
    address, options = free(), ("--bytes", "300000", "--block-bytes", "7000")

    def recorded(name: str, *words: str) -> tuple[str | Path, ...]:
        record = (bw_events, "record", "--output", tmp_path / name, "--points", "bulk", "--")
        return (*record, bw_traffic, "bulk", *words, *PATIENT)

    with (
        end(*recorded("receiver", "--serve", address)) as (receiving, _),
        end(*recorded("sender", "--peer", address, *options)) as (sending, _),
    ):
        sent, received = ended(sending)[1], ended(receiving)[1]
    for name, point, result in (("sender", "bulk.written", sent), ("receiver", "bulk.read", received)):
        [stream] = read_event_streams(tmp_path / name)
        offsets, sizes = pieces(stream, point)
        assert offsets == [0, *np.cumsum(sizes)[:-1].tolist()]
        assert (sum(sizes), len(sizes)) == (300_000, result["calls"])
        assert {each.decoder for each in stream.points if each.full_name == point} == {"<I"}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--serve", "127.0.0.1:9", "--peer", "127.0.0.1:9"),
        ("--serve", "127.0.0.1:9", "--bytes", "5"),
        ("--serve", "127.0.0.1:9", "--rate-mbit", "0"),
        ("--peer", "nowhere"),
        ("--serve", "127.0.0.1"),
        ("--peer", "127.0.0.1:9", "--block-bytes", "0"),
        ("--peer", "127.0.0.1:9", "--block-bytes", "1048577"),
        ("--peer", "127.0.0.1:9", "--bytes", "0"),
        ("--peer", "127.0.0.1:9", "--rate-mbit", "-1"),
    ],
)
def test_command_line_that_cannot_be_is_refused(bw_traffic: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [bw_traffic, "bulk", *arguments], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
