# SPDX-License-Identifier: Apache-2.0
"""`python -m reports clock-log`: a log that somebody brings, read without a run folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.__main__ import main
from tests.reports.clock_sync.test_logs import GOLDEN, PHC2SYS


@pytest.mark.parametrize(
    "name", [path.name for path in sorted(GOLDEN.glob("*.log")) if "rms" not in path.name]
)
def test_format_is_recognised_and_offsets_are_told(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clock-log", str(GOLDEN / name)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{GOLDEN / name}: {name.removesuffix('.log')}\n")
    assert "offsets in" in said
    assert "max|TE|" in said


def test_summary_lines_alone_are_no_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clock-log", str(GOLDEN / "ptp4l-rms.log")]) == 1
    assert "27 summary lines, which have no sign" in capsys.readouterr().out


def test_what_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "syslog"
    log.write_text(
        f"Nov  1 18:05:54 box sshd[71]: Accepted\n{PHC2SYS}phc2sys[105.250]: CLOCK_REALTIME phc off\n"
    )
    assert main(["clock-log", str(log), "--format", "phc2sys"]) == 0
    assert "1 of other programs; 1 summary lines" in capsys.readouterr().out
    log.write_text("words\n")
    assert main(["clock-log", str(log)]) == 1
    assert f"{log}: no offset in it" in capsys.readouterr().out
    assert main(["clock-log", str(tmp_path / "none")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_bytes_that_are_no_text_are_damaged_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "core"
    log.write_bytes(bytes(range(256)) * 40)
    assert main(["clock-log", str(log)]) == 1
    assert "damaged" in capsys.readouterr().out
