# SPDX-License-Identifier: Apache-2.0
"""The verb offset over real sockets: a responder whose error is known, and hostile datagrams."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S, wait_until
from tests.traffic_gen.lab import tai_ns
from tests.traffic_gen.responder import REPLY, REQUEST, Error, Packet, Responder

Json = dict[str, Any]


def _measure(program: Path, peer: str, duration_ms: int = 1500) -> tuple[int, Json]:
    """Return exit code and result."""
    command = [program, "offset", "--peer", peer, "--duration-ms", str(duration_ms), "--interval-ms", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert not done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["ready", "result"]
    return done.returncode, lines[-1]


@pytest.mark.parametrize(
    ("error", "there_s", "back_s"),
    [
        (Error(), 0, 0),
        (Error(offset_ns=5_000_000_000, rate_ppb=100_000), 0, 0),
        (Error(offset_ns=-86_400_000_000_000, rate_ppb=-100_000), 0.002, 0),
        (Error(offset_ns=3_000_000, rate_ppb=40_000), 0, 0.002),
    ],
    ids=["same-clock", "seconds-off-100-ppm-fast", "day-behind-slow-request-late", "reply-late"],
)
def test_truth_lies_within_the_bound(bw_traffic: Path, error: Error, there_s: float, back_s: float) -> None:
    """The late path shifts the middle to its side, where it was later than all that the machine added."""
    for _ in range(5):
        with Responder(error, there_s, back_s) as responder:
            code, result = _measure(bw_traffic, responder.address)
        assert code == 0
        assert result["valid"]
        assert result["complete"]
        wrong_ns = result["offset_ns"] - error.offset_at_ns(result["at_local_tai_ns"])
        assert abs(wrong_ns) <= result["bound_ns"]
        assert result["bound_ns"] >= (there_s + back_s) * 1e9 / 2
        assert result["kept"] == len(result["series"])
        assert result["exchanges"] <= 8 * result["kept"]
        # Half of the late path and of all other delay: under the late path the other delay is less than that.
        if not (late_ns := (there_s - back_s) * 1e9) or result["bound_ns"] < abs(late_ns):
            assert wrong_ns * late_ns >= 0
            return
    pytest.skip("the machine was never quiet enough to tell which path was late")


def test_rate_is_found(bw_traffic: Path) -> None:
    with Responder(Error(rate_ppb=200_000)) as responder:
        _, result = _measure(bw_traffic, responder.address, 3000)
    assert abs(result["rate_ppb"] - 200_000) <= result["bound_growth_ppb"]


@pytest.mark.timed
def test_a_fast_clock_is_told_from_a_right_one(bw_traffic: Path) -> None:
    with Responder(Error(rate_ppb=200_000)) as responder:
        _, result = _measure(bw_traffic, responder.address, 3000)
    assert result["bound_growth_ppb"] < 200_000, "three seconds tell a fast clock from a right one"


@pytest.mark.parametrize("step_ns", [30_000_000_000, -30_000_000_000])
def test_step_of_the_peer_is_reported(bw_traffic: Path, step_ns: int) -> None:
    """Far larger than any delay of a busy machine, after 20 answers; it ends after 30 more."""
    command = [bw_traffic, "offset", "--duration-ms", "600000", "--interval-ms", "50", "--peer"]
    with (
        Responder(Error(offset_ns=1_000_000_000), step=(20, step_ns)) as responder,
        subprocess.Popen([*command, responder.address], stdout=subprocess.PIPE, text=True) as process,
    ):
        wait_until(lambda: responder.answered >= 50 or process.poll() is not None, "50 answers")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=HANG_S)
    result = json.loads(output.splitlines()[-1])
    assert process.returncode == 4
    assert result["invalid_reasons"] == ["stopped before its end", "the peer's clock was stepped"]
    (step,) = result["clock_steps"]
    assert step["clock"] == "peer"
    assert abs(step["step_ns"] - step_ns) < abs(step_ns) / 2


def _forged(request: Packet) -> list[bytes]:
    """Make every kind of answer that must not be taken for one."""
    now_ns = tai_ns()

    def reply(**changes: int) -> bytes:
        fields = {
            "kind": REPLY,
            "sequence": request.sequence,
            "cookie": request.cookie,
            "t1_ns": request.t1_ns,
            "t2_ns": now_ns,
            "t3_ns": now_ns,
        }
        return Packet(**(fields | changes)).pack()

    right = reply()
    return [
        b"",
        right[:47],
        right + b"\0",
        b"BWO2" + right[4:],
        reply(kind=REQUEST),
        reply(sequence=request.sequence ^ 1),
        reply(cookie=request.cookie ^ 1),
        reply(t1_ns=request.t1_ns + 1),
        # These answer the request, and say what cannot be.
        reply(t2_ns=-(2**63)),
    ]


def test_forged_answers_are_not_taken(bw_traffic: Path) -> None:
    with Responder(Error(), forge=_forged) as responder:
        code, result = _measure(bw_traffic, responder.address, 500)
    assert code == 4
    assert result["kept"] == 0
    assert result["offset_ns"] is None
    assert result["invalid_reasons"] == ["no answer of the peer was possible"]
    assert result["invalid"] > 0


def test_silent_peer_is_invalid(bw_traffic: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        code, result = _measure(bw_traffic, f"127.0.0.1:{silent.getsockname()[1]}", 500)
    assert code == 4
    assert result["invalid_reasons"] == ["the peer has not answered"]
    assert result["lost"] > 0


@pytest.fixture
def free_port() -> int:
    """Return a UDP port that was free a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def server(bw_traffic: Path, free_port: int) -> Iterator[subprocess.Popen[str]]:
    """Run `offset --serve` at the free port."""
    command = [bw_traffic, "offset", "--serve", f"127.0.0.1:{free_port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert json.loads(process.stdout.readline())["type"] == "ready"
        yield process
        process.kill()


def _stop(process: subprocess.Popen[str]) -> Json:
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, "a server without a duration is ended by a signal"
    return json.loads(output.splitlines()[-1])


def test_server_answers_requests_only(server: subprocess.Popen[str], free_port: int) -> None:
    generator = random.Random(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", free_port))
        client.settimeout(HANG_S)
        junk = [generator.randbytes(length) for length in [*range(100), 1400, 60_000]]
        junk.append(Packet(REPLY, 1, 2, 3, 4, 5).pack())
        for datagram in junk:
            client.send(datagram)
        before_ns = tai_ns()
        client.send(Packet(REQUEST, 7, 8, before_ns).pack())
        answer = Packet.unpack(client.recv(2048))  # the first datagram that comes: junk got none
        after_ns = tai_ns()
    assert (answer.kind, answer.sequence, answer.cookie, answer.t1_ns) == (REPLY, 7, 8, before_ns)
    assert before_ns <= answer.t2_ns <= answer.t3_ns <= after_ns
    result = _stop(server)
    assert result["answered"] == 1
    assert result["refused"] == len(junk)


def test_client_and_server_agree_on_one_clock(
    bw_traffic: Path, server: subprocess.Popen[str], free_port: int
) -> None:
    code, result = _measure(bw_traffic, f"127.0.0.1:{free_port}")
    assert code == 0
    assert abs(result["offset_ns"]) <= result["bound_ns"]
    assert result["lost"] == 0
    assert _stop(server)["answered"] == result["exchanges"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--serve", "127.0.0.1:1", "--peer", "127.0.0.1:1"],
        ["--peer", "localhost:1"],
        ["--peer", "127.0.0.1:65536"],
        ["--peer", "127.0.0.1:1", "--interval-ms", "0"],
        ["--peer", "127.0.0.1:1", "--cpu", "x"],
        ["surplus"],
    ],
)
def test_bad_arguments_are_refused_in_one_line(bw_traffic: Path, arguments: list[str]) -> None:
    done = subprocess.run([bw_traffic, "offset", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert not done.stdout
    assert len(done.stderr.splitlines()) == 1


def test_a_result_that_cannot_be_written_is_no_success(bw_traffic: Path) -> None:
    """The disk is full: the responder answers, but nobody can read what was measured."""
    with Responder(Error()) as peer, Path("/dev/full").open("w") as full:
        command = [
            bw_traffic,
            "offset",
            "--peer",
            peer.address,
            "--duration-ms",
            "200",
            "--interval-ms",
            "50",
        ]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=HANG_S
        )
    assert done.returncode == 3
    assert "what it had to say could not be written" in done.stderr


@pytest.mark.parametrize("tool", ["bw-traffic", "bw-clock", "bw-edge"])
def test_a_version_that_cannot_be_written_is_no_success(bw_traffic: Path, tool: str) -> None:
    with Path("/dev/full").open("w") as full:
        command = [bw_traffic.with_name(tool), "--version"]
        done = subprocess.run(command, stdout=full, check=False, timeout=HANG_S)
    assert done.returncode == 3


@pytest.mark.parametrize(
    "tool",
    [
        "traffic-gen/bw-timectl",
        "traffic-gen/bw-timed",
        "targets/linux/userstack/netstat/bw-netstat",
        "targets/linux/userstack/accel/bw-accel",
    ],
)
def test_help_that_could_not_be_written_is_no_success(repository: Path, tool: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([repository / ".build/linux" / tool, "--help"], check=False, stdout=full)
    assert done.returncode == 3
