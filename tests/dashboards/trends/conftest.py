# SPDX-License-Identifier: Apache-2.0
"""The store that the tests of the page share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboards.trends.history import fill_small


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the store of `fill_small`; nobody writes to it."""
    folder = tmp_path_factory.mktemp("trends")
    path = folder / "store.sqlite"
    fill_small(path, folder / "runs")
    return path
