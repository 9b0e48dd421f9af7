# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reports.run.robot_runs import Robot


@pytest.fixture
def robot(tmp_path: Path) -> Robot:
    return Robot(tmp_path)
