# SPDX-License-Identifier: Apache-2.0
"""The flow control of low messages over RTDiP: what waits, what is no grant, and who cannot stop it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.daq_replay.plan_file import BASE_PORT
from tests.patience import wait_until
from tests.targets.rtdip.lab import ETHERTYPE, HIGH, RtdipLab, bw_rtdip, header, ports
from tests.traffic_gen.lab import NONCE, Json, Stream, streams_by_id

FRAGMENT_HEADER_BYTES = 8
RUN = NONCE & 0xFFFFFFFF
BULK_BYTES = 640_000


@pytest.fixture
def lab(repository: Path, tmp_path: Path) -> Iterator[RtdipLab]:
    with RtdipLab(bw_rtdip(repository), tmp_path) as made:
        yield made


def _port(shown: Json, number: int) -> Json:
    """Return what a service says of a port; all of it is 0 of one that nobody has."""
    found: list[Json] = [each for each in shown["ports"] if each["port"] == number]
    return found[0] if found else {"frames": 0, "bytes": 0}


def test_a_receiver_that_does_not_read_gets_no_more(lab: RtdipLab, repository: Path) -> None:
    """It is stopped before anything comes: of a long message comes the first fragment, and then questions."""
    port = BASE_PORT + 12
    recv, (send,) = lab.begin_replay(repository, Stream(12, "tcp", BULK_BYTES, 100_000), duration_ms=1000)
    os.kill(recv.process.pid, signal.SIGSTOP)
    wait_until(lambda: _port(lab.show(lab.far), port)["frames"] >= 20, "questions of who waits")
    came = _port(lab.show(lab.far), port)
    assert came["bytes"] == 1488 + FRAGMENT_HEADER_BYTES * (came["frames"] - 1)
    os.kill(recv.process.pid, signal.SIGCONT)
    received, sent = recv.result(), send.result()
    (stream,) = received["streams"]
    assert (stream["lost"], sent["streams"][0]["unsent"]) == (0, 0)
    assert sent["streams"][0]["credit"]["asked"] >= came["frames"] - 1


def test_what_is_no_grant_is_refused_and_counted(lab: RtdipLab, repository: Path) -> None:
    """The receiver is stopped, so that whatever lets a fragment through is forged."""
    port = BASE_PORT + 12
    recv, (send,) = lab.begin_replay(repository, Stream(12, "tcp", BULK_BYTES, 100_000), duration_ms=1000)
    os.kill(recv.process.pid, signal.SIGSTOP)
    wait_until(lambda: _port(lab.show(lab.far), port)["frames"] > 0, "the first fragment")
    (own_port,) = ports(lab.show(lab.near))
    forged = [
        (b"", port),
        (_grant(RUN, 0, 9000)[:-1], port),
        (_grant(RUN, 0, 9000) + b"x", port),
        (_grant(RUN ^ 1, 0, 9000), port),
        (_grant(RUN, 1, 9000), port),
        (_grant(RUN, 0, BULK_BYTES + 1), port),
        (_grant(RUN, 0, 9000), port + 1),
    ]
    wire = lab.raw(lab.far)
    near, far = (bytes.fromhex(lab.mac(end).replace(":", "")) for end in (lab.near, lab.far))
    for data, source_port in forged:
        payload = header(own_port, HIGH, len(data), source_port) + data
        wire.send(near + far + ETHERTYPE.to_bytes(2, "big") + payload)
    seen = _port(lab.show(lab.far), port)["frames"]
    wait_until(lambda: _port(lab.show(lab.far), port)["frames"] >= seen + 3, "questions behind them")
    came = _port(lab.show(lab.far), port)
    assert came["bytes"] == 1488 + FRAGMENT_HEADER_BYTES * (came["frames"] - 1)
    os.kill(recv.process.pid, signal.SIGCONT)
    received, sent = recv.result(), send.result()
    assert (received["streams"][0]["lost"], sent["streams"][0]["unsent"]) == (0, 0)
    assert sent["streams"][0]["credit"]["refused"] == len(forged)


def _grant(run: int, message: int, limit_bytes: int) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in (run, message, limit_bytes))


def test_high_messages_wait_for_no_grant(lab: RtdipLab, repository: Path) -> None:
    """While the low stream of a producer waits for its receiver, its high one goes on, message by message."""
    streams = Stream(12, "tcp", BULK_BYTES, 100_000), Stream(13, "tcp", 4000, low_latency=True)
    recv, (send,) = lab.begin_replay(repository, *streams, duration_ms=1000)
    os.kill(recv.process.pid, signal.SIGSTOP)
    wait_until(lambda: _port(lab.show(lab.far), BASE_PORT + 13)["frames"] >= 3 * 30, "30 high messages")
    came = _port(lab.show(lab.far), BASE_PORT + 12)
    assert came["bytes"] <= 1488 + FRAGMENT_HEADER_BYTES * (came["frames"] - 1)
    os.kill(recv.process.pid, signal.SIGCONT)
    by_id = streams_by_id(recv.result())
    assert {number: stream["lost"] for number, stream in by_id.items()} == {12: 0, 13: 0}
    assert "credit" not in streams_by_id(send.result())[13]


def test_a_sender_that_dies_does_not_stop_the_others(lab: RtdipLab, repository: Path) -> None:
    """It is killed with grants of the window; the other one's messages come, all of them."""
    streams = Stream(12, "tcp", BULK_BYTES, 100_000), Stream(22, "tcp", BULK_BYTES, 100_000)
    recv, (dying, other) = lab.begin_replay(repository, *streams, duration_ms=1000)
    wait_until(lambda: _port(lab.show(lab.far), BASE_PORT + 12)["frames"] >= 100, "some of a message")
    dying.process.kill()
    assert streams_by_id(recv.result())[22]["lost"] == 0
    assert other.result()["streams"][0]["unsent"] == 0


def test_a_window_is_shared_by_all_senders(lab: RtdipLab, repository: Path) -> None:
    """Four bulk streams at once come whole, in as few frames as ever, and each grant is told in a frame."""
    streams = [Stream(number, "tcp", BULK_BYTES, 250_000) for number in (12, 15, 16, 17)]
    sent, received = lab.replay(repository, *streams, duration_ms=1000)
    assert [(stream["lost"], stream["received"]) for stream in received["streams"]] == [(0, 4)] * 4
    each_credit = [stream["credit"] for stream in sent["streams"]]
    assert all(credit["granted"] > 4 * BULK_BYTES // 65_536 for credit in each_credit)
    assert sum(credit["refused"] for credit in each_credit) == 0
    fragments, questions = 433 * 6 * 4, sum(credit["asked"] for credit in each_credit)
    assert lab.show(lab.far)["frames"]["delivered"] == fragments + questions
    assert lab.show(lab.near)["frames"]["delivered"] >= sum(credit["granted"] for credit in each_credit)
