# SPDX-License-Identifier: Apache-2.0
"""Fixtures: bw-events, and a program with points of every kind."""

from __future__ import annotations

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
