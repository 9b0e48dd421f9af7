# SPDX-License-Identifier: Apache-2.0
"""What tests of the second judge share."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.run.folder import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Return a run that has nothing yet."""
    return RunFolder.create(tmp_path, "virtual", "ci", simulated=True, commit="0" * 40)
