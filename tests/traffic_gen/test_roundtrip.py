# SPDX-License-Identifier: Apache-2.0
"""The verbs echo and roundtrip over real sockets: with each other, with scapy's STAMP, against forgers."""

from __future__ import annotations

import csv
import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from scapy.contrib.stamp import (
    ErrorEstimate,
    STAMPSessionReflectorTestUnauthenticated,
    STAMPSessionSenderTestUnauthenticated,
    STAMPTestTLV,
)

from tests.patience import HANG_S, STALL_S, wait_until
from tests.traffic_gen.lab import tai_ns

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


def _free_port() -> int:
    """Return a UDP port that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _echo(program: Path, *options: str, host: str = "127.0.0.1") -> Generator[Echo]:
    address = f"{host}:{_free_port()}"
    command = [program, "echo", "--listen", address, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        ready = json.loads(process.stdout.readline())
        assert (ready["type"], ready["tool"], ready["address"]) == ("ready", "bw-traffic echo", address)
        yield Echo(process, address)
        process.kill()


def _probe(program: Path, peer: str, *options: str) -> tuple[int, Json]:
    """Return exit code and result of a roundtrip that waits for each reply as long as it may take."""
    command = [program, "roundtrip", "--peer", peer, "--interval-us", "1000", *WAITING, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert not done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["type"] == "ready"
    assert all(line["type"] == "progress" for line in lines[1:-1])
    return done.returncode, lines[-1]


def _scapy_reply(request: bytes) -> bytes:
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


@pytest.mark.parametrize("size_bytes", [44, 45, 47, 48, 64, 1472, 9000, 65507])
def test_round_trips_are_counted_and_divided(bw_traffic: Path, tmp_path: Path, size_bytes: int) -> None:
    series = tmp_path / "series.csv"
    before_ns = tai_ns()
    with _echo(bw_traffic) as echo:
        options = ["--size-bytes", str(size_bytes), "--count", "50", "--series", str(series)]
        code, result = _probe(bw_traffic, echo.address, *options)
        reflected = echo.stop()
    assert (code, result["complete"], result["valid"], result["invalid_reasons"]) == (0, True, True, [])
    assert (result["tool"], result["peer"]) == ("bw-traffic roundtrip", echo.address)
    assert result["size_bytes"] == size_bytes
    assert (result["sent"], result["received"], result["lost"], result["interval_us"]) == (50, 50, 0, 1000)
    assert [result[key] for key in ("late", "duplicates", "foreign", "invalid", "unsent")] == [0] * 5
    assert (reflected["received"], reflected["reflected"], reflected["malformed"]) == (50, 50, 0)
    assert reflected["residence"]["n"] == 50
    for key in ("round_trip", "residence", "round_trip_without_residence"):
        assert result[key]["n"] == 50
        assert result[key]["min_ns"] >= 0
    rows = [{key: int(value) for key, value in row.items() if value} for row in csv.DictReader(series.open())]
    assert [row["sequence"] for row in rows] == list(range(50))
    assert min(row["round_trip_ns"] for row in rows) == result["round_trip"]["min_ns"]
    assert before_ns <= rows[0]["t1_local_tai_ns"] < rows[-1]["t1_local_tai_ns"] <= tai_ns()
    for row in rows:
        assert min(row.values()) >= 0
        assert row["residence_ns"] <= row["round_trip_ns"]


def test_round_trips_over_ipv6(bw_traffic: Path) -> None:
    with _echo(bw_traffic, host="[::1]") as echo:
        code, result = _probe(bw_traffic, echo.address, "--count", "20")
        reflected = echo.stop()
    assert (code, result["peer"], result["received"], result["foreign"]) == (0, echo.address, 20, 0)
    assert reflected["reflected"] == 20


def test_both_ends_see_their_own_parts_where_the_kernel_stamps(bw_traffic: Path) -> None:
    with _echo(bw_traffic) as echo:
        _, result = _probe(bw_traffic, echo.address, "--count", "50")
        reflected = echo.stop()
    assert result["own_send"]["n"] == result["own_receive"]["n"] == result["below_stamps"]["n"] == 50
    assert result["own_send"]["min_ns"] > 0
    assert result["own_receive"]["min_ns"] > 0
    assert reflected["receive_stack"]["n"] == reflected["transmit_stack"]["n"] == 50


@pytest.mark.timed
@pytest.mark.parametrize(
    ("whose", "option", "part"),
    [
        ("echo", "--delay-receive-us", "receive_stack"),
        ("echo", "--delay-send-us", "transmit_stack"),
        ("roundtrip", "--delay-receive-us", "own_receive"),
        ("roundtrip", "--delay-send-us", "own_send"),
    ],
)
def test_a_known_delay_is_found_where_it_was_added(
    bw_traffic: Path, whose: str, option: str, part: str
) -> None:
    """Medians of many trips with and without it, one after the other; residence has no part in it."""
    grown_ns: list[int] = []
    for _ in range(5):
        medians_ns: list[int] = []
        for delay_us in ("0", "2000"):
            delay = [option, delay_us]
            with _echo(bw_traffic, *(delay if whose == "echo" else [])) as echo:
                probing = ["--count", "100", *(delay if whose == "roundtrip" else [])]
                code, result = _probe(bw_traffic, echo.address, *probing)
                reflected = echo.stop()
            assert code == 0
            found = reflected if whose == "echo" else result
            assert found[option[2:].replace("-", "_")] == int(delay_us)
            if delay_us != "0":
                assert found[part]["min_ns"] >= 2_000_000
            medians_ns.append(result["round_trip_without_residence"]["p50_ns"])
        grown_ns.append(medians_ns[1] - medians_ns[0])
        if abs(grown_ns[-1] - 2_000_000) < 500_000:
            return
    pytest.fail(f"2 ms were added, but the medians grew by {grown_ns} ns")


def test_a_delay_is_never_shorter_than_it_should(bw_traffic: Path) -> None:
    with _echo(bw_traffic, "--delay-receive-us", "2000", "--delay-send-us", "300") as echo:
        _, result = _probe(bw_traffic, echo.address, "--count", "20", "--delay-send-us", "700")
        reflected = echo.stop()
    assert result["round_trip_without_residence"]["min_ns"] >= 3_000_000
    assert (reflected["delay_receive_us"], reflected["delay_send_us"]) == (2000, 300)
    assert (result["delay_receive_us"], result["delay_send_us"]) == (0, 700)
    assert reflected["delayed_receive_mean_ns"] >= 2_000_000
    assert reflected["delayed_send_mean_ns"] >= 300_000
    assert (result["delayed_receive_mean_ns"], result["delayed_send_mean_ns"] >= 700_000) == (0, True)


def test_requests_of_a_run_up_do_not_count(bw_traffic: Path, tmp_path: Path) -> None:
    series = tmp_path / "series.csv"
    turns = ["--turn-trips", "5", "--turn-run-up", "2", "--turn-every-us", "20000", "--series", str(series)]
    with _echo(bw_traffic) as echo:
        _, result = _probe(bw_traffic, echo.address, "--count", "20", *turns)
        reflected = echo.stop()
    assert (result["sent"], result["received"], result["lost"]) == (12, 12, 0)
    assert (reflected["reflected"], result["round_trip"]["n"], result["own_send"]["n"]) == (20, 12, 12)
    rows = list(csv.DictReader(series.open()))
    assert [int(row["sequence"]) % 5 for row in rows] == [2, 3, 4] * 4


def test_a_turn_of_run_up_alone_is_refused(bw_traffic: Path) -> None:
    command = [
        bw_traffic,
        "roundtrip",
        "--peer",
        "127.0.0.1:9",
        "--turn-trips",
        "5",
        "--turn-every-us",
        "50000",
    ]
    done = subprocess.run([*command, "--turn-run-up", "5"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--turn-run-up: 5; allowed: fewer than --turn-trips, 5" in done.stderr


def test_a_reply_is_held_asleep_as_part_of_the_residence(bw_traffic: Path) -> None:
    with _echo(bw_traffic, "--hold-us", "3000") as echo:
        _, result = _probe(bw_traffic, echo.address, "--count", "30", "--interval-us", "6000")
        reflected = echo.stop()
    assert reflected["hold_us"] == 3000
    assert result["received"] == 30
    assert min(reflected["residence"]["min_ns"], result["residence"]["min_ns"]) >= 2_999_000
    assert result["round_trip"]["min_ns"] >= 3_000_000
    assert result["round_trip_without_residence"]["min_ns"] < 3_000_000
    assert reflected["receive_stack"]["min_ns"] < 3_000_000


def test_turns_are_taken_on_their_grid(bw_traffic: Path, tmp_path: Path) -> None:
    """Never before a slot; a slot that is over when its time comes is left out."""
    series = tmp_path / "series.csv"
    first_ns, every_ns = tai_ns() - 100_000_000, 40_000_000  # two turns and a half are over
    with _echo(bw_traffic) as echo:
        turns = ["--first-tai-ns", str(first_ns), "--turn-trips", "3", "--turn-every-us", "40000"]
        code, result = _probe(bw_traffic, echo.address, "--count", "60", "--series", str(series), *turns)
    assert code == 0
    assert 3 <= result["sent"] <= 52
    after_ns = [int(row["t1_local_tai_ns"]) - first_ns for row in csv.DictReader(series.open())]
    assert min(after_ns) >= 100_000_000
    numbers = [after // every_ns for after in after_ns]
    assert max(numbers) >= 19, "the last turn"
    assert all(numbers.count(number) <= 3 for number in range(3, 19)) or result["sent"] < 52


@contextmanager
def _client(echo: Echo) -> Generator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(echo.socket_address())
        client.settimeout(HANG_S)
        yield client


def test_scapy_is_answered(bw_traffic: Path) -> None:
    padding = STAMPTestTLV(flags=0, type=1, len=10, value=b"0123456789")
    request = STAMPSessionSenderTestUnauthenticated(seq=5, ssid=77, ts=3_900_000_000.5, tlv_objects=[padding])
    with _echo(bw_traffic) as echo, _client(echo) as client:
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
    with _echo(bw_traffic) as echo, _client(echo) as client:
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
    with _echo(bw_traffic, *options) as echo, _client(echo) as client:
        found: list[int] = []
        for sequence in (9, 9, 30):
            client.send(bytes(STAMPSessionSenderTestUnauthenticated(seq=sequence)))
            found.append(STAMPSessionReflectorTestUnauthenticated(client.recv(65536)).seq)
    assert found == expected


@pytest.mark.parametrize("size_bytes", [44, 60, 1472])
def test_scapy_reflects(bw_traffic: Path, size_bytes: int) -> None:
    """Its clock is another one: only the difference of its stamps counts."""

    def reflect(request: bytes, sock: socket.socket, source: Any) -> None:
        sock.sendto(_scapy_reply(request), source)

    with Reflector(reflect) as peer:
        code, result = _probe(bw_traffic, peer.address, "--count", "5", "--size-bytes", str(size_bytes))
    assert (code, result["received"], result["foreign"], result["invalid"]) == (0, 5, 0, 0)
    assert abs(result["residence"]["min_ns"] - RESIDENCE_NS) <= 1
    assert abs(result["residence"]["max_ns"] - RESIDENCE_NS) <= 1


def _changed(reply: bytes, at: int) -> bytes:
    return reply[:at] + bytes([reply[at] ^ 1]) + reply[at + 1 :]


def _send_forged(request: bytes, sock: socket.socket, source: Any) -> int:
    """Change session, sequence, stamp, format, size, multiplier, source, each alone; return their number."""
    reply = _scapy_reply(request)
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
        code, result = _probe(bw_traffic, peer.address, "--count", "1", "--timeout-ms", "300")
    assert code == 4
    assert result["invalid_reasons"] == ["the peer has not answered"]
    assert (result["sent"], result["received"], result["lost"]) == (1, 0, 1)
    assert result["round_trip"]["n"] == 0


def test_forged_replies_are_counted(bw_traffic: Path) -> None:
    forged: list[int] = []

    def reflect(request: bytes, sock: socket.socket, source: Any) -> None:
        if not forged:
            forged.append(_send_forged(request, sock, source))
        sock.sendto(_scapy_reply(request), source)

    with Reflector(reflect) as peer:
        code, result = _probe(bw_traffic, peer.address, "--count", "2", "--interval-us", "100000")
    assert (code, result["received"], result["foreign"]) == (0, 2, forged[0])


def test_late_replies_are_counted_and_not_used(bw_traffic: Path) -> None:
    """The first request is answered only when the second one has come."""
    requests: list[bytes] = []

    def reflect(request: bytes, sock: socket.socket, source: Any) -> None:
        requests.append(request)
        answered = {1: [], 2: [requests[0]]}.get(len(requests), [request])
        for other in answered:
            sock.sendto(_scapy_reply(other), source)

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
        reply = _scapy_reply(request)
        sent_s = int.from_bytes(reply[16:20], "big") + residence_s
        sock.sendto(reply[:4] + sent_s.to_bytes(4, "big") + reply[8:], source)

    with Reflector(reflect) as peer:
        code, result = _probe(bw_traffic, peer.address, "--count", "3")
    assert (code, result["invalid"], result["received"], result["lost"]) == (4, 3, 0, 0)
    assert result["invalid_reasons"] == ["no answer of the peer was possible"]


def test_nobody_there_is_invalid(bw_traffic: Path) -> None:
    code, result = _probe(bw_traffic, f"127.0.0.1:{_free_port()}", "--count", "3", "--timeout-ms", "10")
    assert code == 4
    assert (result["sent"], result["received"], result["lost"]) == (3, 0, 3)
    assert result["invalid_reasons"] == ["the peer has not answered"]


def test_a_stopped_measurement_keeps_its_series(bw_traffic: Path, tmp_path: Path) -> None:
    series = tmp_path / "series.csv"
    with _echo(bw_traffic) as echo:
        command = [bw_traffic, "roundtrip", "--peer", echo.address, "--count", "1000000", "--series", series]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            while not json.loads(process.stdout.readline()).get("received"):
                pass
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=HANG_S)
    result = json.loads(output.splitlines()[-1])
    assert process.returncode == 4
    assert not result["complete"]
    assert result["invalid_reasons"] == ["stopped before its end"]
    assert len(series.read_text().splitlines()) == 1 + result["sent"]


def test_a_series_on_a_full_disk_is_no_success(bw_traffic: Path) -> None:
    with _echo(bw_traffic) as echo:
        command = [bw_traffic, "roundtrip", "--peer", echo.address, "--count", "5", "--series", "/dev/full"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 3
    assert done.stderr == "bw-traffic roundtrip: /dev/full: No space left on device\n"
    assert json.loads(done.stdout.splitlines()[-1])["type"] == "result"


def test_durations_end_both(bw_traffic: Path) -> None:
    with _echo(bw_traffic, "--duration-ms", "600") as echo:
        code, result = _probe(bw_traffic, echo.address, "--duration-ms", "100", "--timeout-ms", "10")
        output, _ = echo.process.communicate(timeout=HANG_S)
    assert result["complete"]
    assert 0 < result["sent"] <= 101
    assert code == (0 if result["received"] else 4)
    assert echo.process.returncode == 0
    assert json.loads(output.splitlines()[-1])["complete"]


def test_a_reflector_that_is_stopped_early_is_incomplete(bw_traffic: Path) -> None:
    with _echo(bw_traffic, "--duration-ms", PATIENT_MS) as echo:
        echo.process.send_signal(signal.SIGTERM)
        output, _ = echo.process.communicate(timeout=HANG_S)
    result = json.loads(output.splitlines()[-1])
    assert echo.process.returncode == 4
    assert (result["complete"], result["invalid_reasons"]) == (False, ["stopped before its end"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["echo"],
        ["echo", "--listen", "127.0.0.1"],
        ["echo", "--listen", "127.0.0.1:1", "--delay-send-us", "100001"],
        ["roundtrip"],
        ["roundtrip", "--peer", "localhost:1"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--size-bytes", "43"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--size-bytes", "65508"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--interval-us", "0"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--interval-us", "100", "--duration-ms", "100001"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--turn-trips", "5"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--turn-trips", "5", "--turn-every-us", "49999"],
        ["roundtrip", "--peer", "127.0.0.1:1", "--series", "/no/such/directory/series.csv"],
    ],
)
def test_bad_arguments_are_refused_in_one_line(bw_traffic: Path, arguments: list[str]) -> None:
    done = subprocess.run([bw_traffic, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert not done.stdout
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["echo", "roundtrip"])
def test_help_names_ranges(bw_traffic: Path, verb: str) -> None:
    done = subprocess.run([bw_traffic, verb, "--help"], capture_output=True, text=True, check=True)
    assert "0..100000 us" in done.stdout
