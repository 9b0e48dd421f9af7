# SPDX-License-Identifier: Apache-2.0
"""The verb ring: whole rings, what each records, and neighbours that do not keep to it."""

from __future__ import annotations

import json
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from reports.timeline.event_stream import EventStream
from reports.timeline.event_stream_file import read_event_streams
from reports.timeline.processing.stream_events import frequency_hz, readings_of
from tests.patience import HANG_S
from tests.traffic_gen.loop.rings import PATIENT, free_udp, ring
from tests.traffic_gen.two_ends import end, ended, free

END = 0x80000000
COUNT = 200
SOURCE = ("--count", str(COUNT), "--interval-us", "200")


def message(number: int, content_bytes: int = 6) -> bytes:
    """Return a message as docs/control-loops.md has it; the end of all: END and how many."""
    check = ((number ^ 0x42574C52) * 0x9E3779B1 & 0xFFFFFFFF) >> 16
    fill = bytes(number + place * 7 & 0xFF for place in range(6, content_bytes))
    return content_bytes.to_bytes(4) + number.to_bytes(4) + check.to_bytes(2) + fill


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
@pytest.mark.parametrize("transport", [[], ["--udp"]], ids=["tcp", "udp"])
@pytest.mark.parametrize("writes", ["1", "2"])
@pytest.mark.parametrize("nodes", [0, 3])
def test_every_message_goes_round(
    bw_loop: Path, nodes: int, writes: str, transport: list[str], host: str
) -> None:
    found = ring(bw_loop, nodes, SOURCE, transport, writes=["--writes", writes], host=host)
    assert [each[0] for each in found] == [0] * (nodes + 2)
    assert [each[2] for each in found] == [""] * (nodes + 2)
    results = [each[1] for each in found]
    assert [each["role"] for each in results] == ["source", *["node"] * nodes, "sink"]
    assert [each["written"] for each in results] == [*[COUNT] * (nodes + 1), 0]
    assert [each["read"] for each in results] == [0, *[COUNT] * (nodes + 1)]
    assert {each["of"] for each in results} == {COUNT}
    for key in ("missing", "double", "disordered", "broken"):
        assert not any(each[key] for each in results)


@pytest.mark.parametrize("options", [("--nagle",), ("--size-bytes", "60004"), ("--kernel-stamps",)])
def test_conditions_lose_nothing(bw_loop: Path, options: tuple[str, ...]) -> None:
    is_source = options[0] == "--size-bytes"
    writes, common = (options if options[0] == "--nagle" else ()), ()
    if options[0] == "--kernel-stamps":
        common = options
    found = ring(
        bw_loop, 1, (*SOURCE, *(options if is_source else ())), common, writes=["--writes", "2", *writes]
    )
    assert [each[0] for each in found] == [0, 0, 0]
    assert found[2][1]["read"] == COUNT


def events(folder: Path, number: int) -> EventStream:
    """Return what a program of a ring has recorded."""
    [stream] = read_event_streams(folder / str(number))
    assert stream.lost == 0
    return stream


def hz_of(stream: EventStream) -> int:
    """Return the frequency of its counter, where the architecture does not say by its clock's readings."""
    return frequency_hz(stream, readings_of(stream, "monotonic"))[0]


def numbers(stream: EventStream, point: str) -> list[int]:
    """Return the tags of a point's events in the order of their times."""
    own = stream.of(point)
    return stream.tag[own[np.argsort(stream.ticks[own], kind="stable")]].tolist()


def stamped(found: list[int], transport: list[str]) -> None:
    """Check which messages the kernel stamped: every datagram; of what TCP has joined the last alone."""
    if transport:
        assert found == list(range(COUNT))
    else:
        assert found == sorted(set(found))
        assert found
        assert set(found) <= set(range(COUNT))


@pytest.mark.parametrize("transport", [[], ["--udp"]], ids=["tcp", "udp"])
def test_each_records_when_it_read_and_wrote(
    bw_loop: Path, bw_events: Path, tmp_path: Path, transport: list[str]
) -> None:
    common = [*transport, "--kernel-stamps"]
    found = ring(bw_loop, 2, SOURCE, common, writes=["--writes", "2"], record=(bw_events, tmp_path))
    assert [each[0] for each in found] == [0] * 4
    streams = [events(tmp_path, number) for number in range(4)]
    every = list(range(COUNT))
    for number, stream in enumerate(streams):
        if number < 3:
            assert numbers(stream, "ring.write") == every
            assert numbers(stream, "ring.write_content") == every
            stamped(numbers(stream, "ring.kernel_written"), transport)
        if number:
            assert numbers(stream, "ring.read") == every
            assert numbers(stream, "ring.read_header")[:COUNT] == every  # the end has one, too
            stamped(numbers(stream, "ring.kernel_read"), transport)
    # One counter has stamped all of it: each was read after it was written, and written again after that.
    for number in every:
        at = [
            int(streams[place].ticks[own[streams[place].tag[own] == number][0]])
            for place, point in (
                (0, "write"),
                (0, "write_content"),
                (1, "read"),
                (1, "write"),
                (2, "read"),
                (2, "write"),
                (3, "read"),
            )
            for own in [streams[place].of(f"ring.{point}")]
        ]
        assert at == sorted(at)


def test_kernel_stamps_lie_between_writing_and_reading(
    bw_loop: Path, bw_events: Path, tmp_path: Path
) -> None:
    ring(bw_loop, 0, SOURCE, ["--kernel-stamps"], record=(bw_events, tmp_path))
    source, sink = events(tmp_path, 0), events(tmp_path, 1)

    def stamps(stream: EventStream, point: str) -> dict[int, int]:
        own = stream.of(point)
        shown = np.ascontiguousarray(stream.data(own)).view(np.int64).reshape(-1)
        return dict(zip(stream.tag[own].tolist(), shown.tolist(), strict=True))

    left, came = stamps(source, "ring.kernel_written"), stamps(sink, "ring.kernel_read")
    both = left.keys() & came.keys()
    assert both
    assert all(left[number] <= came[number] for number in both)


@pytest.mark.parametrize("what", ["work", "hold"])
def test_what_a_node_does_lies_between_reading_and_writing(
    bw_loop: Path, bw_events: Path, tmp_path: Path, what: str
) -> None:
    readers = [f"--{what}-us", "2000", *(["--hold-turn", "10"] if what == "hold" else [])]
    source = ("--count", "40", "--interval-us", "5000")
    found = ring(bw_loop, 1, source, readers=readers, record=(bw_events, tmp_path))
    node = events(tmp_path, 1)
    hz = hz_of(node)
    read, write = (node.of(f"ring.{point}") for point in ("read", "write"))
    took_ns = {
        int(node.tag[one]): (int(node.ticks[other]) - int(node.ticks[one])) * 10**9 / hz
        for one, other in zip(read, write, strict=True)
    }
    within = {number: ns for number, ns in took_ns.items() if what == "work" or number // 10 % 2}
    # A counter that the kernel has calibrated anew differs from what its architecture says by some ppm.
    assert min(within.values()) >= 1_999_000
    if what == "hold":
        assert min(ns for number, ns in took_ns.items() if number not in within) < 1_000_000
        held = found[1][1]["held"]
        assert held["n"] == 20
        assert held["min_ns"] >= 2_000_000
        # What it says of itself lies within what the counter says.
        assert held["max_ns"] <= max(within.values()) + 2_000


def test_grid_holds_messages_back(bw_loop: Path, bw_events: Path, tmp_path: Path) -> None:
    """One who looks at the places of a grid of 50 ms reads right behind them, whenever messages come.

    Read as they come, every 5 ms, they lie anywhere: in the middle 25 ms behind a place.
    """
    source = ("--count", "80", "--interval-us", "5000")
    ring(bw_loop, 0, source, readers=["--poll-us", "50000"], record=(bw_events, tmp_path))
    sink = events(tmp_path, 1)
    reading = readings_of(sink, "monotonic")[0]
    since = sink.ticks[sink.of("ring.read")].astype(np.int64) - reading.after_ticks
    at_ms = (reading.clock_ns + since * 1e9 / hz_of(sink)) / 1e6
    assert np.median(at_ms % 50) < 12


def test_a_relay_of_others_changes_nothing(bw_loop: Path) -> None:
    """Messages go through two netcats and a pipe, which know nothing of them and join or split them."""
    before, behind = free(), free()
    listening, sending = (each.replace(":", " ") for each in (before, behind))
    relay = ["sh", "-c", f"nc -l {listening} | nc -N {sending}"]
    words = ["--count", "2000", "--interval-us", "10", "--size-bytes", "1000"]
    with (
        end(bw_loop, "ring", "--from", behind, *PATIENT) as (sink, _),
        subprocess.Popen(relay) as process,
        end(bw_loop, "ring", "--to", before, *words, *PATIENT) as (source, _),
    ):
        assert ended(source)[0] == 0
        code, result, _ = ended(sink)
        process.wait(HANG_S)
    assert (code, result["read"], result["missing"]) == (0, 2000, 0)


def sink_of(bw_loop: Path, sent: bytes, *, close: bool = True) -> tuple[int, dict[str, object], str]:
    """Send bytes to a sink over TCP, and return how it ended."""
    with end(bw_loop, "ring", "--from", free(), *PATIENT) as (process, ready):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))) as peer:
            peer.sendall(sent)
            if close:
                with suppress(OSError):  # it may have ended, with bytes unread
                    peer.shutdown(socket.SHUT_WR)
            return ended(process)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"", "the connection was closed before the last message"),
        (message(0), "the connection was closed before the last message"),
        (message(0)[:7], "the connection was closed within a message"),
        (message(0)[:3], "the connection was closed within a message"),
        (message(0, 5000)[:-1], "the connection was closed within a message"),
        (bytes(20), "what came was no message of a ring"),
        (b"GET / HTTP/1.0\r\n\r\n", "what came was no message of a ring"),
        (message(0)[:-1] + b"\0", "what came was no message of a ring"),
        (message(10_000_000), "what came was no message of a ring"),
    ],
)
def test_what_is_no_message_is_told(bw_loop: Path, sent: bytes, reason: str) -> None:
    code, result, _ = sink_of(bw_loop, sent)
    assert (code, result["invalid_reasons"], result["complete"]) == (4, [reason], False)


def test_sink_accounts_for_each_message(bw_loop: Path) -> None:
    """5 of 8 came: 2 before 1, 4 twice; 3, 6 and 7 never."""
    sent = b"".join(map(message, (0, 2, 1, 4, 4, 5))) + message(END | 8)
    code, result, _ = sink_of(bw_loop, sent)
    assert code == 0
    found = [result[key] for key in ("of", "read", "missing", "double", "disordered", "broken")]
    assert found == [8, 6, 3, 1, 1, 0]


@pytest.mark.parametrize(
    ("came", "of", "missing"),
    [
        ((0, 1, 2, 3, 4), 2, 0),
        ((0, 9), 2, 1),  # 1 never came
        ((0,), 0, 0),
        ((1, 1), 1, 1),
        ((9_999_999,), 9_999_999, 9_999_999),
    ],
)
@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_last_message_that_says_fewer_than_came_contradicts_them(
    bw_loop: Path, transport: str, came: tuple[int, ...], of: int, missing: int
) -> None:
    sent = [*map(message, came), message(END | of)]
    if transport == "tcp":
        code, result, _ = sink_of(bw_loop, b"".join(sent))
    else:
        code, result, _ = sink_of_datagrams(bw_loop, sent)
    assert (code, result["valid"], result["invalid_reasons"]) == (
        4,
        False,
        ["the last message says that there were fewer than came"],
    )
    assert [result[key] for key in ("of", "read", "missing")] == [of, len(came), missing]


def test_a_node_tells_it_too_and_passes_all_on(bw_loop: Path) -> None:
    behind = free()
    with (
        end(bw_loop, "ring", "--from", behind, *PATIENT) as (sink, _),
        end(bw_loop, "ring", "--from", free(), "--to", behind, *PATIENT) as (node, ready),
    ):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))) as peer:
            peer.sendall(b"".join(map(message, range(5))) + message(END | 2))
            found = [ended(each) for each in (node, sink)]
    for code, result, _ in found:
        assert (code, result["read"], result["of"], result["missing"]) == (4, 5, 2, 0)


def sink_of_datagrams(bw_loop: Path, sent: list[bytes]) -> tuple[int, dict[str, object], str]:
    """Send datagrams to a sink, and return how it ended."""
    at = free_udp()
    with (
        end(bw_loop, "ring", "--from", at, "--udp", *PATIENT) as (process, _),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
    ):
        host, _, port = at.partition(":")
        for datagram in sent:
            peer.sendto(datagram, (host, int(port)))
        return ended(process)


def test_datagrams_of_others_are_counted(bw_loop: Path) -> None:
    whole = message(0)
    sent = [
        b"", b"xyz", whole, message(1)[:4], message(1)[4:], message(2)[:4], message(3), message(4)[4:],
        message(5) + b"\0", message(END | 4),
    ]  # fmt: skip
    code, result, _ = sink_of_datagrams(bw_loop, sent)
    assert code == 0
    # Broken: two that are too short, a header without its content, a content alone, one that is too long.
    assert [result[key] for key in ("read", "missing", "broken")] == [3, 1, 5]


def test_stop_ends_it_with_what_it_has(bw_loop: Path) -> None:
    with end(bw_loop, "ring", "--from", free(), *PATIENT) as (process, ready):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))) as peer:
            peer.sendall(message(0))
            process.terminate()
            code, result, _ = ended(process)
    assert (code, result["complete"]) == (4, False)
    assert result["invalid_reasons"] == ["stopped before its end"]


def test_silence_ends_it(bw_loop: Path) -> None:
    with end(bw_loop, "ring", "--from", free(), "--timeout-ms", "50", "--priority", "0") as (process, ready):
        host, port = ready["address"].split(":")
        with socket.create_connection((host, int(port))):
            code, result, _ = ended(process)
    assert (code, result["invalid_reasons"]) == (4, ["no message came in time, or could be passed on"])


def test_one_that_is_not_there_is_told(bw_loop: Path) -> None:
    command = [bw_loop, "ring", "--to", free(), "--timeout-ms", "50", "--priority", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S)
    result = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, result["invalid_reasons"]) == (4, ["the next one could not be reached"])
    assert "refused" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], '--from, --to: ""; needed: one of them, or both'),
        (["--from", "127.0.0.1"], '--from: "127.0.0.1"; needed: ADDRESS:PORT'),
        (["--from", "127.0.0.1:1", "--count", "1"], "--count, --interval-us, --size-bytes"),
        (["--to", "127.0.0.1:1", "--work-us", "1"], "--poll-us, --work-us, --hold-us, --hold-turn"),
        (["--from", "127.0.0.1:1", "--writes", "2"], "--writes, --nagle"),
        (["--to", "127.0.0.1:1", "--udp", "--nagle"], "datagrams are never held back"),
        (["--to", "127.0.0.1:1", "--size-bytes", "9"], "10..60004"),
    ],
)
def test_bad_options_are_refused(bw_loop: Path, words: list[str], said: str) -> None:
    done = subprocess.run([bw_loop, "ring", *words], capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
