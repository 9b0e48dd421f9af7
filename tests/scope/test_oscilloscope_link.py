# SPDX-License-Identifier: Apache-2.0
"""The link through PyVISA: replies, blocks, silences and closed ports, each with an error that names them."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from scope.drivers.link import Link, SilentError, TransferError
from scope.errors import InstrumentError
from tests.scope.driver_bench import TIMEOUT_S
from tests.scope.transcript import TranscriptServer

pytestmark = pytest.mark.timed


def _ask_block(text: str, *sizes: int) -> tuple[bytes, bool]:
    with TranscriptServer(text) as server:
        link = Link("scope-a", server.resource, timeout_s=TIMEOUT_S)
        link.open()
        try:
            link.write("DATA?")
            return link.read_block(sizes), link.block_follows()
        finally:
            link.close()


@pytest.mark.parametrize(
    "reply",
    [
        r"< #15ab\ncd",
        r"<raw #15ab\ncd",  # no newline behind it
        r"< #800000005ab\ncd",
        r"< :CURVE #15ab\ncd",
        r"< #0ab\ncd",  # does not say its length
        r"<raw #15ab\ncd\x0d\n",
    ],
)
def test_reads_a_block_in_any_of_its_forms(reply: str) -> None:
    assert _ask_block(f"> DATA?\n{reply}", 5) == (b"ab\ncd", False)


def test_tells_that_another_block_follows() -> None:
    assert _ask_block("> DATA?\n< #12ab;#12cd", 2) == (b"ab", True)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("< -222,Data out of range", r"garbage: no block but b'-'"),
        ("< ", r"garbage: no block but b'\n'"),
        ("< 60,61,62", r"garbage: no block but b'60,'"),
        ("< #x1", "no digit after #"),
        ("< #3 12aaaa", "is no length"),
        ("< #14abcd", "block of 4 bytes, must have 5"),
        ("< #16abcdef", "block of 6 bytes, must have 5"),
        ("< #9999999999", "block of 999999999 bytes, must have 5"),
        ("< #15abcdeX", "b'X' behind a block"),
        ("<raw #15ab", "stopped answering after 2 bytes, waited for 5 bytes"),
        ("<raw #", "no answer within"),
        ("<close #15ab", "the connection was lost after 2 bytes"),
    ],
)
def test_refuses_garbage_blocks(reply: str, reason: str) -> None:
    with pytest.raises(InstrumentError) as refused:
        _ask_block(f"> DATA?\n{reply}", 5)
    assert reason in refused.value.reason
    assert refused.value.command == "DATA?"
    assert refused.value.instrument.startswith("scope-a (TCPIP::127.0.0.1::")


def test_keeps_what_a_broken_block_had() -> None:
    with pytest.raises(TransferError) as refused:
        _ask_block("> DATA?\n<close #15ab\\n", 5)
    assert refused.value.received == b"ab\n"


def test_gets_back_in_step_after_a_block_without_a_newline() -> None:
    with TranscriptServer("> DATA?\n<raw #12ab\n> *IDN?\n< a,b,c,d") as server:
        link = Link("scope-a", server.resource, timeout_s=TIMEOUT_S)
        link.open()
        link.write("DATA?")
        assert link.read_block((2,)) == b"ab"
        assert not link.block_follows()
        assert link.query("*IDN?") == "a,b,c,d"
        link.close()


def test_gets_back_in_step_after_a_second_line_end() -> None:
    with TranscriptServer("> DATA?\n< #12ab\\n\n> *IDN?\n< a,b,c,d\n> LIST?\n< ") as server:
        link = Link("scope-a", server.resource, timeout_s=TIMEOUT_S)
        link.open()
        link.write("DATA?")
        assert link.read_block((2,)) == b"ab"
        assert not link.block_follows()
        assert link.query("*IDN?") == "a,b,c,d"
        assert link.query("LIST?") == ""
        link.close()


def test_a_silent_instrument_is_given_up_at_the_deadline() -> None:
    with TranscriptServer("> *IDN?\n<silent") as server:
        link = Link("scope-a", server.resource, timeout_s=TIMEOUT_S)
        link.open()
        start_s = time.monotonic()
        with pytest.raises(SilentError, match=r"scope-a \(TCPIP.*\): \*IDN\?: no answer within 0.6 s"):
            link.query("*IDN?")
        assert time.monotonic() - start_s < 5
        assert link.broken


def test_a_slow_reply_is_waited_for() -> None:
    """Each piece may take as long as the time-out; the reply comes in pieces of less."""
    listener = socket.create_server(("127.0.0.1", 0))
    resource = f"TCPIP::127.0.0.1::{listener.getsockname()[1]}::SOCKET"
    link = Link("scope-a", resource, timeout_s=1.0)  # as long as all pieces take together
    link.open()
    client, _ = listener.accept()
    link.write("DATA?")

    def drip() -> None:
        for piece in (b"#1", b"5ab", b"cd", b"e\n"):
            time.sleep(0.25)
            client.sendall(piece)

    thread = threading.Thread(target=drip)
    thread.start()
    assert link.read_block((5,)) == b"abcde"
    assert not link.block_follows()
    thread.join()
    link.close()
    client.close()
    listener.close()


def _identify(link: Link) -> str:
    """Open and ask: on a raw socket only the question finds out that nobody listens."""
    link.open()
    return link.query("*IDN?")


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    link = Link("scope-a", f"TCPIP::127.0.0.1::{port}::SOCKET", timeout_s=TIMEOUT_S)
    start_s = time.monotonic()
    pattern = r"scope-a \(TCPIP::127\.0\.0\.1::\d+::SOCKET\): .*(no instrument|cannot)"
    with pytest.raises(InstrumentError, match=pattern):
        _identify(link)
    assert time.monotonic() - start_s < 5


@pytest.mark.parametrize(
    "resource", ["TCPIP::127.0.0.1::SOCKET", "nonsense", "TCPIP::no-such-host.invalid::5025::SOCKET"]
)
def test_an_address_that_cannot_be(resource: str) -> None:
    link = Link("scope-a", resource, timeout_s=TIMEOUT_S)
    with pytest.raises(InstrumentError, match="scope-a"):
        _identify(link)


@pytest.mark.parametrize("resource", ["TCPIP::127.0.0.1::hislip0,1::INSTR", "TCPIP::127.0.0.1::inst0::INSTR"])
def test_nobody_listens_for_messages(resource: str) -> None:
    link = Link("scope-a", resource, timeout_s=TIMEOUT_S)
    with pytest.raises(InstrumentError, match="scope-a"):
        link.open()
