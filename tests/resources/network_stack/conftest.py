# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of network stacks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from resources import network_stack
from resources.network_stack import NetworkStack, load_network_stack
from tests.resources.network_stack.machine import SCRIPT, TARGETS, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    root = tmp_path / "machine"
    (root / "stack").mkdir(parents=True)
    (root / "link").write_text("as found\n")
    return Machine(root)


@pytest.fixture
def targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Kinds of target: one has the kernel's stack and a made-up one, the other the kernel's alone."""
    folder = tmp_path / "targets"
    for kind in ("linux-rt", "windows"):
        shutil.copytree(TARGETS / kind / "stack", folder / kind / "stack")
    own = folder / "linux-rt" / "stack"
    (own / "user.sh").write_text(SCRIPT)
    (own / "user.toml").write_text(
        'schema = "benchwright.network_stack/1"\n'
        'transports = "tcp"\nmessage_max_bytes = 50000\narguments = "--poll 8"\n'
        '[environment]\nUSER_STACK = "test0"\n'
        '[install]\nfolder = "/stack"\nfiles = "user.sh"\ncommand = "sh /stack/user.sh"\n'
    )
    monkeypatch.setattr(network_stack, "TARGETS", folder)
    return folder


@pytest.fixture
def user(targets: Path) -> NetworkStack:
    return load_network_stack(targets / "linux-rt", "user")
