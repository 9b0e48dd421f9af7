# SPDX-License-Identifier: Apache-2.0
"""Files that others open are noted."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL

import pytest

from tests.clean_root.opened import Opened

pytestmark = pytest.mark.simulated


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """Give a file system of its own, as a clean root is."""
    folder = tmp_path / "inside"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("namespace", [[], ["unshare", "--mount"]])
def test_who_opens_what_below_a_folder(mounted: Path, tmp_path: Path, namespace: list[str]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for folder in (mounted, outside):
        (folder / "read").write_text("text")
        (folder / "run").write_text("#!/bin/sh\nexit 0\n")
        (folder / "run").chmod(0o755)
    (mounted / "left").write_text("text")
    with Opened(mounted) as watched:
        for folder in (mounted, outside):
            subprocess.run([*namespace, "cat", str(folder / "read")], check=True, stdout=DEVNULL)
            subprocess.run([str(folder / "run")], check=True)
    # Of a process in another namespace the path may begin at an outer root, where this one is in a chroot.
    assert {Path(name).name for name in watched.files} == {"read", "run"}
