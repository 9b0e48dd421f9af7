# SPDX-License-Identifier: Apache-2.0
"""The console log of a machine that is a namespace: what everyone writes to it, of each boot."""

from __future__ import annotations

from pathlib import Path

from hw.virtual.console_log import READY, earlier_logs
from hw.virtual.namespace_boot import start


def _boot(log: Path, word: str) -> None:
    script = f"echo {READY}; echo {word}; echo of a session >>{log}; echo at its end"
    assert start("m", "none", ["sh", "-c", script], log).wait() == 0


def test_what_a_session_writes_to_the_log_stays(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    _boot(log, "first")
    assert log.read_text().splitlines() == [READY, "first", "of a session", "at its end"]


def test_the_log_of_the_boot_before_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "console.log"
    _boot(log, "first")
    _boot(log, "second")
    assert [each.read_text().split("\n")[1] for each in (*earlier_logs(log), log)] == ["first", "second"]
