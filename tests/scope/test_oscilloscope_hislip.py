# SPDX-License-Identifier: Apache-2.0
"""The same drivers over HiSLIP, where a reply is a message with an end."""

from __future__ import annotations

import pytest

from scope.drivers.link import Link, SilentError, TransferError
from scope.drivers.oscilloscope import open_oscilloscope
from scope.incomplete import IncompleteAcquisitionError
from tests.patience import HANG_S
from tests.scope.driver_bench import SETTINGS, TIMEOUT_S, transcript
from tests.scope.hislip import HislipServer


@pytest.mark.parametrize("name", ["keysight-segments", "tektronix-frames"])
def test_sets_up_and_reads_all_frames(name: str) -> None:
    with HislipServer(transcript(name)) as server:
        with open_oscilloscope("scope-a", server.resource, timeout_s=HANG_S) as scope:
            scope.configure(SETTINGS)
            frames = scope.acquire(timeout_s=HANG_S).frames
        assert not server.unexpected, server.unexpected
    assert [(frame.channel, frame.index) for frame in frames] == [
        (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2),
    ]  # fmt: skip


def test_a_message_that_ends_in_a_block() -> None:
    """The end of the message comes before that of the block: nothing is waited for."""
    text = transcript("tektronix-frames", "> CURVe?\n<raw #18aaaaaaaa;#18aaa")
    with (
        HislipServer(text) as server,
        open_oscilloscope("scope-a", server.resource, timeout_s=HANG_S) as scope,
    ):
        scope.configure(SETTINGS)
        with pytest.raises(IncompleteAcquisitionError, match="stopped answering after 3 bytes") as refused:
            scope.acquire(timeout_s=HANG_S)
    assert len(refused.value.acquired.frames) == 1


@pytest.mark.parametrize("reply", ["< #15abcde", "<raw #15abcde", "<raw #0abcde", r"<raw #0ab\nde"])
def test_reads_a_block_with_and_without_a_newline(reply: str) -> None:
    with HislipServer(f"> DATA?\n{reply}\n> *IDN?\n<raw a,b,c,d") as server:
        link = Link("scope-a", server.resource, timeout_s=HANG_S)
        link.open()
        link.write("DATA?")
        assert len(link.read_block((5,))) == 5
        assert not link.block_follows()
        assert link.query("*IDN?") == "a,b,c,d"
        link.close()


@pytest.mark.timed
def test_silence_and_garbage() -> None:
    with HislipServer("> *IDN?\n<silent\n> DATA?\n< 60,61") as server:
        link = Link("scope-a", server.resource, timeout_s=TIMEOUT_S)
        link.open()
        with pytest.raises(SilentError, match="no answer within"):
            link.query("*IDN?")
        link.open()
        link.write("DATA?")
        with pytest.raises(TransferError, match="garbage: no block but b'60,'"):
            link.read_block((5,))
