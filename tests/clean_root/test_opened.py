# SPDX-License-Identifier: Apache-2.0
"""Files that others open are noted."""

from __future__ import annotations

import subprocess
from pathlib import Path
from subprocess import DEVNULL

import pytest

from tests.clean_root.opened import Opened

pytestmark = pytest.mark.simulated


def test_who_opens_what_below_a_folder(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "read").write_text("text")
        (folder / "run").write_text("#!/bin/sh\nexit 0\n")
        (folder / "run").chmod(0o755)
    (inside / "left").write_text("text")
    with Opened(inside) as watched:
        for folder in (inside, outside):
            subprocess.run(["unshare", "--mount", "cat", str(folder / "read")], check=True, stdout=DEVNULL)
            subprocess.run([str(folder / "run")], check=True)
    assert watched.files == {"/read", "/run"}
