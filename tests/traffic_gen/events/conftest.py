# SPDX-License-Identifier: Apache-2.0
"""Fixtures: bw-events, and a program with points of every kind."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tool(repository: Path) -> str:
    """Give bw-events."""
    return str(repository / ".build/linux/traffic-gen/bw-events")


@pytest.fixture(scope="session")
def probe(repository: Path) -> str:
    """Give the program with points of every kind."""
    return str(repository / ".build/linux/tests/traffic_gen/events-probe")


@pytest.fixture(autouse=True)
def events_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder in memory for the recordings of one test; nothing may be left in it."""
    with tempfile.TemporaryDirectory(prefix="bw-test-", dir="/dev/shm") as name:
        monkeypatch.setenv("BW_EVENTS_MEMORY", name)
        yield Path(name)
        assert not list(Path(name).iterdir())
