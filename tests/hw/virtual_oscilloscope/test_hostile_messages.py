# SPDX-License-Identifier: Apache-2.0
"""Real messages, damaged: no session of them ends an instrument, holds it up, or fills its memory."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from random import Random

import pytest

from hw.virtual.oscilloscope.dialect import REPLY_BYTES_MAX, Dialect
from hw.virtual.oscilloscope.edges import ReplayedEdges
from hw.virtual.oscilloscope.keysight.instrument import ERRORS_KEPT, InfiniiVision
from hw.virtual.oscilloscope.link import MESSAGE_BYTES_MAX, WAITING_BYTES_MAX, Link
from hw.virtual.oscilloscope.scpi_errors import TEXTS
from hw.virtual.oscilloscope.scpi_tree import Command, Suffixes
from hw.virtual.oscilloscope.server import Server
from hw.virtual.oscilloscope.tektronix.events import EVENTS_KEPT
from hw.virtual.oscilloscope.tektronix.instrument import FiveSeries
from tests.campaign import Campaign
from tests.hw.virtual_oscilloscope import test_keysight, test_tektronix
from tests.hw.virtual_oscilloscope.controller import Controller, ImpatientLink, hardware, pulses
from tests.scope.transcript import FOLDER, read_transcript

Make = Callable[..., Dialect]

MEMORY_SAMPLES = 20_000
UNIT_BYTES_MAX = 64 * MEMORY_SAMPLES
"""No reply to one query is longer: every sample as text."""
CPU_S_MAX = 10.0
"""Of the instrument's thread, for one message; most take a thousandth of a second."""

_ERROR_BITS = 0x3C
_NO_ERROR = {0, 1, 401}
"""Nothing to report; nothing yet; power on."""
_TAKES_ERRORS = re.compile(r"CLS|ESR|ERR|EV", re.IGNORECASE)
"""Commands that take errors out of the queue themselves."""
_VALUES = (
    "0", "-1", "1E99", "1E-400", "9.9E+37", "1e999999999", "NAN", "INF", "MAX", "ON", "1" * 400, ".", "+-1",
    "1 GS", '"a;b"', "'", '"', "#15abcde", "#9999999999", "CHANnel9", "CH0", "\t", ",", ",,1", "(@1)",
    "1,2,3,4,5,6,7,8",
)  # fmt: skip
_SUFFIXES = ("", "0", "1", "2", "9", "000000001", "999999999", "1" * 30, "-1", "<n>")
_INSERTED = (
    b"\0",
    b"\xff",
    b"\r",
    b"*",
    b"?",
    b":",
    b";",
    b" ",
    b'"',
    b"#",
    b"\xe2\x82\xac",
    b";" * 500,
    b"(" * 500,
)


def _transcribed(kind: str) -> list[str]:
    requests: dict[str, None] = {}
    for file in sorted(FOLDER.glob(f"{kind}-*.txt")):
        requests |= dict.fromkeys(read_transcript(file.read_text()))
    return list(requests)


DIALECTS: dict[str, tuple[Make, list[str]]] = {
    "keysight": (
        InfiniiVision,
        [
            *_transcribed("keysight"),
            *test_keysight.SET_UP,
            ":DIGitize",
            ":SINGle",
            ":RUN",
            ":MEASure:RESults?",
        ],
    ),
    "tektronix": (
        FiveSeries,
        [
            *_transcribed("tektronix"),
            *test_tektronix.SET_UP,
            "ACQuire:STATE ON",
            "*WAI",
            "CURVe?",
            "HEADer ON",
        ],
    ),
}
both = pytest.mark.parametrize("kind", DIALECTS)


def _note_commands(kind: str, instrument: Dialect, campaign: Campaign) -> None:
    """Let the campaign know which commands are reached."""
    find = instrument.commands.find

    def found(header: tuple[str, ...]) -> tuple[Command, Suffixes]:
        command, suffixes = find(header)
        campaign.reached.add(f"{kind} {command.pattern}")
        return command, suffixes

    instrument.commands.find = found


class WatchedInstrument:
    """An instrument that is looked at after each message."""

    def __init__(self, kind: str, campaign: Campaign, link: Link) -> None:
        self._campaign = campaign
        self._link = link
        self.instrument = DIALECTS[kind][0](
            hardware(memory_samples=MEMORY_SAMPLES), ReplayedEdges(pulses()), set()
        )
        self._asks = ":SYSTem:ERRor?" if kind == "keysight" else "*ESR?;ALLEv?"
        self._kept = (ERRORS_KEPT if kind == "keysight" else EVENTS_KEPT) + 1
        _note_commands(kind, self.instrument, campaign)
        self._say("HEADer OFF;VERBose ON;*CLS")

    def _say(self, text: str) -> str:
        return self.instrument.handle(text.encode(), self._link).decode("latin-1").rstrip("\n")

    def errors(self) -> list[int]:
        """Take all errors out of the queue."""
        self._say("HEADer OFF") if self._asks.startswith("*") else None
        numbers: list[int] = []
        for _ in range(self._kept + 2):
            reply = self._say(self._asks)
            new = [abs(int(n)) for n in re.findall(r'(?:^|[,;])([+-]?\d+),"', reply)]
            if not set(new) - _NO_ERROR:
                assert len(numbers) <= self._kept
                return numbers
            numbers += [number for number in new if number not in _NO_ERROR]
        raise AssertionError(f"the queue has no end: {numbers}")

    def handle(self, message: bytes) -> None:
        """Do a message, and look whether the instrument has kept its promises."""
        self.errors()
        self._say("*ESR?")
        began_s = time.thread_time()
        reply = self.instrument.handle(message, self._link)
        assert time.thread_time() - began_s < CPU_S_MAX
        assert len(reply) <= REPLY_BYTES_MAX + UNIT_BYTES_MAX
        assert not reply or reply.endswith(b"\n")
        status = self.instrument.status & _ERROR_BITS
        errors = self.errors()
        assert set(errors) <= set(TEXTS), errors
        self._campaign.reached.update(f"error {number}" for number in errors)
        if not _TAKES_ERRORS.search(message.decode("latin-1")):
            assert bool(errors) == bool(status), (errors, status)
            if any(byte > 0x7F for byte in message):
                assert 101 in errors
        assert self._say("*IDN?")


@contextmanager
def _no_thread_dies() -> Generator[None]:
    """Raise what has ended a thread meanwhile."""
    died: list[BaseException] = []
    before = threading.excepthook
    threading.excepthook = lambda args: died.append(args.exc_value or args.exc_type())
    try:
        yield
    finally:
        threading.excepthook = before
    if died:
        raise died[0]


def play(kind: str, session: bytes, campaign: Campaign) -> None:
    """Do a session, one message a line, with an instrument that was just switched on."""
    ours, theirs = socket.socketpair()
    with ours, theirs, _no_thread_dies():
        watched = WatchedInstrument(kind, campaign, ImpatientLink(ours, lambda: False))
        try:
            for message in session.split(b"\n"):
                watched.handle(message)
        finally:
            watched.instrument.close()


def damaged(message: str, other: str, random: Random) -> bytes:
    """Return a message with one thing wrong, or none."""
    number = re.search(r"\d+", message)
    begin = random.randrange(len(message))
    ways: list[Callable[[], str | bytes]] = [
        lambda: message,
        lambda: f"{message.partition(' ')[0]} {random.choice(_VALUES)}",
        lambda: f"{message};{other}",
        lambda: f"{message};:{other.lstrip(':')}",
        lambda: ";".join([message] * random.choice((3, 40, 3000)))[:MESSAGE_BYTES_MAX],
        lambda: message[:begin],
        lambda: message[:begin] + message[begin + 1 :],
        lambda: message.partition(" ")[0].rstrip("?") + random.choice(("?", "? 1", "??", "")),
        lambda: message[:begin].encode() + random.choice(_INSERTED) + message[begin:].encode(),
        lambda: message[:begin].encode() + bytes([random.randrange(256)]) + message[begin + 1 :].encode(),
        lambda: message[:begin] + other[random.randrange(len(other)) :],
        lambda: f"{message} {random.choice('1A ,') * random.choice((100, 60_000))}"[:MESSAGE_BYTES_MAX],
    ]
    if number:
        ways += 2 * [
            lambda: (
                message[: number.start()] + random.choice((*_VALUES, *_SUFFIXES)) + message[number.end() :]
            )
        ]
    made = random.choice(ways)()
    return (made if isinstance(made, bytes) else made.encode()).replace(b"\n", b"")


def made_session(kind: str, random: Random) -> bytes:
    """Return messages in the order of a real session, most of them whole."""
    messages = DIALECTS[kind][1]
    begin = random.randrange(len(messages))
    chosen = messages[begin : begin + random.randrange(1, 12)] + random.choices(messages, k=3)
    return b"\n".join(
        damaged(message, random.choice(messages), random) if random.random() < 0.5 else message.encode()
        for message in chosen
    )


@both
def test_hostile_messages(kind: str, campaign: Campaign) -> None:
    for random in campaign.rounds(40):
        session = made_session(kind, random)
        with campaign.trying(session):
            play(kind, session, campaign)


def _expect_identity(c: Controller, instrument: Dialect) -> None:
    """Ask until the identity comes: before it may come what a connection before has left unread."""
    wanted = instrument.identity().encode()
    c.write("*IDN?")
    for _ in range(1000):
        line = c.line()
        assert line, "hung up"
        if wanted in line:
            return
    raise AssertionError("no identity among 1000 lines")


@both
def test_hostile_port(kind: str, campaign: Campaign) -> None:
    """Over the real socket, cut anywhere, on connections that hang up; the next one is answered."""
    for random in campaign.rounds(4):
        sessions = [made_session(kind, random) for _ in range(2)]
        instrument = DIALECTS[kind][0](
            hardware(memory_samples=MEMORY_SAMPLES), ReplayedEdges(pulses()), set()
        )
        _note_commands(kind, instrument, campaign)
        with campaign.trying(b"\n\n".join(sessions)), _no_thread_dies(), Server(instrument) as server:
            for session in sessions:
                with socket.create_connection(("127.0.0.1", server.port)) as hostile, suppress(OSError):
                    hostile.settimeout(2)  # then it gives up, as a hostile one may
                    while session:
                        cut = random.choice((1, 7, 100, 5000))
                        hostile.sendall(session[:cut])
                        session = session[cut:]
                    hostile.sendall(random.choice((b"", b"\n", b"\r\n")))
            with Controller(server.port) as c:
                _expect_identity(c, instrument)


LARGE = {
    "keysight": (":WAV:DATA?", ":TIMebase:SCALe 5E-6", ":WAVeform:POINts MAX", ":DIGitize"),
    "tektronix": ("CURV?", "HORizontal:RECOrdlength 500000;:DATa:STOP 500000", "ACQuire:STATE ON", "*WAI"),
}


@both
def test_replies_that_would_fill_the_memory_are_dropped(kind: str) -> None:
    asks, *acquire = LARGE[kind]
    instrument = DIALECTS[kind][0](hardware(memory_samples=2_000_000), ReplayedEdges(pulses()), set())
    set_up = test_keysight.SET_UP if kind == "keysight" else test_tektronix.SET_UP
    ours, theirs = socket.socketpair()
    with ours, theirs:
        link = Link(ours, lambda: False)
        for message in (*set_up, *acquire, "*CLS"):
            instrument.handle(message.encode(), link)
        one = len(instrument.handle(asks.encode(), link))
        assert one > 500_000
        asked = ";".join([asks] * 5000).encode()
        assert len(asked) < MESSAGE_BYTES_MAX
        assert instrument.handle(asked, link) == b""
        assert instrument.status & 0x04
        errors = b":SYSTem:ERRor?;ERRor?" if kind == "keysight" else b"*ESR?;ALLEv?"
        said = instrument.handle(errors, link).decode()
        assert re.findall(r'([+-]?\d+),"', said) == (["-430", "+0"] if kind == "keysight" else ["430"])
        most = REPLY_BYTES_MAX // one
        assert len(instrument.handle(";".join([asks] * most).encode(), link)) >= most * (one - 1)
    instrument.close()


@pytest.mark.parametrize("behind_bytes", [2 * MESSAGE_BYTES_MAX, 4 * WAITING_BYTES_MAX])
@both
def test_a_controller_that_hangs_up_behind_much_input_frees_the_instrument(
    kind: str, behind_bytes: int
) -> None:
    """It waits for an acquisition that never ends, and cannot take in all that the controller has sent."""
    waits = {
        "keysight": b":TRIG:SWE NORM\n:DIG\n",
        "tektronix": b"TRIG:A:MOD NORM\nACQ:STOPA SEQ;STATE ON\n*WAI\n",
    }
    instrument = DIALECTS[kind][0](hardware(), ReplayedEdges(()), set())
    with Server(instrument) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as hostile:
            hostile.sendall(waits[kind] + b"x" * behind_bytes)
        with Controller(server.port) as c:
            _expect_identity(c, instrument)


@both
@pytest.mark.parametrize(
    ("size_bytes", "oversized"), [(MESSAGE_BYTES_MAX, False), (MESSAGE_BYTES_MAX + 1, True)]
)
def test_the_longest_message(kind: str, size_bytes: int, oversized: bool) -> None:
    """However it is cut on its way."""
    with (
        Server(DIALECTS[kind][0](hardware(), ReplayedEdges(()), set())) as server,
        Controller(server.port) as c,
    ):
        c.write("*CLS;" + "*" * (size_bytes - 5))
        errors = ":SYSTem:ERRor?" if kind == "keysight" else "*ESR?;ALLEv?"
        assert ("223" in c.query(errors)) == oversized
