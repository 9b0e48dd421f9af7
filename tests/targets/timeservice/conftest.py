# SPDX-License-Identifier: Apache-2.0
"""What tests of the time service share."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.targets.timeservice.lab import Pair


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """Return where the page is."""
    return tmp_path / "page"


@pytest.fixture
def pair() -> Generator[Pair]:
    """Make two namespaces."""
    if os.geteuid() != 0:
        pytest.skip("namespaces need root")
    made = Pair()
    try:
        yield made
    finally:
        made.close()
