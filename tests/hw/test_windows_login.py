# SPDX-License-Identifier: Apache-2.0
"""The login of a virtual Windows machine, by a stand-in of Wine: asked again for what it did not start."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hw.virtual.windows import login_script

_WINE = """#!/bin/sh
# Starts nothing so many times, then notes how far the command comes.
echo >>{folder}/starts
[ $(wc -l <{folder}/starts) -gt {refusals} ] || {{ printf '{reason}' >&2; exit 1; }}
echo {reached} >{disk}/prefix/drive_c/windows/${{BENCHWRIGHT_LOGIN##*windows?}}
echo said >&2
exit 7
"""


@pytest.mark.parametrize(
    ("refusals", "reason", "reached", "starts", "code", "said"),
    [
        (0, "", "ended", 1, 7, "said\n"),
        (2, "", "ended", 3, 7, "said\n"),
        (2, "error 1359\n", "ended", 3, 7, "said\n"),
        (3, "", "ended", 3, 1, "Wine did not start the command: exit code 1\n"),
        (3, "error 1359\n", "ended", 3, 1, "error 1359\nWine did not start the command: exit code 1\n"),
        (0, "", "started", 1, 7, "said\nWine ended before the command: exit code 7\n"),
    ],
)
def test_only_what_was_not_started_is_started_again(
    tmp_path: Path, refusals: int, reason: str, reached: str, starts: int, code: int, said: str
) -> None:
    disk, log = tmp_path / "disk", tmp_path / "log"
    windows = disk / "prefix/drive_c/windows"
    windows.mkdir(parents=True)
    (disk / "view/C:/users/root").mkdir(parents=True)
    wine = tmp_path / "wine64"
    stand_in = _WINE.format(refusals=refusals, reason=reason, folder=tmp_path, disk=disk, reached=reached)
    wine.write_text(stand_in)
    wine.chmod(0o755)
    script = tmp_path / "login"
    script.write_text(login_script(tmp_path, disk, log))
    environment = {**os.environ, "SSH_ORIGINAL_COMMAND": "ver"}
    done = subprocess.run(
        ["sh", script], env=environment, check=False, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)
    assert len((tmp_path / "starts").read_text()) == starts
    assert list(windows.iterdir()) == []
    told = log.read_text() if log.exists() else ""
    assert told == f"Wine did not start ver: exit code 1\n{reason}" * refusals
