# SPDX-License-Identifier: Apache-2.0
"""Whatever is at the other end, every wait ends, and what is wrong is an InstrumentError that names the peer.

pytest tests/scope/test_hostile_peers.py --hostile-files 2000    # so many damaged answers
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from random import Random

import pytest

from scope.drivers.link import Link
from scope.drivers.oscilloscope import ScpiOscilloscope, open_oscilloscope
from scope.errors import InstrumentError, ScopeError
from tests.reports.hostile import damaged
from tests.scope.driver_bench import SETTINGS, TIMEOUT_S, transcript
from tests.scope.hostile_peer import Talk, peer
from tests.scope.transcript import Reply, TranscriptServer

pytestmark = pytest.mark.timed

TEKTRONIX = b"TEKTRONIX,MSO54,C000001,CF:91.1CT FV:1.44\n"
MANY = 1000


def lines_of(client: socket.socket) -> Iterator[bytes]:
    """Yield what a client sends, by lines."""
    with client.makefile("rb") as lines:
        yield from lines


def web_server(client: socket.socket) -> None:
    """Answer the first line as a web server does."""
    next(lines_of(client))
    client.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<html></html>\r\n")


def ssh_server(client: socket.socket) -> None:
    """Greet, and hang up at what is no SSH."""
    client.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
    next(lines_of(client))


def hangs_up_after_cls(client: socket.socket) -> None:
    """Be an oscilloscope until the first `*CLS`."""
    for line in lines_of(client):
        if line.startswith(b"*CLS"):
            return
        client.sendall(TEKTRONIX)


def sends_without_end(client: socket.socket) -> None:
    """Send lines that nobody has asked for."""
    while True:
        client.sendall(b"temperature 41 C\n" * 100)


@pytest.mark.parametrize("talk", [web_server, ssh_server, hangs_up_after_cls, sends_without_end])
def test_who_is_no_oscilloscope_is_told(talk: Talk) -> None:
    with peer(talk) as resource, pytest.raises(InstrumentError, match=r"scope-a \(TCPIP"):
        open_oscilloscope("scope-a", resource, timeout_s=TIMEOUT_S)


def test_a_line_that_trickles_in_is_given_up() -> None:
    """A byte now and then, and no end of the line: the wait ends while the peer goes on."""
    gone = threading.Event()
    sent: list[int] = []

    def trickle(client: socket.socket) -> None:
        next(lines_of(client))
        for number in range(MANY):
            if gone.wait(TIMEOUT_S / 6):
                return
            client.sendall(b"1")
            sent.append(number)

    with peer(trickle) as resource:
        link = Link("scope-a", resource, timeout_s=TIMEOUT_S)
        link.open()
        try:
            with pytest.raises(InstrumentError, match=r"stopped answering after .* the end of the line"):
                link.query("*IDN?")
        finally:
            gone.set()
    assert len(sent) < MANY


def test_the_rest_of_a_block_does_not_keep_the_first_connection_from_working() -> None:
    """What a client before us did not wait for comes first: no text, and then the answer."""
    rest = bytes(range(200, 256)) * 40 + b"\n"
    with TranscriptServer(transcript("tektronix-setup")) as server:
        identity = server.entries["*IDN?"]
        answers = iter([Reply(rest)])
        plain = identity.next

        def answer() -> Reply | None:
            return next(answers, None) or plain()

        identity.next = answer  # type: ignore[method-assign]
        with open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S) as scope:
            assert scope.identity.maker == "TEKTRONIX"


def test_a_set_up_that_failed_once_is_made_again() -> None:
    """The instrument refuses one command once: the next arming sets all up, and asks nobody to configure."""
    refusal = '> *ESR?\n< 0\n< 0\n< 32\n< 0\n> ALLEv?\n< 102,"Syntax error"'
    with (
        TranscriptServer(transcript("tektronix-frames", refusal)) as server,
        open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S) as scope,
    ):
        with pytest.raises(InstrumentError, match="102 Syntax error"):
            scope.configure(SETTINGS)
        assert len(scope.acquire(5).frames) == 6


def test_another_value_than_asked_for_is_no_remark() -> None:
    changes = '> *ESR?\n< 0\n< 0\n< 16\n< 0\n> ALLEv?\n< 528,"Parameter out of range; 2E9"'
    with (
        TranscriptServer(transcript("tektronix-setup", changes)) as server,
        open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S) as scope,
        pytest.raises(InstrumentError, match="528 Parameter out of range"),
    ):
        scope.configure(SETTINGS)


def test_a_sample_rate_of_0_is_refused() -> None:
    with (
        TranscriptServer(transcript("tektronix-setup", "> HORizontal:SAMPLERate?\n< 0")) as server,
        open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S) as scope,
        pytest.raises(InstrumentError, match="a rate of 0 samples/s"),
    ):
        scope.configure(SETTINGS)


@pytest.mark.parametrize("stamp", ["31.02.2025 13:05:59.123", "24 Xyz 2025 13:05:59.123", "yesterday"])
def test_a_time_stamp_of_another_form_leaves_the_frames(stamp: str) -> None:
    changes = f"> HORizontal:FASTframe:TIMEStamp:ALL?\n< 1: {stamp},2: {stamp},3: {stamp}"
    with (
        TranscriptServer(transcript("tektronix-frames", changes)) as server,
        open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S) as scope,
    ):
        scope.configure(SETTINGS)
        frames = scope.acquire(5).frames
    assert len(frames) == 6
    assert {frame.time_tag_s for frame in frames} == {None}


DATA = {"keysight-segments": ":WAVeform:DATA?", "tektronix-frames": "CURVe?"}


@pytest.mark.parametrize("name", DATA)
def test_what_was_whole_when_the_peer_hung_up_is_kept(name: str) -> None:
    """It hangs up right behind the last byte of a block: all segments of that channel are there."""
    with TranscriptServer(transcript(name)) as server:
        entry = server.entries[DATA[name]]
        whole = entry.replies[0].data.rstrip(b"\n")
        entry.replies[:] = [Reply(whole, close=True)]
        scope = open_oscilloscope("scope-a", server.resource, timeout_s=TIMEOUT_S)
        scope.configure(SETTINGS)
        with pytest.raises(ScopeError) as broken:
            scope.acquire(5)
        scope.close()
    acquired = getattr(broken.value, "acquired", None)
    assert acquired is not None, broken.value
    assert [frame.index for frame in acquired.frames] == [0, 1, 2]


@pytest.mark.parametrize("name", DATA)
def test_damaged_answers_end_in_an_error_of_ours_or_an_acquisition(
    name: str, pytestconfig: pytest.Config
) -> None:
    """One answer of a whole session is damaged in any way; nothing but a ScopeError comes of it."""
    random = Random(name)
    outcomes = {"read": 0, "refused": 0}
    with TranscriptServer(transcript(name)) as server:
        answers = sorted(request for request, entry in server.entries.items() if entry.replies)
        for _ in range(int(str(pytestconfig.getoption("--hostile-files"))) // 6):
            entry = server.entries[random.choice(answers)]
            whole = list(entry.replies)
            entry.replies[:] = [Reply(damaged(reply.data, random), reply.close) for reply in whole]
            for each in server.entries.values():
                each.used = 0
            try:
                _session(server)
                outcomes["read"] += 1
            except ScopeError:
                outcomes["refused"] += 1
            finally:
                entry.replies[:] = whole
    assert outcomes["refused"] > 0


def _session(server: TranscriptServer) -> None:
    hasty_s = 0.1
    scope: ScpiOscilloscope = open_oscilloscope("scope-a", server.resource, timeout_s=hasty_s)
    try:
        scope.configure(SETTINGS)
        scope.acquire(0.5)
    finally:
        scope.close()
