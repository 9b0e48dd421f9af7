# SPDX-License-Identifier: Apache-2.0
"""What tests of the store and of delivery share."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from dashboards.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    """Return an empty store."""
    with Store(tmp_path / "s.sqlite") as opened:
        yield opened
