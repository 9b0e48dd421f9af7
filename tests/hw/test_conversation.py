# SPDX-License-Identifier: Apache-2.0
"""What a program is told that does not read it, or slowly."""

from __future__ import annotations

from pathlib import Path

import pytest

from hw.drivers import conversation
from hw.drivers.conversation import PipeConversation
from hw.errors import OverdueError
from tests.patience import HANG_S, STALL_S

LARGE = {"words": "x" * 300_000}
"""More than a pipe holds."""


def test_what_a_program_does_not_read_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "TELL_S", STALL_S)
    silent = PipeConversation("x on p01", ["sleep", "10000"], tmp_path / "x")
    try:
        with pytest.raises(OverdueError, match=r"x on p01: has not read in 0.3 s what phase go is"):
            silent.tell("go", LARGE)
    finally:
        silent.hang_up()


def test_what_is_longer_than_a_pipe_arrives_whole(tmp_path: Path) -> None:
    echo = PipeConversation("x on p01", ["cat"], tmp_path / "x")
    try:
        echo.tell("go", LARGE)
        assert echo.hear(HANG_S) == {"type": "phase", "name": "go", "parameters": LARGE}
    finally:
        echo.hang_up()


def test_a_program_that_has_ended_is_told_nothing(tmp_path: Path) -> None:
    ended = PipeConversation("x on p01", ["true"], tmp_path / "x")
    assert ended.wait(HANG_S) == 0
    ended.tell("go", LARGE)
    assert ended.hear(HANG_S) is None
