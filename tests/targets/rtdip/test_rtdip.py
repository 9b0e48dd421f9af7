# SPDX-License-Identifier: Apache-2.0
"""RTDiP between two namespaces: what it carries, what it refuses, what it counts, and what stays of it."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import HANG_S, wait_until
from tests.targets.rtdip.lab import ETHERTYPE, HIGH, LOW, MEDIUM, RtdipLab, bw_rtdip, header, ports
from tests.traffic_gen.lab import Stream, streams_by_id

NOBODY = 65534


JUMBO_MTU_BYTES = 9000


BOTH_WAYS = ["driver", "generic"]
"""How frames come: by the card's driver, which is how they do where a test does not say, and without it."""


def options_of(request: pytest.FixtureRequest) -> list[str]:
    return ["--generic"] if getattr(request, "param", "driver") == "generic" else []


@pytest.fixture
def lab(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Iterator[RtdipLab]:
    with RtdipLab(bw_rtdip(repository), tmp_path, *options_of(request)) as made:
        yield made


@pytest.fixture(params=BOTH_WAYS)
def jumbo_lab(request: pytest.FixtureRequest, repository: Path, tmp_path: Path) -> Iterator[RtdipLab]:
    with RtdipLab(bw_rtdip(repository), tmp_path, *options_of(request), mtu_bytes=JUMBO_MTU_BYTES) as made:
        yield made


@pytest.mark.parametrize("lab", BOTH_WAYS, indirect=True)
def test_messages_come_back_whole_at_every_size(lab: RtdipLab) -> None:
    lab.tool(lab.far, "echo", "--local", "7000").wait_ready()
    peer = f"{lab.mac(lab.far)}/7000"
    for size in (4, 51, 52, 53, 244, 245, 1487, 1488):
        asked = ["--peer", peer, "--size-bytes", str(size), "--count", "50", "--interval-us", "100"]
        result = lab.tool(lab.near, "latency", *asked).result()
        assert (result["over"], result["sent"], result["lost"]) == ("rtdip", 50, 0)
        assert result["round_trip"]["min_ns"] > 0


def test_each_round_trip_is_told_with_the_echo_s_stamps(lab: RtdipLab) -> None:
    """In their order, those of a run-up left out; a message without room for stamps has none."""
    lab.tool(lab.far, "echo", "--local", "7000").wait_ready()
    asked = ["--peer", f"{lab.mac(lab.far)}/7000", "--count", "20", "--interval-us", "100", "--run-up", "1"]
    for size in (64, 12, 4):
        before_ns = time.monotonic_ns()
        tool = lab.tool(lab.near, "latency", *asked, "--each", "--size-bytes", str(size))
        result = tool.result()
        trips = [each for each in tool.lines() if each["type"] == "trip"]
        assert [each["number"] for each in trips] == list(range(1, 40, 2))
        assert max(each["round_trip_ns"] for each in trips) == result["round_trip"]["max_ns"]
        assert all((each["receiving_ns"] >= 0) == (size >= 12) for each in trips)
        heard = [each["heard_monotonic_ns"] for each in trips]
        assert heard == ([0] * 20 if size < 20 else sorted(heard))
        assert size < 20 or before_ns < heard[0] <= heard[-1] < time.monotonic_ns()


def test_frames_follow_the_mtu(jumbo_lab: RtdipLab) -> None:
    """Those of more than a page come in several buffers, and whole."""
    lab = jumbo_lab
    assert lab.show(lab.far)["data_max_bytes"] == 8988
    lab.tool(lab.far, "echo", "--local", "7000").wait_ready()
    asked = ["--peer", f"{lab.mac(lab.far)}/7000", "--count", "50", "--interval-us", "100"]
    for size in (1492, 1493, 4096, 8988):
        result = lab.tool(lab.near, "latency", *asked, "--size-bytes", str(size)).result()
        assert (size, result["sent"], result["lost"]) == (size, 50, 0)


@pytest.mark.parametrize("lab", BOTH_WAYS, indirect=True)
def test_a_frame_over_the_mtu_is_refused(lab: RtdipLab) -> None:
    assert lab.show(lab.far)["data_max_bytes"] == 1488
    asked = ["--peer", f"{lab.mac(lab.far)}/7000", "--count", "1", "--size-bytes", "1489"]
    for verb in ("latency", "source"):
        options = asked if verb == "latency" else [*asked[:2], *asked[4:]]
        refused = lab.tool(lab.near, verb, *options)
        assert refused.process.wait(HANG_S) == 2
        assert "--size-bytes: 1489; a frame takes 1488 at most, --fragments more" in refused.errors()


def test_who_finds_no_service_says_where(lab: RtdipLab) -> None:
    nowhere = lab.folder / "nowhere"
    for name, code in ((str(nowhere), 3), (str(nowhere) * 10, 2)):
        argv = [str(lab.program), "latency", "--peer", "02:00:00:00:00:01/7000", "--socket", name]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=HANG_S)
        assert done.returncode == code
        assert f"--socket {name}: no service of RTDiP can be asked: " in done.stderr


@pytest.mark.parametrize("lab", BOTH_WAYS, indirect=True)
def test_messages_of_many_frames_come_back_whole(lab: RtdipLab) -> None:
    """Each has its length in front, and is cut into 1480 bytes a frame; small ones go so, too."""
    echo = lab.tool(lab.far, "echo", "--local", "7000", "--fragments")
    echo.wait_ready()
    asked = ["--peer", f"{lab.mac(lab.far)}/7000", "--count", "20", "--interval-us", "100", "--fragments"]
    frames = 0
    for size in (4, 1476, 1477, 8192, 65507):
        result = lab.tool(lab.near, "latency", *asked, "--size-bytes", str(size)).result()
        assert (size, result["sent"], result["lost"], result["fragments"]) == (size, 20, 0, True)
        assert result["receiving"]["n"] == (0 if size == 4 else 20)
        frames += 20 * -(-(size + 4) // 1480)
    assert lab.show(lab.far)["frames"]["delivered"] == frames
    echo.stop()
    assert echo.result()["echoed"] == 5 * 20


@pytest.mark.parametrize("size", ["16384", "65507"])
@pytest.mark.parametrize("over", ["rtdip", "udp"])
def test_windows_of_large_messages_are_acknowledged(lab: RtdipLab, over: str, size: str) -> None:
    """There is room for a whole window at each end."""
    ends = {"rtdip": ("7000", "7001", f"{lab.mac(lab.far)}/7000")}
    ends["udp"] = "10.99.0.2:7000", "10.99.0.1:7001", "10.99.0.2:7000"
    local, own, peer = ends[over]
    sink = lab.tool(lab.far, "sink", "--local", local, "--fragments")
    sink.wait_ready()
    asked = ["--local", own, "--peer", peer, "--size-bytes", size, "--duration-ms", "300", "--fragments"]
    result = lab.tool(lab.near, "source", *asked).result()
    assert (result["over"], result["windows"] > 0) == (over, True)
    sink.stop()
    assert sink.result()["acknowledged"] >= result["windows"]


@pytest.mark.parametrize("lab", BOTH_WAYS, indirect=True)
def test_windows_are_acknowledged(lab: RtdipLab) -> None:
    sink = lab.tool(lab.far, "sink", "--local", "7000")
    sink.wait_ready()
    asked = ["--peer", f"{lab.mac(lab.far)}/7000", "--duration-ms", "300", "--size-bytes", "1400"]
    result = lab.tool(lab.near, "source", *asked).result()
    assert result["windows"] > 0
    sink.stop()
    assert sink.result()["acknowledged"] >= result["windows"]


def test_a_window_is_whole_of_one_source_s_messages_alone(lab: RtdipLab) -> None:
    """Another source's message of that number, or one that came twice, stands in for none that is lost."""
    sink, raw = lab.tool(lab.far, "sink", "--local", "7000"), lab.raw()
    sink.wait_ready()
    first, second = 9, 10
    parts = [(first, 5, 0), (second, 5, 1)]
    parts += [(first, 6, 0), (first, 6, 0)]
    parts += [(first, 7, 0), (first, 7, 2)]
    parts += [(first, 8, 1), (first, 8, 0), (first, 8, 0)]  # whole, in whatever order, and told once
    for sequence, (source, window, number) in enumerate(parts):
        data = struct.pack("=III", window, number, 2)
        raw.send(lab.frame(header(7000, HIGH, len(data), source, sequence) + data))
    wait_until(lambda: lab.show(lab.near)["frames"]["no_port"] >= 1, "an acknowledgement")
    sink.stop()
    result = sink.result()
    assert (result["messages"], result["acknowledged"]) == (len(parts), 1)


def test_who_waits_long_is_stopped_at_once_and_counts_all_of_its_time(lab: RtdipLab) -> None:
    """What was under way is not lost; a window that nobody acknowledges takes the time that it took."""
    sink = lab.tool(lab.far, "sink", "--local", "7000")
    sink.wait_ready()
    asked = ["--peer", f"{lab.mac(lab.far)}/7000", "--timeout-ms", "60000"]
    source = lab.tool(lab.near, "source", *asked, "--duration-ms", "60000")
    source.wait_ready()
    wait_until(lambda: lab.show(lab.far)["frames"]["delivered"] > 100, "some windows")
    sink.process.kill()
    wait_until(lambda: not ports(lab.show(lab.far)), "the port to be free")
    latency = lab.tool(lab.near, "latency", *asked)
    latency.wait_ready()
    begin_s = time.monotonic()
    time.sleep(0.5)
    waited_s = time.monotonic() - begin_s
    source.stop()
    latency.stop()
    took, trips = source.result(), latency.result(4)
    assert time.monotonic() - begin_s < 30
    assert took["duration_ns"] > waited_s * 1e9
    assert took["windows"] > 0
    assert (trips["sent"], trips["lost"]) == (0, 0)


def test_the_kernel_keeps_its_own_traffic(lab: RtdipLab) -> None:
    """Pings pass the program, and so do messages of the same tools over UDP."""
    ping = ["ip", "netns", "exec", lab.near, "ping", "-c", "3", "-i", "0.05", "10.99.0.2"]
    assert subprocess.run(ping, check=False, capture_output=True).returncode == 0
    lab.tool(lab.far, "echo", "--local", "10.99.0.2:7000").wait_ready()
    asked = ["--local", "10.99.0.1:7001", "--peer", "10.99.0.2:7000", "--count", "20", "--interval-us", "100"]
    assert lab.tool(lab.near, "latency", *asked).result()["over"] == "udp"


def test_who_waits_for_udp_polls_the_card(lab: RtdipLab) -> None:
    echo = lab.tool(lab.far, "echo", "--local", "10.99.0.2:7000", "--busy-poll-us", "50")
    assert echo.wait_ready()["busy_poll_us"] == 50
    asked = [
        "--local",
        "10.99.0.1:7001",
        "--peer",
        "10.99.0.2:7000",
        "--count",
        "20",
        "--interval-us",
        "1000",
    ]
    assert lab.tool(lab.near, "latency", *asked).result()["lost"] == 0
    refused = lab.tool(lab.far, "echo", "--local", "7000", "--busy-poll-us", "50")
    assert refused.process.wait() == 3
    assert "--busy-poll-us: of UDP alone" in refused.errors()
    assert lab.show(lab.far)["frames"]["delivered"] == 0


def test_a_port_is_one_process_s_and_free_when_it_dies(lab: RtdipLab) -> None:
    first = lab.tool(lab.far, "echo", "--local", "7000")
    first.wait_ready()
    second = lab.tool(lab.far, "echo", "--local", "7000")
    assert second.process.wait() == 3
    assert "Address already in use" in second.errors()
    assert lab.show(lab.far)["ports"][0]["pid"] == first.process.pid
    for _ in range(20):
        first.process.kill()
        wait_until(lambda: not ports(lab.show(lab.far)), "the port to be free")
        first = lab.tool(lab.far, "echo", "--local", "7000")
        first.wait_ready()


def test_who_may_not_has_no_port(repository: Path, open_folder: Path) -> None:
    """Ports below 1024 are root's; the socket is that of the service's group alone."""

    def tried(lab: RtdipLab, port: int, *identity: str) -> str:
        place = ["--local", str(port), *lab.socket_of(lab.near)]
        argv = ["setpriv", *identity, str(lab.program), "echo", *place]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=20)
        assert done.returncode == 3
        return done.stderr

    nobody = ["--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    with RtdipLab(bw_rtdip(repository), open_folder) as lab:
        assert "Permission denied" in tried(lab, 7000, *nobody)
        lab.services[lab.near].stop()
        lab.services[lab.near].process.wait()
        lab.options = ("--group", str(NOBODY))
        lab.serve(lab.near)
        assert "Permission denied" in tried(lab, 7, *nobody), "a privileged port"
        sender = [
            "setpriv",
            *nobody,
            str(lab.program),
            "latency",
            "--peer",
            f"{lab.mac(lab.far)}/7000",
            "--count",
            "1",
        ]
        done = subprocess.run(
            [*sender, "--timeout-ms", "50", *lab.socket_of(lab.near)], check=False, capture_output=True
        )
        assert done.returncode == 4, "it may have a port; nobody answers"


def test_nothing_is_missing_to_two_who_are_answered_by_turns(lab: RtdipLab) -> None:
    """Each place that a port sends to has numbers of its own."""
    lab.tool(lab.far, "echo", "--local", "7000").wait_ready()
    asked = ["--peer", f"{lab.mac(lab.far)}/7000", "--count", "100", "--interval-us", "1000"]
    results = [each.result() for each in [lab.tool(lab.near, "latency", *asked) for _ in range(2)]]
    assert [(each["frames_received"], each["frames_missing"]) for each in results] == [(100, 0)] * 2


def test_a_reply_is_of_who_was_asked(lab: RtdipLab) -> None:
    """One of another port, or place, with the right number is none: the round trip is lost."""
    raw = lab.raw(lab.far)
    asked = ["--peer", f"{lab.mac(lab.far)}/7000", "--count", "1", "--timeout-ms", "2000"]
    latency = lab.tool(lab.near, "latency", "--local", "7001", *asked)
    wait_until(lambda: lab.show(lab.far)["frames"]["no_port"] >= 1, "the message")
    near, far = (bytes.fromhex(lab.mac(end).replace(":", "")) for end in (lab.near, lab.far))
    data = bytes(64)  # number 0
    for place, port in ((far, 7002), (bytes.fromhex("020000000001"), 7000)):
        raw.send(near + place + ETHERTYPE.to_bytes(2, "big") + header(7001, HIGH, len(data), port) + data)
    result = latency.result(4)
    assert (result["sent"], result["lost"], result["late"]) == (1, 1, 2)


def test_a_high_frame_comes_first(lab: RtdipLab) -> None:
    """While the receiver is stopped all priorities come; it answers them by priority, then in order."""
    echo = lab.tool(lab.far, "echo", "--local", "7000")
    echo.wait_ready()
    lab.services[lab.near].stop()  # it would take the answers
    lab.services[lab.near].process.wait()
    raw = lab.raw()
    os.kill(echo.process.pid, signal.SIGSTOP)
    sent = [(number * 7 % 3, number) for number in range(60)]
    for priority, number in sent:
        raw.send(lab.frame(header(7000, priority, 4, 9, number) + number.to_bytes(4, "big")))
    wait_until(lambda: lab.show(lab.far)["frames"]["delivered"] == 60, "all frames")
    os.kill(echo.process.pid, signal.SIGCONT)
    came = [_reply(raw) for _ in sent]
    assert [priority for priority, _ in came] == sorted(priority for priority, _ in sent)
    for level in (HIGH, MEDIUM, LOW):
        assert [number for priority, number in came if priority == level] == [
            number for priority, number in sent if priority == level
        ]


def _reply(raw: socket.socket) -> tuple[int, int]:
    """Return priority and number of the next answer that comes to the near end."""
    while True:
        data, about = raw.recvfrom(2000)
        if about[2] != 4:  # PACKET_OUTGOING: what this socket's own end sends
            return data[16], int.from_bytes(data[26:30], "big")


def test_a_full_ring_loses_and_says_so(lab: RtdipLab) -> None:
    echo = lab.tool(lab.far, "echo", "--local", "7000")
    echo.wait_ready()
    os.kill(echo.process.pid, signal.SIGSTOP)
    raw, frame = lab.raw(), lab.frame(header(7000, LOW, 1400, 9) + b"x" * 1400)
    for _ in range(300):
        raw.send(frame)
    wait_until(lambda: sum(lab.show(lab.far)["frames"].values()) == 300, "all frames")
    shown = lab.show(lab.far)
    (port,) = shown["ports"]
    assert port["full"] == shown["frames"]["full"] > 0
    assert port["frames"] == shown["frames"]["delivered"] == 300 - port["full"]
    os.kill(echo.process.pid, signal.SIGCONT)
    wait_until(lambda: lab.show(lab.near)["frames"]["no_port"] == port["frames"], "the answers")


def test_a_service_waits_for_one_that_is_killed_to_leave_the_interface(lab: RtdipLab) -> None:
    first = lab.services[lab.far]
    second = lab.tool(lab.far, "serve", "--interface", "r0")
    with pytest.raises(subprocess.TimeoutExpired):
        second.process.wait(0.3)  # the interface is taken
    first.process.kill()
    second.wait_ready()


def test_a_second_service_is_refused(lab: RtdipLab) -> None:
    second = lab.tool(lab.far, "serve", "--interface", "r0")
    assert second.process.wait() == 3
    assert "another XDP program is there" in second.errors()
    unknown = lab.tool(lab.far, "serve", "--interface", "nothing")
    assert unknown.process.wait() == 3
    assert "nothing: no such interface" in unknown.errors()


def test_messages_are_replayed_in_as_few_frames_as_the_mtu_allows(
    jumbo_lab: RtdipLab, repository: Path
) -> None:
    lab = jumbo_lab
    streams = Stream(12, "tcp", 640_000, 100_000), Stream(13, "udp", 4000, 100_000)
    _, received = lab.replay(repository, *streams, duration_ms=500)
    by_id = streams_by_id(received)
    assert {(by_id[number]["lost"], by_id[number]["received"]) for number in (12, 13)} == {(0, 5)}
    messages, rest = divmod(lab.show(lab.far)["frames"]["delivered"], 72 + 1)
    assert (messages >= 5, rest) == (True, 0)


def test_the_pattern_is_replayed_over_rtdip(lab: RtdipLab, repository: Path) -> None:
    """Both ends of bw-traffic: small messages and such of many frames, none by the kernel's UDP or TCP."""
    streams = [
        Stream(11, "udp", 100),
        Stream(12, "tcp", 640_000, 200_000),
        Stream(13, "tcp", 10, low_latency=True),
    ]
    before = lab.kernel_datagrams()
    _, received = lab.replay(repository, *streams)
    by_id = streams_by_id(received)
    assert {number: stream["lost"] for number, stream in by_id.items()} == {11: 0, 12: 0, 13: 0}
    assert [by_id[number]["received"] for number in (11, 12, 13)] == [200, 10, 200]
    assert lab.show(lab.far)["frames"]["delivered"] >= 400 + 10 * 640_000 // 1480
    assert lab.kernel_datagrams() - before < 10, "a question for the neighbour, no more"
